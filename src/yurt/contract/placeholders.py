"""The three words in braces that a command may have, each filled in for its task."""

from __future__ import annotations

import re
from collections.abc import Sequence

from yurt.contract.spec import TaskSpec

_PLACEHOLDER = re.compile(r"\{(role|index|address)\}")


def filled(command: Sequence[str], task: TaskSpec, address: str | None = None) -> tuple[str, ...]:
    """The command with ``{role}``, ``{index}`` and ``{address}`` filled in, in every word; all else letter for letter.

    Only these three count: ``{0}``, ``{role!r}``, ``${HOME}`` and JSON stay as they are, and ``{{role}}`` becomes
    ``{worker}``. `address` is the task's ``host:port`` in the cluster spec; None, before there is one, leaves
    ``{address}`` as it is.
    """
    values = {"role": task.role, "index": str(task.index), "address": "{address}" if address is None else address}
    return tuple(_PLACEHOLDER.sub(lambda match: values[match[1]], word) for word in command)
