"""A run as every engine and agent sees it: who takes part, what each does, and the rules."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final

CHIEF: Final = "chief"
WORKER: Final = "worker"
PS: Final = "ps"
EVALUATOR: Final = "evaluator"
#: TensorFlow's task types in the order in which tasks are shown and started.
ROLES: Final = (CHIEF, WORKER, PS, EVALUATOR)

MULTI_WORKER: Final = "multi-worker-mirrored"
PARAMETER_SERVER: Final = "parameter-server"

NEVER: Final = "never"
ON_FAILURE: Final = "on-failure"
EXIT_CODE: Final = "exit-code"
ALWAYS: Final = "always"

ALL_WORKERS: Final = "all-workers"

# Which Keras the script gets (docs/keras.md).
KERAS_AUTO: Final = "auto"
KERAS_PATCHED: Final = "patched"
KERAS_LEGACY: Final = "legacy"
KERAS_OFF: Final = "off"

# Trackers that follow the training (docs/tracking.md).
TENSORBOARD: Final = "tensorboard"
MLFLOW: Final = "mlflow"
WANDB: Final = "wandb"


@dataclass(frozen=True, slots=True)
class TaskSpec:
    """One member of a role. Without a `command` it runs TensorFlow's standard server."""

    role: str
    index: int
    command: tuple[str, ...] | None
    env: Mapping[str, str] = field(default_factory=dict)
    cpus: float | None = None
    memory_bytes: int | None = None
    gpus: int | None = None

    @property
    def name(self) -> str:
        """``worker/0``."""
        return f"{self.role}/{self.index}"

    @property
    def slug(self) -> str:
        """``worker-0``, for file and host names."""
        return f"{self.role}-{self.index}"


@dataclass(frozen=True, slots=True)
class RunSpec:
    """One submission of a job, as a value. `submitted_at` is Unix time in seconds."""

    run_id: str
    job_name: str
    strategy: str
    tasks: tuple[TaskSpec, ...]
    restart: str
    max_restarts: int
    success: str
    start_deadline_s: float
    deadline_s: float | None
    grace_s: float
    output: str | None
    saves_to: str | None
    submitted_at: float
    keras: str = KERAS_AUTO
    track: tuple[str, ...] = ()
    image: str | None = None

    def task(self, name: str) -> TaskSpec:
        """The task written ``worker/0``; KeyError where there is none."""
        for task in self.tasks:
            if task.name == name:
                return task
        raise KeyError(name)

    @property
    def deciding(self) -> str:
        """The task whose exit 0 is success and whose model is published: the chief, else worker/0."""
        return "chief/0" if any(task.role == CHIEF for task in self.tasks) else "worker/0"

    @property
    def training(self) -> tuple[str, ...]:
        """Chief and workers: the tasks that `success: all-workers` asks for."""
        return tuple(task.name for task in self.tasks if task.role in (CHIEF, WORKER))

    @property
    def gang(self) -> tuple[str, ...]:
        """The tasks of the cluster spec: all but evaluators."""
        return tuple(task.name for task in self.tasks if task.role != EVALUATOR)

    def to_json(self) -> dict[str, Any]:
        """As JSON values."""
        return asdict(self)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> RunSpec:
        """Back from `to_json`."""
        tasks = tuple(
            TaskSpec(**{**task, "command": tuple(task["command"]) if task["command"] is not None else None})
            for task in value["tasks"]
        )
        return cls(**{**value, "tasks": tasks, "track": tuple(value.get("track", ()))})
