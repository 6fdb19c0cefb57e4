"""Waits for a few modules of Keras 3, tf_keras and TensorFlow, and mends each right after its own code has run.

A finder on `sys.meta_path` does it, whichever way the script imports Keras. Nothing heavy is imported here, and an
error in a mend is told in one line and never breaks an import. The parts lie beside this file and are loaded by their
path; their names begin with `_yurt_`, so that the folder hides no module that a script could want.

Switches, each an environment variable::

    YURT_HOOK=0          all of this is left out (`keras: off` in a job file)
    YURT_HOOK_MENDS=0    leave Keras 3's trainer, optimizers and saving alone
    YURT_HOOK_MANNERS=1  accept what Keras 2 accepted and Keras 3 refuses; saving: only paths to save to
    YURT_HOOK_ALIAS=0    in legacy mode: `import keras` stays Keras 3
    YURT_HOOK_WAITING=0  do not measure how long `fit` waits for its input
    YURT_PROGRESS_FILE   write how far `fit` is to this file
    YURT_TRACK           trackers that each `fit` gets: tensorboard, mlflow, wandb, with commas between
"""

import importlib.machinery
import importlib.util
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
LEGACY = os.environ.get("TF_USE_LEGACY_KERAS") in ("1", "True", "true")

#: Module: (part, function) to call with it. Those of MENDS need a proven Keras 3; SHOWN, INPUT and LEGACY_SAVING any.
MENDS = {
    "keras.src.backend.tensorflow.trainer": (("_yurt_multi_worker", "mend"), ("_yurt_parameter_server", "mend")),
    "keras.src.backend.tensorflow.core": (("_yurt_parameter_server", "mend_variables"),),
    "keras.src.backend.tensorflow.optimizer": (("_yurt_gradients", "mend"),),
    "keras.src.losses.loss": (("_yurt_losses", "mend_losses"),),
    "keras.src.trainers.trainer": (("_yurt_losses", "mend_trainer"),),
    "keras.src.metrics.reduction_metrics": (("_yurt_losses", "mend_mean"),),
    "keras.src.models.model": (("_yurt_saving", "mend_models"),),
    "keras.src.utils.file_utils": (("_yurt_saving", "mend_folders"),),
    "keras.src.callbacks.backup_and_restore": (("_yurt_backup", "mend"),),
    "keras.src.saving.saving_api": (("_yurt_saving", "mend_functions"),),
}
SAVING_MANNERS = {
    "keras.src.models.model": (("_yurt_manners", "model"),),
    "keras.src.saving.saving_api": (("_yurt_manners", "saving"),),
}
MANNERS = {
    **SAVING_MANNERS,
    "keras.src.metrics.metric": (("_yurt_manners", "metric"),),
    "keras.src.callbacks.model_checkpoint": (("_yurt_manners", "model_checkpoint"),),
    "keras.src.optimizers.base_optimizer": (("_yurt_manners", "optimizer"),),
    "keras.src.legacy.backend": (("_yurt_manners", "backend"),),
    "keras.backend": (("_yurt_manners", "public_backend"),),
    "keras._tf_keras.keras.backend": (("_yurt_manners", "public_backend"),),
    "keras.utils": (("_yurt_manners", "utils"),),
    "keras._tf_keras.keras.utils": (("_yurt_manners", "utils"),),
    "keras.optimizers.legacy": (("_yurt_manners", "optimizers"),),
    "keras._tf_keras.keras.optimizers.legacy": (("_yurt_manners", "optimizers"),),
    "keras.callbacks": (("_yurt_manners", "callbacks"),),
    "keras._tf_keras.keras.callbacks": (("_yurt_manners", "callbacks"),),
}
SHOWN = {
    "keras.src.callbacks.callback_list": (("_yurt_fit", "mend_callbacks"),),
    "keras.src.backend.tensorflow.trainer": (("_yurt_progress", "mend_iterator"),),
    "tf_keras.src.callbacks": (("_yurt_fit", "mend_callbacks"),),
    "tf_keras.src.engine.data_adapter": (("_yurt_progress", "mend_handler"),),
}
INPUT = {"tensorflow.python.data.ops.multi_device_iterator_ops": (("_yurt_input", "mend"),)}
LEAVING = {"tensorflow.python.distribute.failure_handling.failure_handling": (("_yurt_leaving", "mend"),)}
LEGACY_SAVING = {
    "tf_keras.src.engine.training": (("_yurt_saving", "mend_legacy"),),
    "tf_keras.src.saving.saving_api": (("_yurt_saving", "mend_functions"),),
}

#: Parts that others import by name, in the order in which they can be loaded.
FOR_ALL = (
    "_yurt_task",
    "_yurt_losses",
    "_yurt_saving",
    "_yurt_waiting",
    "_yurt_leaving",
    "_yurt_tracking",
    "_yurt_progress",
)


def own(name):
    """A part of the hook, by its path."""
    if name not in sys.modules:
        for part in FOR_ALL[: FOR_ALL.index(name)] if name in FOR_ALL else FOR_ALL:
            own(part)
        spec = importlib.machinery.PathFinder.find_spec(name, [HERE])  # a folder, or a place in a zip file
        module = sys.modules[name] = importlib.util.module_from_spec(spec)
        try:
            spec.loader.exec_module(module)
        except BaseException:
            del sys.modules[name]
            raise
    return sys.modules[name]


def proven():
    """Whether the installed Keras 3 is one that the mends were proven with; said once where it is not."""
    from keras.src.version import __version__

    table = own("_yurt_proven").PROVEN
    known = ".".join(__version__.split(".")[:2]) in table
    if not known and own("_yurt_task").workers() > 1:
        text = f"Keras {__version__} is left as it is: Yurt's mends are proven with {', '.join(table)}"
        own("_yurt_task").say(text)
    return known


class Loader:
    """The module's own loader, and then the mends."""

    def __init__(self, inner, mends, shown):
        self.inner, self.mends, self.shown = inner, mends, shown

    def __getattr__(self, name):
        return getattr(self.inner, name)  # get_code, get_source, is_package: the real loader answers

    def create_module(self, spec):
        """As the real loader does."""
        return self.inner.create_module(spec)

    def exec_module(self, module):
        """As the real loader does, and then the mends."""
        self.inner.exec_module(module)
        self.mend(module)

    def mend(self, module):
        """Each mend by itself."""
        for part, function in (*self._mends(), *self.shown):
            try:
                getattr(own(part), function)(module)
            except Exception as error:
                print(f"yurt: {module.__name__} is left as it is: {error!r}", file=sys.stderr, flush=True)

    def _mends(self):
        try:
            return self.mends if self.mends and proven() else ()
        except Exception as error:
            print(f"yurt: Keras is left as it is: {error!r}", file=sys.stderr, flush=True)
            return ()


class Finder:
    """Finds the modules that are waited for, each once."""

    mends: dict = {}  # noqa: RUF012 - both are filled by set_up
    shown: dict = {}  # noqa: RUF012

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        """Another loader for a module that is waited for; None, which is "ask the next finder", for any other."""
        mends, shown = cls.mends.pop(name, ()), cls.shown.pop(name, ())
        if not mends and not shown:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = Loader(spec.loader, mends, shown)
        return spec


def set_up():
    """Put the finders where Python asks first."""
    if os.environ.get("YURT_HOOK") == "0":
        return
    if os.environ.get("YURT_HOOK_MENDS") != "0":
        manners = {"1": MANNERS, "saving": SAVING_MANNERS}.get(os.environ.get("YURT_HOOK_MANNERS"), {})
        for table in (MENDS, manners):
            for name, functions in table.items():
                Finder.mends[name] = (*Finder.mends.get(name, ()), *functions)
    Finder.shown = {**SHOWN, **LEGACY_SAVING, **INPUT, **LEAVING}
    sys.meta_path.insert(0, Finder)
    if LEGACY and os.environ.get("YURT_HOOK_ALIAS") != "0":
        sys.meta_path.insert(0, own("_yurt_alias").Alias)


def mend_imported():
    """Mend what was imported before the finders came; see `yurt.training`."""
    for name in [*Finder.mends, *Finder.shown]:
        module = sys.modules.get(name)
        if module is not None:
            Loader(None, Finder.mends.pop(name, ()), Finder.shown.pop(name, ())).mend(module)
