"""A Nomad job as HCL2 text, from the HTTP API's form: the keys that `rendering` and the Nomad engine use."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from yurt.convert.nomad.durations import NANOSECONDS

#: API key -> the block or blocks that HCL writes it as; a block's label is taken out of it by the second word.
_BLOCKS: Final = {
    "TaskGroups": ("group", "Name"),
    "Tasks": ("task", "Name"),
    "RestartPolicy": ("restart", None),
    "ReschedulePolicy": ("reschedule", None),
    "Networks": ("network", None),
    "DynamicPorts": ("port", "Label"),
    "Services": ("service", None),
    "Templates": ("template", None),
    "Resources": ("resources", None),
    "Devices": ("device", "Name"),
    "Config": ("config", None),
    "EphemeralDisk": ("ephemeral_disk", None),
    "Constraints": ("constraint", None),
    "Affinities": ("affinity", None),
    "Volumes": ("volume", "Name"),
    "VolumeMounts": ("volume_mount", None),
    "Env": ("env", None),
    "LogConfig": ("logs", None),
    "Vault": ("vault", None),
}
_NAMES: Final = {
    "MemoryMB": "memory",
    "CPU": "cpu",
    "EmbeddedTmpl": "data",
    "DestPath": "destination",
    "PortLabel": "port",
    "KillSignal": "kill_signal",
    "KillTimeout": "kill_timeout",
    "ChangeMode": "change_mode",
    "SizeMB": "size",
    "NodePool": "node_pool",
    "ReadOnly": "read_only",
    "LTarget": "attribute",
    "RTarget": "value",
    "Operand": "operator",
    "LeftDelim": "left_delimiter",
    "RightDelim": "right_delimiter",
    "Envvars": "env",
    "MaxFiles": "max_files",
    "MaxFileSizeMB": "max_file_size",
}
_DURATIONS: Final = frozenset({"KillTimeout", "Interval", "Delay"})
#: Blocks whose keys are the user's own words or the driver's.
_VERBATIM: Final = frozenset({"Config", "Env"})
_HEREDOC_END: Final = "EOT"
_LINE: Final = 100
_ESCAPES: Final = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_UNSAFE: Final = re.compile(r'[\\"\x00-\x1f\x7f-\x9f\u2028\u2029\ufeff]')


def as_hcl(job: Mapping[str, Any]) -> str:
    """The text of a job block. Nothing in it is read as a template by Nomad but ``${NOMAD_ALLOC_INDEX}``."""
    body = {key: value for key, value in job.items() if key not in ("ID", "Name")}
    return "\n".join([f"job {quoted(job['ID'])} {{", *_body(body, "  "), "}", ""])


def _body(data: Mapping[str, Any], indent: str, *, verbatim: bool = False) -> Iterator[str]:
    blocks = [key for key, value in data.items() if key in _BLOCKS and isinstance(value, Mapping | list)]
    names = {key: key if verbatim else _NAMES.get(key, key.lower()) for key in data if key not in blocks or verbatim}
    widest = max((len(name) for key, name in names.items() if not _is_heredoc(key, data[key])), default=0)
    for key, name in names.items():
        value = data[key]
        if _is_heredoc(key, value):
            yield from _heredoc(name, value, indent)
        else:
            yield from _attribute(name.ljust(widest), _duration(value) if key in _DURATIONS else value, indent)
    for key in blocks if not verbatim else ():
        yield from _blocks(key, data[key], indent)


def _heredoc(name: str, text: str, indent: str) -> Iterator[str]:
    lines = text.removesuffix("\n").split("\n")
    end = _HEREDOC_END
    while any(line.strip() == end for line in lines):
        end += "_"
    yield from (f"{indent}{name} = <<{end}", *(_doubled(line) for line in lines), end)


def _blocks(key: str, value: Any, indent: str) -> Iterator[str]:
    name, label = _BLOCKS[key]
    items = list(value.values()) if key == "Volumes" else value
    for item in items if isinstance(items, list) else [items]:
        inner = {inner_key: inner for inner_key, inner in item.items() if inner_key != label}
        head = f"{indent}{name} {quoted(item[label])} {{" if label else f"{indent}{name} {{"
        lines = list(_body(inner, f"{indent}  ", verbatim=key in _VERBATIM))
        if lines:
            yield from ("", head, *lines, f"{indent}}}")
        elif label:
            yield f"{head}}}"


def _attribute(name: str, value: Any, indent: str) -> Iterator[str]:
    line = f"{indent}{name} = {_value(value)}"
    if isinstance(value, list) and len(line) > _LINE:
        yield f"{indent}{name} = ["
        yield from (f"{indent}  {_value(item)}," for item in value)
        yield f"{indent}]"
    else:
        yield line


def _is_heredoc(key: str, value: Any) -> bool:
    return key == "EmbeddedTmpl" and value.endswith("\n") and "\r" not in value


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return f"[{', '.join(_value(item) for item in value)}]"
    if isinstance(value, Mapping):
        return f"{{ {', '.join(f'{quoted(key)} = {_value(inner)}' for key, inner in value.items())} }}"
    return quoted(value) if isinstance(value, str) else str(value)


def _duration(nanoseconds: int) -> str:
    for unit, seconds in (("h", 3600), ("m", 60), ("s", 1)):
        whole, rest = divmod(nanoseconds, seconds * NANOSECONDS)
        if whole and not rest:
            return f"{whole}{unit}"
    return f"{nanoseconds}ns"


def quoted(text: str) -> str:
    """A text in HCL's quotes that evaluates to it letter for letter."""
    plain = _UNSAFE.sub(lambda match: _ESCAPES.get(match[0]) or f"\\u{ord(match[0]):04x}", text)
    return f'"{_doubled(plain)}"'


def _doubled(text: str) -> str:
    """With ``${`` and ``%{`` as they stand for themselves."""
    return re.sub(r"([$%])\{", r"\1\1{", text)
