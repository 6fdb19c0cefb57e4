"""Lets SIGTERM end a plain `fit` under MultiWorkerMirroredStrategy, as it ends any other program.

TensorFlow takes SIGTERM for itself when the strategy is made, tells the other workers' preemption handlers, and goes on
training (TensorFlow 2.21): whoever stops a run waits until the process is killed. While `fit` trains, the process hears
the signal again and ends with exit code 143 within a second: its output is flushed, its trackers are closed, nothing
is saved.

Python runs a handler of its own between two instructions alone, so one that waits in a collective would never hear it,
and a SystemExit waits for TensorFlow's exit barrier. So a thread does it: Python's wake-up pipe tells it at once.

Not done where anybody else answers SIGTERM: a handler of the script's own, a callback that has `yurt_handles_sigterm`,
or TensorFlow's PreemptionCheckpointHandler, which relies on TensorFlow's answer.
"""

import os
import signal
import sys
import threading

from _yurt_task import cluster

EXIT_CODE = 128 + signal.SIGTERM
#: Seconds for what is called before the process ends.
PATIENCE_S = 1.0

#: Functions without arguments that are called first, such as those that close trackers.
before = []

_preemption_handler = False
_pipe = None  # the end that Python writes to, while this listens


def mend(module):
    """Note that a PreemptionCheckpointHandler is made: of ``...distribute.failure_handling.failure_handling``."""
    cls = module.PreemptionCheckpointHandler
    init = cls.__init__

    def mended_init(self, *args, **kwargs):
        global _preemption_handler
        _preemption_handler = True
        init(self, *args, **kwargs)

    cls.__init__ = mended_init


def wanted(model, callbacks):
    """Whether nobody else answers SIGTERM in this `fit`."""
    if _preemption_handler or not swallows(getattr(model, "distribute_strategy", None)):
        return False
    return not any(getattr(callback, "yurt_handles_sigterm", False) for callback in callbacks)


def swallows(strategy):
    """Whether TensorFlow has taken SIGTERM for this strategy: it does so in a cluster of one worker too."""
    import tensorflow as tf

    return isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy) and bool(cluster()[0])


def leaving_callback(base):
    """The callback's class, on the `Callback` of one of the two Kerases."""

    class YurtLeaving(base):
        """Listens for SIGTERM while `fit` trains; see this file's head."""

        async_safe = True

        def on_train_begin(self, logs=None):
            listen()

        def on_train_end(self, logs=None):
            stop_listening()

    return YurtLeaving


def listen():
    """End the process at SIGTERM, unless something answers it already."""
    global _pipe
    if _pipe is not None or threading.current_thread() is not threading.main_thread():
        return
    if signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        return
    heard, told = os.pipe()
    os.set_blocking(told, False)
    other = signal.set_wakeup_fd(told, warn_on_full_buffer=False)
    if other != -1:  # somebody else's loop waits for signals
        signal.set_wakeup_fd(other)
        os.close(heard)
        os.close(told)
        return
    _pipe = told
    threading.Thread(target=wait, args=(heard,), name="yurt-leaving", daemon=True).start()
    signal.signal(signal.SIGTERM, lambda number, frame: None)


def stop_listening():
    """SIGTERM is Python's default again: it ends the process."""
    global _pipe
    if _pipe is not None:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.set_wakeup_fd(-1)
        os.close(_pipe)
        _pipe = None


def wait(heard):
    """Until SIGTERM, which ends the process, or until nobody listens any more."""
    while numbers := os.read(heard, 64):
        if signal.SIGTERM in numbers:
            leave()
    os.close(heard)


def leave():
    """End the process, whatever its other threads do."""
    last = threading.Thread(target=last_things, daemon=True)
    last.start()
    last.join(PATIENCE_S)
    os._exit(EXIT_CODE)


def last_things():
    """Close the trackers and flush the output, each by itself."""
    for function in (*before, sys.stdout.flush, sys.stderr.flush):
        try:
            function()
        except Exception:  # noqa: S112 - the process is ending; there is nobody to tell
            continue
