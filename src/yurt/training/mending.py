"""The one import: what the hook does at Python's start, done now.

A run's agent puts the folder ``hook`` first on PYTHONPATH, so that even a script that knows nothing of Yurt is mended.
A script that imports `yurt.training` gets the same mends from here, whoever starts it.
"""

from __future__ import annotations

import sys
from importlib import util
from importlib.machinery import PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any, Final

#: The part of the hook that waits for Keras. It is one in a process, whoever loads it.
_FINDERS: Final = "_yurt_finders"


def mend_keras() -> None:
    """Mend Keras as docs/keras.md tells, once in a process, also where it has been imported already.

    YURT_HOOK=0 leaves out all of it, YURT_HOOK_MENDS=0 the mends of Keras 3. Nothing that goes wrong here breaks an
    import: it is told in one line.
    """
    if _FINDERS in sys.modules:
        return  # Python's start has done it, see hook/sitecustomize.py
    try:
        finders = _load()
        finders.set_up()
        finders.mend_imported()
    except Exception as error:
        print(f"yurt: Keras is left as it is: {error!r}", file=sys.stderr, flush=True)


def part(name: str) -> Any:
    """A part of the hook, such as ``_yurt_task``: what it knows of tasks and strategies is written there alone."""
    return _load().own(name)


def _load() -> ModuleType:
    """The finders, from a folder or out of a zip file."""
    if _FINDERS in sys.modules:
        return sys.modules[_FINDERS]
    hook = Path(__file__).absolute().parent / "hook"
    spec = PathFinder.find_spec(_FINDERS, [str(hook)])
    if spec is None or spec.loader is None:
        raise ImportError(f"{hook} is not there")
    module = sys.modules[_FINDERS] = util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
