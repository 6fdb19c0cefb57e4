"""Keras 3's BackupAndRestore with several workers: one backup for all (Keras 3.10 to 3.15).

As shipped every worker keeps its own: in one folder they lock each other out (BlockingIOError), in folders of their own
they may resume from different epochs. And the file is written in place, so that a task killed while it saves cannot
resume. Here the leader alone keeps the backup, whole and by rename, with its epoch inside (weights and epoch cannot be
of different moments), and at the start all workers take epoch, weights and optimizer from the leader. So one folder for
all does, and a folder each does.

And at a good end it removes the whole folder as shipped, with whatever else lies in it; here its own files alone, and
the folder only if it made it and nothing else is in it.
"""

import os

from _yurt_saving import beside
from _yurt_task import multi_worker

_EPOCH = "yurt_epoch"


def mend(module):
    """Mend `keras.src.callbacks.backup_and_restore`."""
    import tensorflow as tf

    cls = module.BackupAndRestore
    load, save, end = cls._load_model, cls._save_model, cls.on_train_end

    def gang(self):
        """The strategy if there are several workers, and whether this one keeps the backup."""
        strategy = getattr(self.model, "distribute_strategy", None)
        if strategy is None or not multi_worker(strategy):
            return None, True
        return strategy, strategy.extended.should_checkpoint

    def load_own(self):
        load(self)
        epoch = epoch_in(self._weights_path)
        if epoch is not None:
            self.model._initial_epoch = epoch

    def mended_load(self):
        strategy, leads = gang(self)
        if strategy is None:
            load_own(self)
            return
        model = self.model
        model._initial_epoch = 0
        if leads:
            load_own(self)

        def the_leaders(value):
            return strategy.reduce("SUM", value if leads else tf.zeros_like(value), axis=None)

        epoch = int(the_leaders(tf.constant(model._initial_epoch, tf.int64)))
        if not epoch:
            return
        optimizer = model.optimizer
        if optimizer is not None and not optimizer.built:
            optimizer.build(model.trainable_variables)
        for variable in [*model.weights, *(optimizer.variables if optimizer is not None else [])]:
            variable.assign(the_leaders(tf.convert_to_tensor(variable)))
        model._initial_epoch = epoch

    def mended_save(self):
        if not gang(self)[1]:
            return
        if "://" in str(self._weights_path):
            save(self)
            return
        if not os.path.isdir(self.backup_dir):
            os.makedirs(self.backup_dir, exist_ok=True)
            self._yurt_made = True
        if self.double_checkpoint and os.path.exists(self._weights_path):
            module.file_utils.copy(self._weights_path, self._prev_weights_path)
        whole_file(self._weights_path, lambda path: self.model.save_weights(path, overwrite=True), self._current_epoch)
        # For a Keras without this mend that takes the run over.
        text = module.json.dumps({"epoch": self._current_epoch, "batch": self._last_batch_seen})
        part = beside(self._training_metadata_path)
        with open(part, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(part, self._training_metadata_path)

    def mended_end(self, logs=None):
        if not gang(self)[1]:
            return
        if not self.delete_checkpoint or "://" in str(self._weights_path):
            end(self, logs)
            return
        for path in (self._weights_path, self._training_metadata_path):
            for own in (path, f"{path}.bkp"):
                if os.path.lexists(own):
                    os.remove(own)
        if getattr(self, "_yurt_made", False) and not os.listdir(self.backup_dir):
            os.rmdir(self.backup_dir)

    cls._load_model, cls._save_model, cls.on_train_end = mended_load, mended_save, mended_end


def whole_file(path, save, epoch):
    """Write the weights with their epoch beside the path, and rename."""
    import h5py

    own = beside(path)
    try:
        save(own)
        with h5py.File(own, "a") as file:
            file.attrs[_EPOCH] = epoch
        os.replace(own, path)
    finally:
        if os.path.lexists(own):
            os.remove(own)


def epoch_in(path):
    """The epoch that the weights in this file were saved after; None where it does not say."""
    import h5py

    if "://" in str(path) or not os.path.exists(path):
        return None
    with h5py.File(path, "r") as file:
        epoch = file.attrs.get(_EPOCH)
    return None if epoch is None else int(epoch)
