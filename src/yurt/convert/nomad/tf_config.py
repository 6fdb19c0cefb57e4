"""TF_CONFIG in a plain Nomad job: a template over Consul's services, and a shell line that waits until it is whole.

Each task registers the service ``<job>-<role>`` with its index as tag, so that the n-th address is the n-th task's:
Consul lists services in no such order. A template is rendered as soon as Consul answers, with the peers that are there
by then; so it goes to a file, and the shell line waits until all of them are in it. It is rendered without a restart
(``change_mode = "noop"``): a peer that goes does not stop the others.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

FILE: Final = "local/tf_config.json"
#: What stands for a peer that Consul does not list yet.
MISSING: Final = "missing"
#: ``NOMAD_TASK_DIR`` is the folder ``local`` in every driver. ``exec`` leaves the task as the only process.
WAIT: Final = (
    'file="$NOMAD_TASK_DIR/tf_config.json"; until [ -s "$file" ] && ! grep -q \'"missing"\' "$file"; do sleep 1; done; '
    'TF_CONFIG="$(cat "$file")"; export TF_CONFIG; exec "$@"'
)
SHELL: Final = "/bin/sh"
_ENV: Final = "env"
_ASSIGNMENT: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=", re.ASCII)


def service_name(job: str, role: str) -> str:
    """The name in Consul of the tasks of a role."""
    return f"{job}-{role}"


def template(job: str, counts: Sequence[tuple[str, int]], role: str) -> str:
    """The template of one role's TF_CONFIG; `counts` are the roles of its cluster spec with their replicas."""
    roles = ",\n".join(f'"{name}": [{_addresses(service_name(job, name), count)}]' for name, count in counts)
    task = f'{{"type": "{role}", "index": {{{{ env "NOMAD_ALLOC_INDEX" }}}}}}'
    return f'{{"cluster": {{\n{roles}}},\n"task": {task}}}\n'


def _addresses(service: str, count: int) -> str:
    address = "{{ with index . 0 }}{{ .Address }}:{{ .Port }}{{ end }}"
    found = f'{{{{ with service (printf "%d.{service}" $i) }}}}{address}{{{{ else }}}}{MISSING}{{{{ end }}}}'
    return f'{{{{ range $i := loop {count} }}}}{{{{ if $i }}}}, {{{{ end }}}}"{found}"{{{{ end }}}}'


def with_wait(words: Sequence[str], env: dict[str, str]) -> list[str]:
    """The arguments of the shell that waits for TF_CONFIG and then runs the words with these variables set."""
    assigned = [_ENV, *(f"{name}={value}" for name, value in env.items())] if env else []
    return ["-c", WAIT, "wait-for-peers", *assigned, *words]


def without_wait(words: list[str]) -> tuple[list[str], dict[str, str]]:
    """The way back: the words, and the variables among them. Other words come back as they are."""
    head = [SHELL, *with_wait([], {})]
    if words[: len(head)] != head:
        return words, {}
    rest = words[len(head) :]
    env: dict[str, str] = {}
    if rest and rest[0] == _ENV and len(rest) > 1 and _ASSIGNMENT.match(rest[1]):
        rest = rest[1:]
        while rest and _ASSIGNMENT.match(rest[0]):
            name, _, env[name] = rest[0].partition("=")
            rest = rest[1:]
    return rest, env
