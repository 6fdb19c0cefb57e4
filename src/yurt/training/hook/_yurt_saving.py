"""Several workers save to one path: each writes beside it and then renames (Keras 3.10 to 3.15, tf_keras 2.21).

An ordinary script saves in every worker, and on one machine or a shared folder that is one path. Keras writes in place:
two writers end in an error of HDF5's lock, or in half of a file of each. Mirrored weights are the same on all workers,
so whoever renames last leaves a whole and right file, and a worker that is killed while it saves leaves the old one.
A SavedModel is a folder: it is renamed whole where there is none, else moved in file by file, its `saved_model.pb`
last; what else lies in the folder stays. Paths with a scheme (gs://...) are left to Keras.
"""

import functools
import os
import shutil
import time

from _yurt_task import leads, several


def beside(path):
    """A path that no other process writes to, in the same folder and with the same ending."""
    folder, name = os.path.split(path)
    return os.path.join(folder, f".{os.uname().nodename}-{os.getpid()}.{name}")


def safely(method, takes):
    """The saving method, writing beside the path that it is given; `takes` says which paths."""

    @functools.wraps(method)
    def save(self, filepath=None, *args, **kwargs):
        if filepath is None:
            return method(self, *args, **kwargs)
        path = os.fspath(filepath)
        local = isinstance(path, str) and "://" not in path
        if not local or not several() or not takes(path) or kwargs.get("zipped") is False:
            return method(self, filepath, *args, **kwargs)
        path = os.path.abspath(path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        own, began = beside(path), time.time()
        try:
            result = method(self, own, *args, **kwargs)
            move(own, path, began)
            return result
        finally:
            if os.path.isdir(own):
                shutil.rmtree(own, ignore_errors=True)
            elif os.path.lexists(own):
                os.remove(own)

    return save


def move(own, path, began):
    """Put what was written where it belongs."""
    if os.path.isfile(own):
        os.replace(own, path)
        return
    try:
        os.rename(own, path)  # a new folder, or an empty one
        return
    except OSError:
        pass
    mark = os.path.join(path, "saved_model.pb")
    if not leads() and os.path.exists(mark) and os.path.getmtime(mark) >= began:
        return  # another worker has written the same model since we began
    files = [os.path.relpath(os.path.join(folder, name), own) for folder, _, names in os.walk(own) for name in names]
    for name in sorted(files, key=lambda name: name == "saved_model.pb"):
        os.makedirs(os.path.dirname(os.path.join(path, name)), exist_ok=True)
        os.replace(os.path.join(own, name), os.path.join(path, name))


def mend_models(module):
    """Mend `keras.src.models.model`."""
    cls = module.Model
    cls.save = safely(cls.save, lambda path: True)
    cls.save_weights = safely(cls.save_weights, lambda path: not path.endswith(".weights.json"))
    cls.export = safely(cls.export, lambda path: True)


def mend_functions(module):
    """Mend `saving_api` of either Keras: `models.save_model`, which the method `save` goes through as well."""
    mark = f".{os.uname().nodename}-{os.getpid()}."
    module.save_model = safely(module.save_model, lambda path: not os.path.basename(path).startswith(mark))


def mend_legacy(module):
    """Mend `tf_keras.src.engine.training`; its ModelCheckpoint keeps workers apart by itself."""
    cls = module.Model
    cls.save = safely(cls.save, lambda path: True)
    cls.export = safely(cls.export, lambda path: True)
    cls.save_weights = safely(cls.save_weights, lambda path: path.endswith((".h5", ".keras")))


def mend_folders(module):
    """Mend `keras.src.utils.file_utils`: two workers make one folder at the same moment."""
    make = module.makedirs

    @functools.wraps(make)
    def makedirs(path):
        try:
            return make(path)
        except FileExistsError:
            if not os.path.isdir(path):
                raise
            return None

    module.makedirs = makedirs
