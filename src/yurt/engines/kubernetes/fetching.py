"""Fetches a model that could not be published out of the pod that keeps it."""

from __future__ import annotations

import base64
import binascii
import io
import shlex
import tarfile
from pathlib import Path
from typing import Any, Final

from yurt.engines.kubernetes.container import LOCAL
from yurt.engines.kubernetes.session import Session
from yurt.engines.kubernetes.states import CONTAINER
from yurt.errors import EngineError

#: Packs a folder as text, for the client of Kubernetes decodes what it is given.
_PACK: Final = """\
import base64, sys, tarfile
class Text:
    def __init__(self): self.rest = b""
    def write(self, data):
        data = self.rest + data
        whole = len(data) // 57 * 57
        sys.stdout.write(base64.b64encode(data[:whole]).decode()); self.rest = data[whole:]
        return len(data)
out = Text()
with tarfile.open(fileobj=out, mode="w|gz") as tar: tar.add(sys.argv[1], ".")
sys.stdout.write(base64.b64encode(out.rest).decode() + ".")
"""


def fetch_folder(session: Session, pod: dict[str, Any], source: str, target: Path) -> None:
    """Copy a folder of a pod to `target`, whole or not at all. Raises EngineError."""
    name, namespace = pod["metadata"]["name"], pod["metadata"]["namespace"]
    python = f"$(command -v python3 || command -v python) -c {shlex.quote(_PACK)} {shlex.quote(source)}"
    printed, complaints, code = session.run(namespace, name, CONTAINER, ["/bin/sh", "-c", python])
    last = (complaints.strip().splitlines() or [""])[-1]
    if code or not printed.endswith("."):
        raise EngineError(f"the model cannot be read from {source} in the pod {name}: {last or 'it broke off'}")
    part = target.with_name(f".{target.name}.part")
    try:
        with tarfile.open(fileobj=io.BytesIO(base64.b64decode(printed[:-1])), mode="r:gz") as tar:
            tar.extractall(part, filter="data")
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.is_dir():
            target.rmdir()  # an empty one; it is fetched only where there is none
        part.replace(target)
    except (OSError, tarfile.TarError, binascii.Error) as error:
        raise EngineError(f"the model of the pod {name} cannot be put into {target}: {error}") from error


def model_in(saves_to: str | None) -> str:
    """Where a task's model is in its pod."""
    return f"{LOCAL}/work/{saves_to}" if saves_to else f"{LOCAL}/model"
