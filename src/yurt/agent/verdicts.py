"""Turns the end of a process into what the run needs to know of it."""

from __future__ import annotations

import re
import signal
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from yurt.contract.exits import WANTS_LEGACY_KERAS, exit_code_of
from yurt.contract.progress import epoch_ended
from yurt.contract.state import Exit

#: What TensorFlow 2.21 prints when its server's port is in use.
_PORT_TAKEN: Final = ("Could not start gRPC server", "No address added out of total")

#: What Keras 3 says to a script that was written for Keras 2 (Keras 3.10 to 3.15).
_WRITTEN_FOR_KERAS_2: Final = re.compile(
    r"file(?:path provided|name) must end in `\.(?:weights|keras)"
    r"|Invalid filepath extension for saving"
    r"|`save_format` argument is deprecated in Keras 3"
    r"|File format not supported: .*Keras 3 only supports"
    r"|module '(?:tensorflow\.)?keras[\w.]*' has no attribute"
    r"|cannot import name '\w+' from '(?:tensorflow\.)?keras[.']"
    r"|No module named '(?:tensorflow\.)?keras\."
    r"|is not supported in Keras 3"
    r"|A KerasTensor cannot be used as input to a TensorFlow function"
    r"|object has no attribute '(?:lr|reset_states|minimize|\w+_generator|get_(?:in|out)put\w*_at|add_update)'"
    r"|`add_metric\(\)` method is deprecated"
    r"|unexpected keyword argument '(?:workers|use_multiprocessing|max_queue_size|period|lr|decay|experimental_\w+)'"
    r"|(?:Trainer\.\w+|TensorBoard\.__init__)\(\) got an unexpected keyword argument"
    r"|Unrecognized keyword arguments passed to \w+: \{'(?:fused|weights|batch_input_shape|input_length)'"
    r"|Argument\(s\) not recognized: \{'(?:lr|decay)'"
    r"|Invalid value for argument `reduction`.*Received: reduction=auto"
)
#: `keras.backend.set_value` of Keras 3 itself; without the file's name it could be anybody's.
_SET_VALUE: Final = ("'str' object has no attribute 'name'", "legacy/backend.py")


def wanting_legacy_keras(end: Exit, progress: Mapping[str, Any]) -> Exit:
    """The same end, or one that starts the gang again with legacy Keras: an error of Keras 3 before any epoch's end."""
    if end.code == 0 or end.reason != "exit" or epoch_ended(progress):
        return end
    told = next((line for line in reversed(end.last_lines) if _WRITTEN_FOR_KERAS_2.search(line)), None)
    if told is None and all(any(text in line for line in end.last_lines) for text in _SET_VALUE):
        told = next(line for line in end.last_lines if _SET_VALUE[0] in line)
    return end if told is None else replace(end, reason=WANTS_LEGACY_KERAS, message=told.strip()[:200])


def classify(
    returncode: int,
    *,
    stopped: bool,
    out_of_memory: bool,
    child_out_of_memory: bool = False,
    lines: Sequence[str],
    attempt: int,
) -> Exit:
    """The end of a process as an `Exit`; `returncode` is subprocess's, negative for a signal.

    A process that Yurt stopped and that exits 0 all the same had finished. One below a shell that was killed shows
    as 128 + n. `child_out_of_memory`: something it had started was killed for want of memory, and it failed of that.
    `lines` are its last ones.
    """
    code, number = exit_code_of(returncode)
    reason, message = "exit", None
    killed = number == signal.SIGKILL or code == 128 + signal.SIGKILL
    if code == 0:
        lines = ()
    elif stopped:
        reason, lines = "stopped", ()
    elif (killed and out_of_memory) or child_out_of_memory:
        reason = "out-of-memory"
    elif taken := next((line for line in lines if any(text in line for text in _PORT_TAKEN)), None):
        reason, message = "port-taken", taken.strip()[:200]
    elif number is not None:
        reason = "signal"
    return Exit(
        code=code,
        reason=reason,
        at=time.time(),
        signal=number,
        attempt=attempt,
        message=message,
        last_lines=tuple(lines),
    )
