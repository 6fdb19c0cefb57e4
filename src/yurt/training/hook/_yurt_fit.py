"""What every `fit` gets, of Keras 3 and of tf_keras: progress, the trackers of the job file, an ear for SIGTERM.

Two more things belong to `fit` and to nothing else. A progress bar that goes into a file or a pipe is one endless line
of backspaces ("auto" means a bar there too: Keras 3.15, tf_keras 2.21): there it becomes a line an epoch. And `fit`
under no strategy, where TF_CONFIG names several workers, is said in one line: each would train a model of its own.
"""

import os
import sys

import _yurt_leaving
import _yurt_progress
import _yurt_tracking
from _yurt_task import cluster, say, workers


def mend_callbacks(module):
    """Mend the module that has `CallbackList`: Keras 3's `callbacks.callback_list`, tf_keras's `callbacks`."""
    cls = module.CallbackList
    init = cls.__init__
    path = os.environ.get("YURT_PROGRESS_FILE")
    legacy = module.__name__.startswith("tf_keras")
    Progress = _yurt_progress.progress_callback(module.Callback)
    Leaving = _yurt_leaving.leaving_callback(module.Callback)
    # tf_keras measures the callbacks that it does not know by name, and warns of slow ones.
    module.YurtProgress, module.YurtLeaving = Progress, Leaving

    def more(model, given):
        warn_of_no_strategy(model)
        if path:
            yield Progress(path, _yurt_progress.share_of_batch(model))
        if _yurt_leaving.wanted(model, given):
            yield Leaving()
        yield from _yurt_tracking.callbacks(_yurt_tracking.names(), given, legacy)

    def mended_init(self, callbacks=None, add_history=False, add_progbar=False, model=None, **params):
        if "verbose" in params:
            params["verbose"] = for_the_output(params["verbose"])
        if add_history and model is not None:  # `fit`; evaluate and predict want no history
            given = flat(callbacks)
            try:
                callbacks = [*given, *more(model, given)]
            except Exception as error:
                say(f"no progress is told: {error!r}")
        init(self, callbacks, add_history, add_progbar, model, **params)

    cls.__init__ = mended_init


def flat(callbacks):
    """The callbacks as one list: Keras takes one, or lists of lists."""
    if callbacks is None:
        return []
    if not isinstance(callbacks, (list, tuple)):
        return [callbacks]
    return [callback for each in callbacks for callback in flat(each)]


def for_the_output(verbose):
    """The `verbose` that suits where the output goes."""
    bar = verbose in ("auto", 1)
    terminal = getattr(sys.stdout, "isatty", None)
    return verbose if not bar or (terminal is not None and terminal()) else 2


def warn_of_no_strategy(model):
    """Several workers and no strategy: nothing else would say so, anywhere."""
    spec, task = cluster()
    several = workers() > 1 or ("ps" in spec and workers() > 0)
    if not several or task.get("type") not in ("chief", "master", "worker"):
        return
    strategy = getattr(model, "distribute_strategy", None)
    if strategy is not None and type(strategy) is type(default_strategy()):
        say(
            f"fit runs under no strategy although TF_CONFIG names {workers()} workers: each trains a model of its own; "
            "make and compile the model inside `with strategy.scope():`"
        )


def default_strategy():
    """TensorFlow's strategy that is none."""
    from tensorflow.python.distribute import distribute_lib

    return distribute_lib._get_default_strategy()
