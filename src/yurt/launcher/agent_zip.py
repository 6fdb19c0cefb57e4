"""Builds the agent: one zipapp with the agent and what it shares, standard library alone.

The rooms that a training script imports travel in it too, for tasks where no Yurt is installed. The agent imports
nothing of them.
"""

from __future__ import annotations

import hashlib
import importlib.util
import marshal
import os
import sys
import zipfile
from pathlib import Path

import yurt
from yurt.launcher.home import home

_PARTS = ("__init__.py", "errors.py", "agent", "contract", "kv", "training", "data")
#: Any Python reads this far. Python 3.9 has dataclasses without slots, which then only save memory.
_MAIN = """\
import sys
if sys.version_info < (3, 9):
    text = "yurt: Python %s is too old for Yurt's agent, which needs 3.9 or newer\\n"
    sys.stderr.write(text % sys.version.split()[0])
    sys.exit(126)
if sys.version_info < (3, 10):
    import dataclasses
    real = dataclasses.dataclass
    dataclasses.dataclass = lambda *args, **options: real(*args, **{k: options[k] for k in options if k != "slots"})
from yurt.agent.__main__ import main
sys.exit(main(sys.argv[1:]))
"""


def agent_zip() -> Path:
    """The agent's zipapp, built once for each state of its sources and kept."""
    root = Path(yurt.__file__).parent
    files = sorted(file for part in _PARTS for file in _python_files(root / part))
    digest = hashlib.sha256(f"{sys.version_info[:2]}".encode())
    for file in files:
        digest.update(f"{file.relative_to(root)}\0".encode() + file.read_bytes())
    target = home() / "agents" / f"agent-{yurt.__version__}-{digest.hexdigest()[:12]}.pyz"
    if not target.is_file():
        target.parent.mkdir(parents=True, exist_ok=True)
        part = target.with_name(f".{target.name}.{os.getpid()}")
        with zipfile.ZipFile(part, "w", zipfile.ZIP_STORED) as archive:
            for file in files:
                _add(archive, f"yurt/{file.relative_to(root)}", file.read_text(encoding="utf-8"))
            _add(archive, "__main__.py", _MAIN)
        part.replace(target)
    return target


def _python_files(path: Path) -> list[Path]:
    return [path] if path.is_file() else [file for file in path.rglob("*.py") if "__pycache__" not in file.parts]


def _add(archive: zipfile.ZipFile, name: str, text: str) -> None:
    """A module as source, for any Python, and compiled, for this one: an agent then starts in half the time.

    Python's zipimport takes a .pyc beside the source if its magic number fits, and without a look at the source if it
    is marked as unchecked (PEP 552).
    """
    archive.writestr(zipfile.ZipInfo(name), text)
    code = compile(text, name, "exec", dont_inherit=True)
    source_hash = importlib.util.source_hash(text.encode())
    header = importlib.util.MAGIC_NUMBER + (0b01).to_bytes(4, "little") + source_hash
    archive.writestr(zipfile.ZipInfo(f"{name}c"), header + marshal.dumps(code))
