"""The words that a Nomad task runs, from its driver's config."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

from yurt.convert.converted import Note
from yurt.convert.nomad import tf_config
from yurt.convert.nomad.parts import Part
from yurt.convert.standard_server import STANDARD_SERVER
from yurt.errors import UsageError
from yurt.job.command import split

PROCESSES: Final = ("raw_exec", "exec", "exec2")
CONTAINERS: Final = ("docker", "podman", "containerd-driver")
_SHELLS: Final = frozenset({"sh", "bash", "/bin/sh", "/bin/bash", "/usr/bin/bash", "/usr/bin/sh"})
#: What a shell would act on in a line that `split` takes as it stands.
_FOR_A_SHELL: Final = re.compile(r"[$`*?\[\]~#!{}]|\\")
_INTERPOLATION: Final = re.compile(r"(?P<escaped>\$\$\{|%%\{)|(?P<filled>\$\{[^}]*\})")
#: A script at a place that only the machines of Nomad's tasks have.
_PLACED_SCRIPT: Final = re.compile(r"(/|(\./)?(local|alloc|\.\./alloc|secrets)/).*\.py$")
_NOMAD_VARIABLE: Final = re.compile(r"\bNOMAD_\w+")


@dataclass(frozen=True, slots=True)
class TaskCommand:
    """What a task runs; without `words` it runs TensorFlow's standard server. `env` are variables among its words."""

    words: tuple[str, ...] | None
    image: str | None
    env: dict[str, str]


def command_of(task: Part, notes: list[Note]) -> TaskCommand:
    """The command of a task. Raises `UsageError` where its driver or config does not say one."""
    driver = task.get("driver")
    config = task.get("config") or Part({}, "config", task.place, task.file, task.line)
    kind = driver.value if driver else None
    if kind in PROCESSES:
        image, words = None, _process(config, notes)
    elif kind in CONTAINERS:
        image, words = _container(config, notes)
    else:
        raise UsageError(
            f"{task.where}: the driver {kind!r} is not one that Yurt can carry",
            hint=f"it reads {', '.join((*PROCESSES[:2], *CONTAINERS[:2]))}",
        )
    if not words:
        raise UsageError(
            f"{(driver or task).where}: the task does not say what it runs, and Yurt cannot look into its image",
            hint="write command and args into its config",
        )
    words, env = tf_config.without_wait(words)
    if words == list(STANDARD_SERVER):
        return TaskCommand(None, image, env)
    words = _without_shell(words)
    _tell_about(words, config, image, notes)
    return TaskCommand(tuple(words), image, env)


def _process(config: Part, notes: list[Note]) -> list[str]:
    command = config.get("command")
    args = _words(config, "args", notes)
    if command is None:
        return []
    text = _literal(str(command.value), command, notes)
    if " " in text.strip() and not args:
        notes.append(command.note("holds spaces, and Nomad would look for a program of that name; it is read as words"))
        return _split(text) or [text]
    return [text, *args]


def _container(config: Part, notes: list[Note]) -> tuple[str | None, list[str]]:
    image = config.get("image")
    name = _literal(str(image.value), image, notes) if image else None
    entrypoint = _words(config, "entrypoint", notes)
    command = _words(config, "command", notes)
    args = _words(config, "args", notes)
    if args and not entrypoint and not command:
        notes.append(
            config.value["args"].note("is taken as the whole command: the image may have an entrypoint of its own")
        )
    return name.removeprefix("docker://") if name else None, [*entrypoint, *command, *args]


def _words(config: Part, key: str, notes: list[Note]) -> list[str]:
    """The words under a key: a list, or one word."""
    part = config.get(key)
    if part is None:
        return []
    values: Any = part.plain()
    return [_literal(str(value), part, notes) for value in (values if isinstance(values, list) else [values])]


def _literal(text: str, part: Part, notes: list[Note]) -> str:
    """The text as the process gets it: driver config is a template of Nomad's, with ``$${`` for ``${``."""
    notes += [
        part.note(f"holds {match[0]}, which Nomad fills in and Yurt does not: it stays as it is written")
        for match in _INTERPOLATION.finditer(text)
        if match["filled"]
    ]
    return _INTERPOLATION.sub(lambda match: match[0][1:] if match["escaped"] else match[0], text)


def _without_shell(words: list[str]) -> list[str]:
    """The words of ``sh -c "python train.py"``, where no shell is needed for them."""
    if len(words) != 3 or words[0] not in _SHELLS or words[1] != "-c" or _FOR_A_SHELL.search(words[2]):
        return words
    inner = _split(words[2])
    return inner[1:] if len(inner) > 1 and inner[0] == "exec" else inner or words


def _split(text: str) -> list[str]:
    try:
        return split(text)
    except ValueError:  # only a shell understands it
        return []


def _tell_about(words: list[str], config: Part, image: str | None, notes: list[Note]) -> None:
    text = " ".join(words)
    if words[0].endswith(".py"):
        notes.append(config.note(f"runs {words[0]} itself; Yurt runs a script by `python`", "command"))
    if re.search(r"\bTF_CONFIG=", text):
        notes.append(config.note("sets TF_CONFIG itself, over what Yurt writes: take that out", "command"))
    if image is None and (script := next((word for word in words if _PLACED_SCRIPT.match(word)), None)):
        message = f"runs {script}: put the script beside the job file, and name it relative to that"
        notes.append(config.note(message, "command"))
    variables = dict.fromkeys(_NOMAD_VARIABLE.findall(re.sub(r"\$\{[^}]*\}", "", text)))
    notes += [config.note(f"reads {name}, which only Nomad sets", "command") for name in variables]
