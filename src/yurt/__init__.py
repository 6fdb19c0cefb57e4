"""Yurt: distributed TensorFlow training in a box.

The same as a job file, from Python::

    import yurt

    job = yurt.Job(name="weather", command="python train.py", roles={"worker": 2}, output="./models")
    result = yurt.run(job, folder="examples/weather")
    print(result.outcome, result.message)

Nothing heavy is imported with this package: each name is loaded when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from yurt.contract.state import Verdict
    from yurt.job import Job, LoadedJob, Role, load_job
    from yurt.launcher.api import run

__version__ = "0.1.0"
__all__ = ["Job", "LoadedJob", "Role", "Verdict", "load_job", "run"]

_HOMES = {
    "Job": "yurt.job",
    "LoadedJob": "yurt.job",
    "Role": "yurt.job",
    "Verdict": "yurt.contract.state",
    "load_job": "yurt.job",
    "run": "yurt.launcher.api",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'yurt' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
