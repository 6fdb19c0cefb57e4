"""Keras 3's optimizers under MultiWorkerMirroredStrategy: clipping, and gradient accumulation.

Clipping. Keras 3 clips the gradients of each replica and then adds them up, so that two workers take up to twice the
step that one process would; Keras 2 added up first. Here they are added up before they are clipped (`clipnorm`,
`global_clipnorm`, `clipvalue`), and not once more afterwards.

Accumulation. `gradient_accumulation_steps` chooses between "update" and "only accumulate" with a traced `cond`, and the
update changes replica contexts inside of it, which TensorFlow refuses ("merge_call called while defining a new graph or
a tf.function"). Here gradients are added up over the workers at every step, and each variable is updated where it lies,
with the choice inside. Under ParameterServerStrategy workers would add into the same accumulators at the same time:
refused in one sentence.
"""

import threading

from _yurt_task import multi_worker, parameter_server, say

_local = threading.local()  # .summed: the optimizer whose gradients have been added up and not been used yet


def mend(module):
    """Mend `keras.src.backend.tensorflow.optimizer`."""
    import tensorflow as tf

    cls = module.TFOptimizer
    clip, all_reduce, apply = cls._clip_gradients, cls._all_reduce_sum_gradients, cls._backend_apply_gradients

    def replica():
        context = tf.distribute.get_replica_context() if tf.distribute.has_strategy() else None
        return context if context is not None and multi_worker(context.strategy) else None

    def mended_clip(self, grads):
        clips = self.clipnorm or self.global_clipnorm or self.clipvalue
        context = replica() if clips else None
        if context is None:
            return clip(self, grads)
        summed = add_up(context, list(grads))
        _local.summed = self
        return clip(self, summed)

    def add_up(context, grads):
        summed = iter(context.all_reduce(tf.distribute.ReduceOp.SUM, [grad for grad in grads if grad is not None]))
        return [None if grad is None else next(summed) for grad in grads]

    def mended_all_reduce(self, grads_and_vars):
        if getattr(_local, "summed", None) is self:
            _local.summed = None
            return list(grads_and_vars)
        return all_reduce(self, grads_and_vars)

    def mended_apply(self, grads, trainable_variables):
        if not self.gradient_accumulation_steps:
            return apply(self, grads, trainable_variables)
        if tf.distribute.has_strategy() and parameter_server(tf.distribute.get_strategy()):
            raise ValueError(
                "gradient_accumulation_steps does not work under ParameterServerStrategy: its workers would add into "
                "the same accumulators at once; use a larger batch, or MultiWorkerMirroredStrategy"
            )
        context = replica()
        if context is None:
            return apply(self, grads, trainable_variables)
        return accumulate(self, context, list(grads), list(trainable_variables))

    def accumulate(self, context, grads, variables):
        """Keras's own arithmetic, with the choice inside each variable's update."""
        steps = self.gradient_accumulation_steps
        updates = tf.equal((tf.convert_to_tensor(self._iterations) + 1) % steps, 0)
        accumulators = [self._accumulated_gradients[self._get_variable_index(variable)] for variable in variables]
        totals = [
            tf.convert_to_tensor(grad) + tf.convert_to_tensor(kept)
            for grad, kept in zip(add_up(context, grads), accumulators)
        ]
        clipped = clip(self, [total / steps for total in totals])
        decays = [self.weight_decay is not None and self._use_weight_decay(variable) for variable in variables]

        def update(variable, grad, updates, decay):
            def change():
                rate = tf.cast(self.learning_rate, variable.dtype)
                if decay:
                    variable.assign_sub(variable * tf.cast(self.weight_decay, variable.dtype) * rate)
                self.update_step(grad, variable, self.learning_rate)
                return tf.constant(True)

            tf.cond(updates, change, lambda: tf.constant(False))

        def keep(kept, total, updates):
            kept.assign(tf.where(updates, tf.zeros_like(total), total))

        def everywhere(strategy, totals, clipped, updates):
            for variable, grad, decay in zip(variables, clipped, decays):
                strategy.extended.update(plain(variable), update, args=(grad, updates, decay), group=False)
            for kept, total in zip(accumulators, totals):
                strategy.extended.update(plain(kept), keep, args=(total, updates), group=False)

        context.merge_call(everywhere, args=(totals, clipped, updates))
        if self.use_ema:
            if self.ema_overwrite_frequency:
                say("ema_overwrite_frequency is ignored where gradients are accumulated on several workers")
            self._update_model_variables_moving_average(self._trainable_variables)

    cls._clip_gradients = mended_clip
    cls._all_reduce_sum_gradients = mended_all_reduce
    cls._backend_apply_gradients = mended_apply


def plain(variable):
    """TensorFlow's variable inside of Keras's."""
    return getattr(variable, "value", variable) if not callable(getattr(variable, "value", None)) else variable
