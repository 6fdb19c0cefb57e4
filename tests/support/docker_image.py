"""An image for tests, made from this machine: /bin/sh, this Python and the libraries they need, some 60 MB.

No registry is asked. Packages are not copied: `PACKAGES` is where a job mounts those of this environment.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
from collections.abc import Mapping
from pathlib import Path

#: Where PYTHONPATH looks in the image; nothing is there.
PACKAGES = "/packages"
_OURS = Path(sysconfig.get_paths()["purelib"])
#: A job's option that shows this environment's packages to its tasks.
VOLUME = f"{_OURS}:{PACKAGES}:ro"
_LEFT_OUT = (
    "site-packages",
    "dist-packages",
    "test",
    "idlelib",
    "tkinter",
    "turtledemo",
    "ensurepip",
    "lib2to3",
    "config-",
)
_PASSWD = "root:x:0:0:root:/root:/bin/sh\n"
_WHEELS_NEED = ("libstdc++.so.6", "libgcc_s.so.1", "libz.so.1", "librt.so.1", "libdl.so.2", "libm.so.6")
_WHEELS_NEED += ("libpthread.so.0", "libutil.so.1", "libresolv.so.2")
_TOOLS = ("sh", "ls", "cat", "nproc", "id", "sleep", "env", "mkdir", "ln", "kill")


def image(environment: Mapping[str, str], *, python: str | None = sys.executable, as_name: str = "python3") -> str:
    """The name of an image with a Python on its PATH as `as_name` (None: without any); made if it is not there yet.

    `environment` names the daemon: DOCKER_HOST, or nothing for the usual one.
    """
    env = {**os.environ, **environment}
    real = Path(os.path.realpath(python)) if python else None
    key = hashlib.sha256(f"4 {real} {as_name} {_LEFT_OUT} {_TOOLS}".encode() + Path(__file__).read_bytes()).hexdigest()[
        :12
    ]
    name = f"yurt-test-{as_name if python else 'bare'}:{key}"
    if subprocess.run(["docker", "image", "inspect", name], env=env, capture_output=True, check=False).returncode == 0:
        return name
    changes = [f"ENV PYTHONPATH={PACKAGES}", "ENV PATH=/usr/local/bin:/usr/bin:/bin"]
    command = ["docker", "import", *(word for each in changes for word in ("--change", each)), "-", name]
    with subprocess.Popen(command, env=env, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as process:
        assert process.stdin
        with process.stdin as pipe, tarfile.open(fileobj=pipe, mode="w|") as archive:
            _write(archive, real, as_name)
    assert process.returncode == 0, f"{name} could not be imported"
    return name


def _write(archive: tarfile.TarFile, python: Path | None, as_name: str) -> None:
    tools = {tool: os.path.realpath(path) for tool in _TOOLS if (path := shutil.which(tool))}
    binaries = set(tools.values())
    for tool, path in tools.items():
        _add(archive, Path(path), f"bin/{tool}")
    if python is not None:
        version = re.sub(r"^python", "", python.name)
        lib = python.parent.parent / "lib" / f"python{version}"
        _add(archive, python, f"usr/local/bin/python{version}")
        _link(archive, f"usr/local/bin/{as_name}", f"python{version}")
        for folder, folders, files in os.walk(lib):
            folders[:] = [each for each in folders if not each.startswith(_LEFT_OUT)]
            for file in files:
                if not file.endswith(".a"):
                    full = Path(folder, file)
                    _add(archive, full, f"usr/local/lib/python{version}/{full.relative_to(lib)}")
        for file in (_OURS / "pip").rglob("*.py") if as_name == "python3" else ():
            _add(archive, file, f"usr/local/lib/python{version}/site-packages/{file.relative_to(_OURS)}")
        binaries |= {str(python), *map(str, (lib / "lib-dynload").glob("*.so"))}
    for library in _libraries(binaries):
        _add(archive, Path(library), library.lstrip("/"))
    for name, text in {"etc/passwd": _PASSWD, "etc/group": "root:x:0:\n"}.items():
        _text(archive, name, text)
    tmp = tarfile.TarInfo("tmp")
    tmp.type, tmp.mode = tarfile.DIRTYPE, 0o1777
    archive.addfile(tmp)


def _libraries(binaries: set[str]) -> list[str]:
    """What the dynamic loader finds for them, and what TensorFlow's wheels expect of a machine."""
    found = subprocess.run(["ldd", *binaries], capture_output=True, text=True, check=False).stdout
    paths = set(re.findall(r"(/\S+) \(0x", found))
    known = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True, check=False).stdout
    for name in _WHEELS_NEED:
        with contextlib.suppress(AttributeError):
            paths.add(re.search(rf"{re.escape(name)} .*x86-64.* => (/\S+)", known)[1])
    return sorted(paths)


def _add(archive: tarfile.TarFile, file: Path, name: str) -> None:
    info = archive.gettarinfo(os.path.realpath(file), name)
    info.uid = info.gid = 0
    if info.type == tarfile.LNKTYPE:
        info.type, info.size = tarfile.REGTYPE, os.path.getsize(os.path.realpath(file))
    with open(file, "rb") as data:
        archive.addfile(info, data)


def _link(archive: tarfile.TarFile, name: str, to: str) -> None:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = tarfile.SYMTYPE, to
    archive.addfile(info)


def _text(archive: tarfile.TarFile, name: str, text: str) -> None:
    info = tarfile.TarInfo(name)
    info.size = len(text.encode())
    archive.addfile(info, io.BytesIO(text.encode()))


if __name__ == "__main__":
    print(image({}))
