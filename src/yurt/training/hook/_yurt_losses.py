"""Losses that a custom `train_step` shows, under MultiWorkerMirroredStrategy (Keras 3.10 to 3.15).

Keras 3 divides every loss by the number of replicas where it is computed, because gradients are added up later. Its own
`train_step` multiplies again before it shows the loss; a `train_step` of the script's own does not know of it and shows
the loss divided by the number of workers. So what `compute_loss` and loss objects give is marked, and multiplied again
where that very tensor is handed to a `Mean` metric or is a result of the step. A tensor made from it is another tensor:
it is shown as it is.
"""

import functools

from _yurt_task import multi_worker

_MARK = "_yurt_divided_by"


def replicas():
    """How many replicas the strategy of this moment divides losses by; 1 where this is not our business."""
    import tensorflow as tf

    if not tf.distribute.has_strategy() or tf.distribute.in_cross_replica_context():
        return 1
    strategy = tf.distribute.get_strategy()
    return strategy.num_replicas_in_sync if multi_worker(strategy) else 1


def marked(value):
    """The same value, marked as divided. A value that takes no mark stays without."""
    count = replicas()
    if count > 1:
        try:
            setattr(value, _MARK, count)
        except (AttributeError, TypeError):
            pass
    return value


def whole(value):
    """A marked value multiplied again; any other as it is."""
    count = getattr(value, _MARK, None)
    return value if count is None else value * count


def mend_losses(module):
    """Mend `keras.src.losses.loss`: what a loss object gives is divided where it is a mean over the batch."""
    cls = module.Loss
    call = cls.__call__

    @functools.wraps(call)
    def mended_call(self, *args, **kwargs):
        value = call(self, *args, **kwargs)
        mean = self.reduction in ("sum_over_batch_size", "mean", "mean_with_sample_weight")
        return marked(value) if mean and getattr(value, "shape", None) == () else value

    cls.__call__ = mended_call


def mend_trainer(module):
    """Mend `keras.src.trainers.trainer`: what `compute_loss` gives is the sum of divided losses."""
    cls = module.Trainer
    compute_loss = cls.compute_loss

    @functools.wraps(compute_loss)
    def mended_compute(self, *args, **kwargs):
        return marked(compute_loss(self, *args, **kwargs))

    cls.compute_loss = mended_compute


def mend_mean(module):
    """Mend `keras.src.metrics.reduction_metrics`: a Mean takes a marked loss whole."""
    cls = module.Mean
    update_state = cls.update_state

    @functools.wraps(update_state)
    def mended_update(self, values, sample_weight=None):
        return update_state(self, whole(values), sample_weight=sample_weight)

    cls.update_state = mended_update


def step(step_function):
    """A step whose results show marked losses whole."""
    import tensorflow as tf

    @functools.wraps(step_function)
    def mended_step(data):
        return tf.nest.map_structure(whole, step_function(data))

    return mended_step
