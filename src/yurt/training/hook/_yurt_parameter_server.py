"""Keras 3's `fit`, `evaluate` and `predict` under ParameterServerStrategy (Keras 3.10 to 3.15, TensorFlow 2.21).

As shipped `fit` fails before the first step ("To use this dataset, you need to pass this dataset to
ClusterCoordinator.create_per_worker_dataset"). Here, as in Keras 2, the chief has a ClusterCoordinator: each worker
gets a dataset of its own, a step is scheduled on whichever worker is free, and an epoch ends when all its steps have
been done. `predict` runs on the chief, where its order is kept. Results are read from the metrics once an epoch is
over; a batch has none.

Two things about variables, in own loops too:

- Keras 3 writes `assign_add(x)` as `assign(self + x)`. Between a worker's reading and writing another one may write,
  and its update is lost: steps and metrics count too little, without an error. Here the ps adds, in one operation.
- With a `variable_partitioner` and more than one ps TensorFlow makes a ShardedVariable, which Keras 3 cannot hold (no
  attribute 'handle'). Keras's variables stay whole and are spread over the ps one by one.
"""

import threading
from types import SimpleNamespace

from _yurt_task import parameter_server, say

_local = threading.local()  # .predicts: the chief iterates by itself


def mend(trainer):
    """Mend `keras.src.backend.tensorflow.trainer`."""
    mend_iterator(trainer)
    mend_steps(trainer)
    for name in ("train_on_batch", "test_on_batch"):
        refuse(trainer.TensorFlowTrainer, name)


def mend_iterator(trainer):
    """The data of an epoch: one dataset a worker, and the wait for all steps at the epoch's end."""
    import tensorflow as tf
    from keras.src.trainers.epoch_iterator import EpochIterator

    cls = trainer.TFEpochIterator
    init, sync = cls.__init__, cls.tf_sync

    def mended_init(self, distribute_strategy=None, *args, **kwargs):
        self._yurt_coordinator = None
        if not parameter_server(distribute_strategy):
            init(self, distribute_strategy, *args, **kwargs)
            return
        EpochIterator.__init__(self, *args, **kwargs)
        self._distribute_strategy = distribute_strategy
        make = getattr(self.data_adapter, "dataset_fn", None)  # Keras 2's DatasetCreator, see _yurt_manners
        self._dataset = make(tf.distribute.InputContext()) if make else self.data_adapter.get_tf_dataset()
        if getattr(_local, "predicts", False):
            self._distributed_dataset = self._dataset
            return
        self._yurt_coordinator = tf.distribute.coordinator.ClusterCoordinator(distribute_strategy)
        for_each = (lambda: distribute_strategy.distribute_datasets_from_function(make)) if make else self._dataset
        self._distributed_dataset = self._yurt_coordinator.create_per_worker_dataset(for_each)

    def mended_sync(self):
        return self._yurt_coordinator.join() if self._yurt_coordinator else sync(self)

    cls.__init__, cls.tf_sync = mended_init, mended_sync


def mend_steps(trainer):
    """The steps: scheduled instead of run, their results read from the metrics."""
    import tensorflow as tf

    cls = trainer.TensorFlowTrainer
    build, make_function, results = cls._maybe_symbolic_build, cls._make_function, cls._get_metrics_result_or_logs
    make_predict, predict = cls.make_predict_function, cls.predict

    def mended_build(self, iterator=None, data_batch=None):
        if iterator is None or not parameter_server(self._distribute_strategy):
            return build(self, iterator=iterator, data_batch=data_batch)
        shapes = trainer.tree.map_structure(
            lambda spec: SimpleNamespace(shape=tuple(spec.shape), dtype=spec.dtype.name), iterator._dataset.element_spec
        )
        with self.distribute_strategy.scope():
            self._symbolic_build(data_batch=shapes)
        return None

    def mended_make(self, step_function):
        strategy = self.distribute_strategy
        if not parameter_server(strategy):
            return make_function(self, step_function)
        if self.run_eagerly:
            say("run_eagerly is ignored under ParameterServerStrategy: its steps run on other machines")
        coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)

        @tf.autograph.experimental.do_not_convert
        def execution(iterator):
            for _ in range(self.steps_per_execution):
                outputs = strategy.run(step_function, args=(next(iterator),))
            return outputs

        execution = tf.function(execution, reduce_retracing=True)

        def function(iterator):
            coordinator.schedule(execution, args=(iterator,))
            return {}

        return function

    def mended_make_predict(self, force=False):
        if not parameter_server(self.distribute_strategy):
            return make_predict(self, force)
        step = tf.function(self.predict_step, reduce_retracing=True, autograph=False)
        self.predict_function = lambda data: step(data[0])
        return self.predict_function

    def mended_predict(self, *args, **kwargs):
        _local.predicts = parameter_server(self.distribute_strategy)
        try:
            return predict(self, *args, **kwargs)
        finally:
            _local.predicts = False

    def mended_results(self, logs):
        if parameter_server(self.distribute_strategy):
            return self.get_metrics_result()
        return results(self, logs)

    cls._maybe_symbolic_build, cls._make_function, cls._get_metrics_result_or_logs = (
        mended_build,
        mended_make,
        mended_results,
    )
    cls.make_predict_function, cls.predict = mended_make_predict, mended_predict


def refuse(cls, name):
    """A method that makes no sense of a single batch here says so."""
    method = getattr(cls, name)

    def refusing(self, *args, **kwargs):
        if parameter_server(self.distribute_strategy):
            raise ValueError(f"{name} does not work under ParameterServerStrategy: use fit, or a ClusterCoordinator")
        return method(self, *args, **kwargs)

    setattr(cls, name, refusing)


def mend_variables(core):
    """Mend `keras.src.backend.tensorflow.core`: how variables are made and added to."""
    import tensorflow as tf

    cls = core.Variable
    initialize, assign_add, assign_sub = cls._initialize, cls.assign_add, cls.assign_sub

    def on_ps(variable):
        return getattr(variable, "_value", None) is not None and parameter_server(tf.distribute.get_strategy())

    def mended_add(self, value):
        if not on_ps(self):
            return assign_add(self, value)
        return self._value.assign_add(tf.cast(value, self._value.dtype))

    def mended_sub(self, value):
        if not on_ps(self):
            return assign_sub(self, value)
        return self._value.assign_sub(tf.cast(value, self._value.dtype))

    def mended_initialize(self, value):
        extended = tf.distribute.get_strategy().extended
        partitioner = getattr(extended, "_variable_partitioner", None)
        if partitioner is None or not parameter_server(tf.distribute.get_strategy()):
            return initialize(self, value)
        say("Keras 3's variables are not partitioned: each lies whole on one ps, which must have room for the largest")
        extended._variable_partitioner = None
        try:
            return initialize(self, value)
        finally:
            extended._variable_partitioner = partitioner

    cls._initialize, cls.assign_add, cls.assign_sub = mended_initialize, mended_add, mended_sub
