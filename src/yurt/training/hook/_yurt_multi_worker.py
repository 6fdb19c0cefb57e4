"""Keras 3's `fit`, `evaluate` and `predict` under MultiWorkerMirroredStrategy (Keras 3.10 to 3.15, TensorFlow 2.21).

As shipped they fail before the first step with several workers. What fails where, and what stands there instead:

1. `_maybe_symbolic_build` takes the mean of the first batch over all replicas to learn its shapes; a batch is a
   PerReplica there, which `reduce` does not take ("Attempt to convert a value (PerReplica:{...}) with an unsupported
   type"). Instead: the shapes of this replica's own batch.
2. `reduce_per_replica` reduces each step's results along axis 0; they are scalars ("Invalid reduction dimension 0 for
   input with 0 dimensions"). Instead: along no axis.
3. `steps_per_execution` above 1 is a traced loop over the iterator, which a distributed iterator does not take ("You
   must feed a value for placeholder tensor 'while/body/...'"). Instead: as many single steps; the results are the same.
4. `jit_compile=True`: no collective can be compiled on CPUs ("Collectives are not yet implemented for CPU devices"),
   and the process aborts at its exit. Instead: not compiled. "auto" is False there already.
5. BatchNormalization's moving averages are each worker's own. A moving average is linear, so the mean over the workers
   is what averaging at every step would have given: it is taken when an epoch's or an evaluation's results are read.
6. A metric made outside the strategy's scope has plain variables: each worker would show its own value. Its sums are
   added up over the workers before an epoch's results are read, as those of a metric made inside are.
"""

from _yurt_losses import step
from _yurt_task import multi_worker

_AVERAGES = ("moving_mean", "moving_variance")


def mend(trainer):
    """Mend `keras.src.backend.tensorflow.trainer`."""
    import tensorflow as tf

    cls = trainer.TensorFlowTrainer
    build, reduce_per_replica = cls._maybe_symbolic_build, trainer.reduce_per_replica
    make_function, jit_compile = cls._make_function, cls.jit_compile
    results = cls._get_metrics_result_or_logs

    def own_part(value):
        return value.values[0] if isinstance(value, tf.distribute.DistributedValues) else value

    def mended_build(self, iterator=None, data_batch=None):
        if iterator is None or not multi_worker(self._distribute_strategy):
            return build(self, iterator=iterator, data_batch=data_batch)
        for *_, batches in iterator:  # (step, batches) up to Keras 3.8, (first step, last step, batches) since
            data_batch = tf.nest.map_structure(own_part, next(batches))
            break
        with self.distribute_strategy.scope():
            self._symbolic_build(data_batch=data_batch)
        return None

    def mended_reduce(values, strategy, reduction):
        if multi_worker(strategy) and reduction in ("auto", "mean"):
            return trainer.tree.map_structure(lambda value: strategy.reduce("MEAN", value, axis=None), values)
        return reduce_per_replica(values, strategy, reduction)

    def mended_make(self, step_function):
        if not multi_worker(self.distribute_strategy):
            return make_function(self, step_function)
        one_execution = make_function(self, step(step_function))

        def function(iterator):
            steps = self.steps_per_execution
            if steps == 1 or not isinstance(iterator, (tf.data.Iterator, tf.distribute.DistributedIterator)):
                return one_execution(iterator)
            outputs = None
            self.steps_per_execution = 1
            try:
                for _ in range(steps):
                    try:
                        outputs = one_execution(iterator)
                    except StopIteration:
                        if outputs is None:
                            raise
                        break
            finally:
                self.steps_per_execution = steps
            return outputs

        return function

    def mended_results(self, logs):
        if multi_worker(self.distribute_strategy):
            add_up(self.distribute_strategy, "MEAN", averages(self))
            add_up(self.distribute_strategy, "SUM", outside_the_scope(self))
        return results(self, logs)

    cls._maybe_symbolic_build = mended_build
    trainer.reduce_per_replica = mended_reduce
    cls._make_function = mended_make
    cls.jit_compile = property(
        lambda self: False if multi_worker(self.distribute_strategy) else jit_compile.fget(self), jit_compile.fset
    )
    cls._get_metrics_result_or_logs = mended_results


def averages(model):
    """The moving averages that each worker keeps for itself."""
    for layer in model._flatten_layers():
        for name in _AVERAGES:
            variable = getattr(layer, name, None)
            kept = getattr(variable, "_value", None) is not None and not variable.trainable
            if kept and not getattr(layer, "synchronized", False):
                yield variable


def outside_the_scope(model):
    """The variables of metrics that were made outside the strategy's scope."""
    import tensorflow as tf

    for metric in model.metrics:
        for variable in metric.variables:
            value = getattr(variable, "_value", None)
            plain = value is not None and not isinstance(value, tf.distribute.DistributedValues)
            if plain and getattr(variable, "aggregation", "sum") == "sum":
                yield variable


def add_up(strategy, how, variables):
    """Make variables equal on all workers: their mean or their sum. All of one dtype travel together."""
    import tensorflow as tf

    by_dtype = {}
    for variable in variables:
        by_dtype.setdefault(tf.as_dtype(variable.dtype), {})[id(variable)] = variable
    for _, found in sorted(by_dtype.items(), key=lambda pair: pair[0].name):
        values = [tf.convert_to_tensor(variable) for variable in found.values()]
        flat = tf.concat([tf.reshape(value, [-1]) for value in values], axis=0)
        parts = tf.split(strategy.reduce(how, flat, axis=None), [int(tf.size(value)) for value in values])
        for variable, value, part in zip(found.values(), values, parts):
            # A copy: given a piece of another tensor, assign prints "Tensor RefCount not reliable" (TensorFlow 2.21).
            variable.assign(tf.raw_ops.DeepCopy(x=tf.reshape(part, tf.shape(value))))
