"""The state of a run as it stands in the key-value store: values, and their JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final

# Phases of a run, in their order.
JOINING: Final = "joining"  # agents publish their addresses
CHECKING: Final = "checking"  # everyone connects to everyone
RUNNING: Final = "running"  # the processes train
CLOSING: Final = "closing"  # the deciding task exited 0: it publishes, the rest end
ENDED: Final = "ended"  # the verdict stands
PHASES: Final = (JOINING, CHECKING, RUNNING, CLOSING, ENDED)

# Outcomes of a verdict.
SUCCEEDED: Final = "succeeded"
FAILED: Final = "failed"
DEADLINE: Final = "deadline"
CANCELLED: Final = "cancelled"
PUBLISH_FAILED: Final = "publish-failed"
BROKEN: Final = "launcher-error"

#: Exit code of the command line for each outcome (docs/exit-codes.md is made from the same words).
EXIT_CODES: Final[Mapping[str, int]] = {
    SUCCEEDED: 0,
    FAILED: 1,
    DEADLINE: 3,
    CANCELLED: 4,
    PUBLISH_FAILED: 5,
    BROKEN: 6,
}

# What a member does.
JOINED: Final = "joined"
REACHABLE: Final = "reachable"
STARTED: Final = "started"
EXITED: Final = "exited"
LOST: Final = "lost"
#: How the error of an unreachable peer begins whose name leads nowhere: the machine may be all right.
NO_NAME: Final = "its name does not resolve"


@dataclass(frozen=True, slots=True)
class Exit:
    """How a task's process ended. `at` is Unix time in seconds on the task's own machine.

    `reason` is one of: ``exit`` (by itself), ``signal`` (killed by one), ``out-of-memory``, ``port-taken``
    (TensorFlow's server found its port in use), ``wants-legacy-keras`` (the script turned out to need Keras 2 before
    its first epoch had ended), ``preflight`` (never started: something needed is missing), ``start`` (the command
    could not be executed), ``stopped`` (by Yurt), ``lost`` (its agent is gone).
    """

    code: int
    reason: str
    at: float
    signal: int | None = None
    attempt: int = 0
    message: str | None = None
    last_lines: tuple[str, ...] = ()

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Exit:
        """Back from JSON."""
        return cls(**{**value, "last_lines": tuple(value.get("last_lines", ()))})


@dataclass(frozen=True, slots=True)
class Member:
    """One task of one generation, written by its agent alone (or marked lost by whoever sees that it is).

    `address` is where TensorFlow's server will listen, ``host:port``. `order` is the store's index of the last
    change: the one clock that all machines share; it tells which failure came first.
    """

    task: str
    allocation: str
    address: str
    status: str
    attempt: int = 0
    placed_on: str = ""
    pid: int | None = None
    unreachable: tuple[tuple[str, str, str], ...] = ()  # (peer, address, error)
    exit: Exit | None = None
    published: Mapping[str, Any] | None = None
    order: int = field(default=0, compare=False)

    def dumps(self) -> bytes:
        """As stored."""
        value = asdict(self)
        del value["order"]
        return json.dumps(value).encode()

    @classmethod
    def loads(cls, data: bytes, order: int = 0) -> Member:
        """Back from the store; `order` is the entry's modify index."""
        value = json.loads(data)
        return cls(
            **{
                **value,
                "exit": Exit.from_json(value["exit"]) if value.get("exit") else None,
                "unreachable": tuple(tuple(row) for row in value.get("unreachable", ())),
                "order": order,
            }
        )


@dataclass(frozen=True, slots=True)
class Verdict:
    """How the run ended: one of the outcomes, one sentence, and the task that decided it, if one did."""

    outcome: str
    message: str
    task: str | None = None
    exit: Exit | None = None
    hint: str | None = None

    @property
    def exit_code(self) -> int:
        """The exit code of every command that reports this run."""
        return EXIT_CODES[self.outcome]

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Verdict:
        """Back from JSON."""
        return cls(**{**value, "exit": Exit.from_json(value["exit"]) if value.get("exit") else None})


@dataclass(frozen=True, slots=True)
class Cause:
    """Why the gang, or one task of it, was started again."""

    task: str
    generation: int
    message: str
    at: float


@dataclass(frozen=True, slots=True)
class RunState:
    """One value, moved on by compare-and-set. `since` and `created_at` are Unix times in seconds.

    `attempts` counts the restarts of single tasks within this generation; `restarts` counts every restart of any
    kind, against the one limit. `stop_grace_s` is how long an ending process has between SIGTERM and SIGKILL
    once the verdict stands or the generation is over. `keras` is ``legacy`` once a task has found that the script
    needs it: from then on all tasks use it.
    """

    generation: int
    phase: str
    since: float
    created_at: float
    cluster: Mapping[str, list[str]] | None = None
    attempts: Mapping[str, int] = field(default_factory=dict)
    restarts: int = 0
    causes: tuple[Cause, ...] = ()
    verdict: Verdict | None = None
    stop_grace_s: float = 0.0
    published: Mapping[str, Any] | None = None
    keras: str | None = None

    @classmethod
    def first(cls, now: float) -> RunState:
        """Of a run that was just submitted."""
        return cls(generation=0, phase=JOINING, since=now, created_at=now)

    def ended(self, verdict: Verdict, now: float, stop_grace_s: float) -> RunState:
        """With its verdict."""
        return replace(self, phase=ENDED, since=now, verdict=verdict, stop_grace_s=stop_grace_s)

    def dumps(self) -> bytes:
        """As stored."""
        return json.dumps(asdict(self)).encode()

    @classmethod
    def loads(cls, data: bytes) -> RunState:
        """Back from the store."""
        value = json.loads(data)
        return cls(
            **{
                **value,
                "causes": tuple(Cause(**cause) for cause in value["causes"]),
                "verdict": Verdict.from_json(value["verdict"]) if value.get("verdict") else None,
            }
        )


@dataclass(frozen=True, slots=True)
class Beat:
    """A task's sign of life: `at` changes with each one, `progress` is what `yurt.contract.progress` describes."""

    at: float
    progress: Mapping[str, Any] = field(default_factory=dict)

    def dumps(self) -> bytes:
        """As stored."""
        return json.dumps(asdict(self)).encode()

    @classmethod
    def loads(cls, data: bytes) -> Beat:
        """Back from the store."""
        return cls(**json.loads(data))
