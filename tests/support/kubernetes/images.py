"""Container images as files, the way `docker save` writes them, made without a daemon and without a registry."""

from __future__ import annotations

import hashlib
import io
import json
import os
import tarfile
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

Layer = Callable[[tarfile.TarFile], None]


def write(to: Path, name: str, files: Mapping[str, Path], *, entrypoint: str) -> None:
    """An image with these files alone (name in it: file here), that starts one of them."""

    def layer(archive: tarfile.TarFile) -> None:
        for inside, file in files.items():
            archive.add(file, inside)

    write_layers(to, name, [layer], {"Entrypoint": [entrypoint]})


def write_layers(to: Path, name: str, layers: Sequence[Layer], config: Mapping[str, object]) -> None:
    """An image of these layers, each written by a function, with Docker's `config` of its containers."""
    with tempfile.TemporaryDirectory(dir=to.parent) as scratch, tarfile.open(to.with_suffix(".half"), "w") as image:
        digests: list[str] = []
        for number, layer in enumerate(layers):
            file = Path(scratch, f"{number}.tar")
            with tarfile.open(file, "w") as archive:
                layer(archive)
            with file.open("rb") as content:
                digests.append("sha256:" + hashlib.file_digest(content, "sha256").hexdigest())
            image.add(file, file.name)
            file.unlink()
        described = {
            "architecture": "amd64",
            "os": "linux",
            "config": dict(config),
            "rootfs": {"type": "layers", "diff_ids": digests},
            "history": [{} for _ in layers],
        }
        text = json.dumps(described).encode()
        manifest = [{
            "Config": f"{hashlib.sha256(text).hexdigest()}.json",
            "RepoTags": [name],
            "Layers": [f"{number}.tar" for number in range(len(layers))],
        }]  # fmt: skip
        for member, content in ((str(manifest[0]["Config"]), text), ("manifest.json", json.dumps(manifest).encode())):
            entry = tarfile.TarInfo(member)
            entry.size = len(content)
            image.addfile(entry, io.BytesIO(content))
    os.rename(to.with_suffix(".half"), to)
