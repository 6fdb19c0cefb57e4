"""The form of a Nomad job: what must be a block and what text, so that readers need not ask."""

from __future__ import annotations

from typing import Final

from yurt.convert.nomad.parts import Part
from yurt.errors import UsageError

_BLOCK: Final = "a block"
_BLOCKS: Final = "blocks"
_TEXT: Final = "text"

#: Block -> key -> its form; what is not here is looked at where it is read.
_FORMS: Final[dict[str, dict[str, str]]] = {
    "job": {
        **dict.fromkeys(("group", "constraint", "affinity"), _BLOCKS),
        **dict.fromkeys(("reschedule", "meta"), _BLOCK),
        **dict.fromkeys(("id", "name", "type", "region", "namespace", "node_pool"), _TEXT),
    },
    "group": {
        **dict.fromkeys(("task", "constraint", "affinity", "volume"), _BLOCKS),
        **dict.fromkeys(("restart", "reschedule", "ephemeral_disk"), _BLOCK),
        "name": _TEXT,
    },
    "task": {
        **dict.fromkeys(("template", "constraint", "affinity", "volume_mount", "env"), _BLOCKS),
        **dict.fromkeys(("config", "resources", "restart", "lifecycle"), _BLOCK),
        **dict.fromkeys(("name", "driver"), _TEXT),
    },
    "resources": {"device": _BLOCKS},
    "device": {"name": _TEXT},
    "template": dict.fromkeys(("destination", "data"), _TEXT),
    "volume": dict.fromkeys(("name", "type", "source"), _TEXT),
    "volume_mount": dict.fromkeys(("volume", "destination"), _TEXT),
    "config": {"image": _TEXT},
}


def check(job: Part) -> None:
    """Raises `UsageError` for the first part of a job that has another form than Nomad takes."""
    _check(job, "job")


def _check(block: Part, kind: str) -> None:
    for key, form in _FORMS.get(kind, {}).items():
        part = block.peek(key)
        if part is None:
            continue
        if form == _TEXT:
            if isinstance(part.value, dict | list):
                raise UsageError(f"{part.where}: {part.inside} must be text, not {_shown(part)}")
            continue
        inner = _items(part, key) if form == _BLOCKS else [part]
        for item in inner:
            if item.value is not None and not isinstance(item.value, dict):
                raise UsageError(f"{part.where}: {part.inside} must be {form}, not {_shown(part)}")
            if item.value is not None:
                _check(item, key)
        if isinstance(part.value, list):
            part.value = [item for item in part.value if item.value is not None]


def _items(part: Part, key: str) -> list[Part]:
    if isinstance(part.value, list):
        return part.value
    if key == "volume" and isinstance(part.value, dict) and part.key == "Volumes":  # JSON's mapping by name
        return list(part.value.values())
    return [part]


def _shown(part: Part) -> str:
    if isinstance(part.value, list):
        return "a list"
    return "a mapping" if isinstance(part.value, dict) else repr(part.value)[:40]
