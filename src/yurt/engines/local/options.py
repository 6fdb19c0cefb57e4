"""What may stand under ``engines: local:``."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field


class LocalOptions(BaseModel):
    """Options of the local engine."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    pin: bool = Field(
        default=True,
        description="Divide the machine's CPUs among the tasks: each keeps to its own, with as many threads. "
        "false leaves both to the system and TensorFlow.",
    )
    host: str = Field(
        default="127.0.0.1",
        description="The address that tasks are told for each other.",
    )
