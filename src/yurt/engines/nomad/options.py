"""What may stand under ``engines: nomad:``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field


class Constraint(BaseModel):
    """One of Nomad's constraints, in its own words."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    attribute: str = Field(default="", description="Such as ${node.class} or ${attr.cpu.arch}.")
    operator: str = Field(default="=", description="Such as =, !=, >, regexp, version, set_contains.")
    value: str = Field(default="", description="What it is compared with.")


class Affinity(Constraint):
    """One of Nomad's affinities: where tasks would rather be."""

    weight: int = Field(default=50, ge=-100, le=100, description="From -100 to 100; below 0 keeps away.")


class Volume(BaseModel):
    """A volume of the nodes, and where the tasks see it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    source: str = Field(description="The host volume's name in the clients' configuration.")
    path: str = Field(description="Where it is seen.")
    read_only: bool = Field(default=False, description="Whether it cannot be written to.")


class NomadOptions(BaseModel):
    """Options of the Nomad engine."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    driver: Literal["raw_exec", "exec", "docker"] = Field(
        default="raw_exec", description="How the nodes run tasks; docker needs the job's image."
    )
    python: str = Field(
        default="python3",
        description="The nodes' Python, 3.11 or later, with TensorFlow: a name, or a path whose folder is put first "
        "on PATH.",
    )
    datacenters: tuple[str, ...] | None = Field(
        default=None, min_length=1, description="Where the tasks may be; without it wherever there are nodes."
    )
    region: str | None = Field(default=None, description="The region; without it that of NOMAD_REGION, or the agent's.")
    namespace: str | None = Field(default=None, description="The namespace; without it that of NOMAD_NAMESPACE.")
    node_pool: str | None = Field(default=None, description="The node pool (Nomad 1.6 and later).")
    priority: int = Field(default=50, ge=1, le=100, description="The job's priority among others.")
    share: bool = Field(default=False, description="Whether two tasks may be on one node.")
    constraints: tuple[Constraint, ...] = Field(default=(), description="What a node must have.")
    affinities: tuple[Affinity, ...] = Field(default=(), description="Which nodes are preferred.")
    volumes: Mapping[str, Volume] = Field(default_factory=dict, description="Volumes by a name of your own.")
    consul: str | None = Field(
        default=None,
        description="Consul's address as the tasks see it; without it http://127.0.0.1:8500, each node's own.",
    )
    host: str | None = Field(
        default=None,
        description="The address that tasks are told for each other, in Nomad's words; without it the node's own.",
    )
    shared_folder: str | None = Field(
        default=None,
        description="A folder that all nodes see at this path: checkpoints are kept in it.",
    )
    disk_mb: int = Field(default=300, ge=50, description="Disk for each task in MB; two thirds of it are for its log.")
    meta: Mapping[str, str] = Field(default_factory=dict, description="Meta data of the job.")
    config: Mapping[str, Any] = Field(
        default_factory=dict, description="More of the driver's own configuration, in Nomad's words."
    )
