"""The closed lists of a job: what a strategy, a role, a restart policy and a success rule may be."""

from __future__ import annotations

from enum import StrEnum


class Strategy(StrEnum):
    """How TensorFlow spreads the training over the tasks."""

    MULTI_WORKER_MIRRORED = "multi-worker-mirrored"
    PARAMETER_SERVER = "parameter-server"
    MIRRORED = "mirrored"
    ONE_DEVICE = "one-device"
    NONE = "none"


class RoleName(StrEnum):
    """The roles, in the order in which they are always listed."""

    CHIEF = "chief"
    WORKER = "worker"
    PS = "ps"
    EVALUATOR = "evaluator"


class RestartPolicy(StrEnum):
    """When a task that ended is started again."""

    NEVER = "never"
    ON_FAILURE = "on-failure"
    EXIT_CODE = "exit-code"
    ALWAYS = "always"


class SuccessRule(StrEnum):
    """Whose exit decides that the run succeeded."""

    CHIEF = "chief"
    ALL_WORKERS = "all-workers"


class KerasChoice(StrEnum):
    """Which Keras the script gets, where the strategy needs more than Keras 3 as shipped."""

    AUTO = "auto"
    PATCHED = "patched"
    LEGACY = "legacy"
    OFF = "off"


class Tracker(StrEnum):
    """What can follow the training, through its own Keras callback."""

    TENSORBOARD = "tensorboard"
    MLFLOW = "mlflow"
    WANDB = "wandb"


ONE_TASK_STRATEGIES = frozenset({Strategy.MIRRORED, Strategy.ONE_DEVICE, Strategy.NONE})
"""Strategies that train in one process; an evaluator may still stand beside it."""
