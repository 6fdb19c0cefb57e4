"""What may stand under ``engines: docker:``."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

#: Where a run's own things are in its containers; nothing else may be mounted there.
YURT = "/yurt"


def _volume(text: str) -> str:
    source, target, mode = volume_parts(text)
    if not source.startswith("/") or not target.startswith("/") or mode not in ("ro", "rw"):
        raise ValueError("must be a folder and where it is seen, both from / on, such as /data:/data or /data:/data:ro")
    if target == "/" or f"{target}/".startswith(f"{YURT}/"):
        raise ValueError(f"cannot be seen at {target}: that place is taken")
    return text


def volume_parts(text: str) -> tuple[str, str, str]:
    """``/data:/mnt:ro`` as (source, target, mode); what is not said is empty, the mode ``rw``."""
    source, _, rest = text.partition(":")
    target, _, mode = rest.partition(":")
    return source, target, mode or "rw"


class DockerOptions(BaseModel):
    """Options of the Docker engine."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    network: str | None = Field(
        default=None,
        description="A Docker network that is there already, or host for the machine's own; "
        "without it every run has a network of its own.",
    )
    volumes: tuple[Annotated[str, AfterValidator(_volume)], ...] = Field(
        default=(),
        description="Folders of this machine that the tasks see, as in /data:/data:ro; can be written without :ro.",
    )
    pin: bool = Field(
        default=True,
        description="Divide the machine's CPUs among the tasks, as on this machine without Docker; "
        "false leaves those to the system that name no cpus.",
    )
    python: str | None = Field(
        default=None,
        description="The image's Python if it is not the python3 or python on its PATH, such as /opt/venv/bin/python.",
    )
    store_host: str | None = Field(
        default=None,
        description="The address at which this machine and the containers reach the run's store, "
        "where that is not their network's gateway (rootless Docker).",
    )
