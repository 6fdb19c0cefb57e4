"""How long `fit` waits for its input: for its own iterator, never for other workers.

The traced train function gets each batch by one operation (TensorFlow 2.21: IteratorGetNext, or its AsOptional form
under a distributed iterator). Two timestamps around it, tied to it by control dependencies, are added up in one
variable: what collectives wait for comes later and is not counted. An eager step is timed in Python. What is not `fit`
(validation, `predict`, iterators of the script's own) is built as ever.

Nothing here changes a result or breaks a script: on any doubt nothing is measured. TensorFlow has no timestamps where
operations must be deterministic, so nothing is measured there either. YURT_HOOK_WAITING=0 turns it off.
"""

import os
import threading
import time

from _yurt_task import multi_worker, parameter_server, say, workers

_thread = threading.local()  # .training: whether this thread is inside a train function of `fit`
_meter = None


class Meter:
    """Seconds that this process has waited for input in `fit`, over all of its replicas."""

    def __init__(self):
        import tensorflow as tf
        from tensorflow.python.ops import resource_variable_ops

        self.eager_s = 0.0
        # By its own class: no strategy's scope makes copies of it, none adds it up.
        with tf.init_scope(), tf.device("/device:CPU:0"):
            self.traced_s = resource_variable_ops.ResourceVariable(0.0, dtype=tf.float64, trainable=False)

    def seconds(self):
        """All until now."""
        return self.eager_s + float(self.traced_s.numpy())


def measure(model):
    """Measure this model's `fit` from now on: (meter, how many replicas wait side by side), or None.

    To be called where the train function is there and has not run, as in `on_train_begin`.
    """
    global _meter
    strategy = getattr(model, "distribute_strategy", None)
    train = getattr(model, "train_function", None)
    if os.environ.get("YURT_HOOK_WAITING") == "0" or not callable(train) or parameter_server(strategy):
        return None
    if multi_worker(strategy) and any(base.__module__.startswith("tf_keras.") for base in type(model).__mro__):
        return None  # there it told 94 % of a run whose input was ready (one thread each): not understood
    try:
        from tensorflow.python.framework import config

        if config.is_op_determinism_enabled():
            return None
        if _meter is None:
            meter = Meter()
            time_iterators(meter)
            _meter = meter
        if not hasattr(train, "yurt_inner"):
            model.train_function = noting(train)
        replicas = getattr(strategy, "num_replicas_in_sync", 1)
        return _meter, max(replicas // workers() if multi_worker(strategy) else replicas, 1)
    except Exception as error:
        doubt(error)
        return None


def end(model):
    """Give the model its train function back."""
    inner = getattr(getattr(model, "train_function", None), "yurt_inner", None)
    if inner is not None:
        model.train_function = inner


def noting(train):
    """The train function, noting that it runs: it is traced while it runs first."""

    def train_function(*args, **kwargs):
        before, _thread.training = getattr(_thread, "training", False), True
        try:
            return train(*args, **kwargs)
        finally:
            _thread.training = before

    train_function.yurt_inner = train
    return train_function


def time_iterators(meter):
    """Mend the two operations that take a batch from an iterator."""
    from tensorflow.python.ops import gen_dataset_ops

    for name in ("iterator_get_next", "iterator_get_next_as_optional"):
        setattr(gen_dataset_ops, name, timed(getattr(gen_dataset_ops, name), meter))


def timed(operation, meter):
    """The operation with the time that it takes added up, inside a train function of `fit`."""
    import tensorflow as tf

    def get_next(*args, **kwargs):
        if not getattr(_thread, "training", False):
            return operation(*args, **kwargs)
        if tf.executing_eagerly():
            begun = time.perf_counter()
            try:
                return operation(*args, **kwargs)
            finally:
                meter.eager_s += time.perf_counter() - begun
        begun = stamp()
        with tf.control_dependencies([] if begun is None else [begun]):
            result = operation(*args, **kwargs)
        if begun is not None:
            add(meter, begun, result)
        return result

    return get_next


def stamp():
    """The time when the step gets here, as an operation of the graph; None where there can be none."""
    import tensorflow as tf
    from tensorflow.python.framework import ops

    try:
        with ops.colocate_with(None, ignore_existing=True), tf.device("/device:CPU:0"):
            return tf.timestamp()
    except Exception as error:
        doubt(error)
        return None


def add(meter, begun, result):
    """Add the time from `begun` until `result` is there."""
    import tensorflow as tf

    try:
        first = (result if isinstance(result, (list, tuple)) else [result])[:1]
        if first:
            with tf.control_dependencies(first):
                ended = stamp()
            if ended is not None:
                meter.traced_s.assign_add(ended - begun, read_value=False)
    except Exception as error:
        doubt(error)


def doubt(error):
    """Say once why nothing is measured."""
    say(f"how long fit waits for its input is not told: {error!r}")
