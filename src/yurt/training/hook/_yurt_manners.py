"""What Keras 2 accepted and Keras 3 refuses, turned into what was meant; each time said in one line.

For scripts of the Keras 2 years where tf_keras is not installed. Legacy Keras is the better answer: this knows only the
few things below, and refuses `decay`. Saving to a path of any ending is taken from every script that gets Keras 3
without being asked: the ending shows when all is trained, and the model would be lost.
"""

import os
from types import SimpleNamespace

from _yurt_task import say

_OPTIMIZERS = ("Adam", "SGD", "RMSprop", "Adagrad", "Adadelta", "Adamax", "Nadam", "Ftrl")


def model_checkpoint(module):
    """`ModelCheckpoint` with a path of any ending, `period` and `options`."""
    cls = module.ModelCheckpoint
    init = cls.__init__

    def mended_init(
        self, filepath, monitor="val_loss", verbose=0, save_best_only=False, save_weights_only=False, *args, **kwargs
    ):
        path = os.fspath(filepath)
        endings = (".weights.h5",) if save_weights_only else (".keras", ".h5")
        if not path.endswith(endings):
            say(f"Keras 3: ModelCheckpoint's path {path!r} gets the ending {endings[0]}")
            path += endings[0]
        for name in ("options", "period"):
            if kwargs.pop(name, None) is not None:
                say(f"Keras 3: ModelCheckpoint's {name} is ignored")
        init(self, path, monitor, verbose, save_best_only, save_weights_only, *args, **kwargs)

    cls.__init__ = mended_init


def optimizer(module):
    """`optimizer.lr`."""
    module.BaseOptimizer.lr = property(
        lambda self: self.learning_rate, lambda self, value: setattr(self, "learning_rate", value)
    )


def metric(module):
    """`metric.reset_states()`."""
    module.Metric.reset_states = lambda self: self.reset_state()


def model(module):
    """`model.save` to a path of any ending: a SavedModel for serving, as `export` writes it; `save_format`.

    `save_weights` and `load_weights` of one path: both get the ending that Keras 3 wants.
    """
    cls = module.Model
    save, save_weights, load_weights = cls.save, cls.save_weights, cls.load_weights

    def mended_save(self, filepath, overwrite=True, zipped=None, **kwargs):
        path, form = os.fspath(filepath), kwargs.pop("save_format", None)
        for name in ("include_optimizer", "signatures", "options", "save_traces"):
            kwargs.pop(name, None)
        if path.endswith((".keras", ".h5", ".hdf5")):
            return save(self, path, overwrite=overwrite, zipped=zipped, **kwargs)
        if form in ("h5", "keras"):
            return save(self, f"{path}.{form}", overwrite=overwrite, zipped=zipped, **kwargs)
        say(f"Keras 3: model.save({path!r}) writes a SavedModel for serving, without the optimizer")
        return self.export(path)

    def mended_save_weights(self, filepath, overwrite=True, **kwargs):
        path = os.fspath(filepath)
        for name in ("save_format", "options"):
            kwargs.pop(name, None)
        if not path.endswith((".weights.h5", ".weights.json")):
            say(f"Keras 3: save_weights({path!r}) gets the ending .weights.h5")
            path += ".weights.h5"
        return save_weights(self, path, overwrite=overwrite, **kwargs)

    def mended_load_weights(self, filepath, *args, **kwargs):
        if isinstance(filepath, str) and not os.path.isfile(filepath) and os.path.isfile(filepath + ".weights.h5"):
            filepath += ".weights.h5"
        return load_weights(self, filepath, *args, **kwargs)

    cls.save, cls.save_weights, cls.load_weights = mended_save, mended_save_weights, mended_load_weights


def saving(module):
    """`models.save_model` to a path of any ending."""
    save_model = module.save_model

    def mended_save_model(model, filepath, *args, **kwargs):
        if os.fspath(filepath).endswith((".keras", ".h5", ".hdf5")) and "save_format" not in kwargs:
            return save_model(model, filepath, *args, **kwargs)
        return model.save(filepath, *args, **kwargs)

    module.save_model = mended_save_model


def backend(module):
    """`set_value` of Keras 3.15's own `legacy.backend`, where a variable's dtype is a text ("no attribute 'name'")."""
    import numpy as np

    def set_value(x, value):
        x.assign(np.asarray(value, dtype=getattr(x.dtype, "name", x.dtype)))

    module.set_value = set_value


def public_backend(module):
    """`keras.backend.set_value`, `get_value` and their like."""
    import keras.src.legacy.backend as legacy

    for name in ("set_value", "get_value", "batch_set_value", "eval"):
        function = getattr(legacy, name, None)
        if function is not None and (name == "set_value" or not hasattr(module, name)):
            setattr(module, name, function)
    if not hasattr(module, "get_value"):
        module.get_value = lambda variable: variable.numpy()


def utils(module):
    """`utils.experimental.DatasetCreator`."""
    import tensorflow as tf
    from keras.src.trainers.data_adapters.data_adapter import DataAdapter

    class DatasetCreator(DataAdapter):
        """A function that makes the dataset, called on each worker."""

        num_batches = batch_size = has_partial_batch = partial_batch_size = None

        def __init__(self, dataset_fn, input_options=None):
            self.dataset_fn, self.input_options = dataset_fn, input_options

        def get_tf_dataset(self):
            """The dataset of this task."""
            return tf.distribute.get_strategy().distribute_datasets_from_function(self.dataset_fn)

    if not hasattr(module, "experimental"):
        module.experimental = SimpleNamespace(DatasetCreator=DatasetCreator)


def optimizers(module):
    """`optimizers.legacy.Adam` and its like, with `lr`: Keras 3 has the module, and its classes only raise."""
    import keras.src.optimizers as real

    def maker(name):
        def make(*args, lr=None, decay=None, **kwargs):
            if lr is not None:
                kwargs["learning_rate"] = lr
            if decay:
                raise ValueError("decay= needs Keras 2: install tf_keras, or use a learning rate schedule")
            say(f"Keras 3: optimizers.legacy.{name} is Keras 3's {name}")
            return getattr(real, name)(*args, **kwargs)

        return make

    for name in _OPTIMIZERS:
        if hasattr(real, name):
            setattr(module, name, maker(name))


def callbacks(module):
    """`callbacks.experimental.BackupAndRestore`."""
    if not hasattr(module, "experimental"):
        module.experimental = SimpleNamespace(BackupAndRestore=module.BackupAndRestore)
