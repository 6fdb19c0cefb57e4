"""The four ways to start two workers: a bare shell, Yurt, TorchX and Ray Train, each as its own manual shows it."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import venv
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

HERE: Final = Path(__file__).resolve().parent
ROOT: Final = HERE.parents[1]
JOBS: Final = HERE / "jobs"
PINS: Final = ROOT / "requirements" / "benchmarks.txt"
RIVALS: Final = Path(os.environ.get("YURT_BENCHMARKS_VENV", "~/.cache/yurt-benchmarks/venv")).expanduser()

#: Of the caller's environment only this reaches a measured command: nothing that slows Python down or sets threads.
_KEPT: Final = ("HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "TZ", "TMPDIR", "LD_LIBRARY_PATH")


@dataclass(frozen=True, slots=True)
class Launcher:
    """A way to start the two workers: its name, the command in a folder with the job's files, its environment's bin."""

    name: str
    title: str
    command: Callable[[Path], list[str]]
    bin: Callable[[], Path]


def yurt_bin() -> Path:
    """Where Yurt is installed: the clone's own environment, else the one this program runs in."""
    own = ROOT / ".venv" / "bin"
    return own if (own / "yurt").exists() else Path(sys.executable).parent


LAUNCHERS: Final[Mapping[str, Launcher]] = {
    each.name: each
    for each in (
        Launcher("shell", "bare shell loop", lambda _: ["sh", "shell_loop.sh"], yurt_bin),
        Launcher("yurt", "`yurt run`", lambda _: [str(yurt_bin() / "yurt"), "run", "job.yaml"], yurt_bin),
        Launcher(
            "torchx",
            "TorchX 0.7.0, `local_cwd`",
            lambda _: [
                *(str(RIVALS / "bin" / "torchx"), "run", "--wait", "--log", "--scheduler", "local_cwd"),
                "torchx_component.py:workers",
            ],
            lambda: RIVALS / "bin",
        ),
        Launcher(
            "ray",
            "Ray Train 2.60.0",
            lambda _: [str(RIVALS / "bin" / "python"), "ray_train.py"],
            lambda: RIVALS / "bin",
        ),
    )
}


def ready(names: list[str]) -> None:
    """Have what these launchers need: the rivals' environment is made from its pins where it is missing or old."""
    if not {"torchx", "ray"} & set(names):
        return
    stamp, wanted = RIVALS / "pins.txt", PINS.read_text()
    if stamp.is_file() and stamp.read_text() == wanted:
        return
    print(f"making {RIVALS} (TensorFlow, TorchX and Ray: about 600 MB to fetch)", flush=True)
    if not (RIVALS / "bin" / "pip").exists():
        venv.create(RIVALS, with_pip=True)
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    pip = [str(RIVALS / "bin" / "python"), "-m", "pip", "install", "--quiet", "--no-deps", "-r", str(PINS)]
    subprocess.run(pip, env=environment, check=True)
    stamp.write_text(wanted)


def folder_with_job(parent: Path) -> Path:
    """The job's files in a folder of their own."""
    folder = parent / "job"
    shutil.copytree(JOBS, folder, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


def environment(launcher: Launcher, home: Path, marks: Path, extra: Mapping[str, str]) -> dict[str, str]:
    """What the command finds in its environment; the same for all but PATH."""
    ports = free_ports(2)
    return {
        **{name: os.environ[name] for name in _KEPT if name in os.environ},
        "PATH": f"{launcher.bin()}{os.pathsep}/usr/local/bin:/usr/bin:/bin",
        "VIRTUAL_ENV": str(launcher.bin().parent),
        "YURT_HOME": str(home),
        "TF_USE_LEGACY_KERAS": "1",
        "TF_CPP_MIN_LOG_LEVEL": "1",
        "RAY_USAGE_STATS_ENABLED": "0",
        "BENCH_MARKS": str(marks),
        "PORT_0": str(ports[0]),
        "PORT_1": str(ports[1]),
        **extra,
    }


def free_ports(count: int) -> list[int]:
    """Ports that nobody has at the moment."""
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports
