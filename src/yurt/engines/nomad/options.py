"""What may stand under ``engines: nomad:``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from yurt.engines.travel.options import TravelOptions

#: Beginnings of variables that are Yurt's, Nomad's or taken out before the task starts.
RESERVED: Final = ("YURT_", "NOMAD_", "CONSUL_", "VAULT_", "TF_CONFIG")


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


class ConsulTls(BaseModel):
    """How tasks speak to a Consul over https. Files are paths of PEM files on the nodes."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    ca_file: str | None = Field(default=None, description="The authority; without it the system's are trusted.")
    ca_path: str | None = Field(default=None, description="A folder of authorities.")
    cert_file: str | None = Field(default=None, description="The client's certificate, where Consul asks for one.")
    key_file: str | None = Field(default=None, description="Its key.")
    server_name: str | None = Field(
        default=None, description="The name in Consul's certificate, such as server.dc1.consul."
    )
    verify: bool = Field(default=True, description="Whether the certificate is looked at.")


class Gpu(BaseModel):
    """Which GPUs a role's `gpus` are."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    device: str = Field(default="nvidia/gpu", description="In Nomad's words: TYPE, VENDOR/TYPE or VENDOR/TYPE/MODEL.")
    memory: str | None = Field(default=None, description="How much each must have at least, such as 16 GiB.")
    model: str | None = Field(default=None, description="The model by a regular expression, such as A100|H100.")
    constraints: tuple[Constraint, ...] = Field(
        default=(), description="What each must have: attributes such as ${device.attr.cuda_cores}."
    )
    affinities: tuple[Affinity, ...] = Field(default=(), description="Which are preferred.")

    @field_validator("device")
    @classmethod
    def _named(cls, device: str) -> str:
        if not all(device.split("/", 2)):
            raise ValueError("must be TYPE, VENDOR/TYPE or VENDOR/TYPE/MODEL, such as nvidia/gpu")
        return device


class Secret(BaseModel):
    """Where a secret's value is. Just one of `vault` and `variable`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    vault: str | None = Field(default=None, min_length=1, description="Its path in Vault, such as secret/data/wandb.")
    variable: str | None = Field(
        default=None, min_length=1, description="Its path among Nomad's variables (1.4 and later), such as nomad/jobs."
    )
    key: str = Field(min_length=1, description="Which value of those at the path.")

    @model_validator(mode="after")
    def _one_place(self) -> Secret:
        if (self.vault is None) == (self.variable is None):
            raise ValueError("say either vault or variable")
        return self


class Vault(BaseModel):
    """As whom tasks ask Vault."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    policies: tuple[str, ...] = Field(default=(), description="Vault's policies that the tasks' token has.")
    role: str | None = Field(default=None, description="Vault's role for workload identities (Nomad 1.7 and later).")
    namespace: str | None = Field(default=None, description="Vault's namespace.")


class NomadOptions(TravelOptions):
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
    consul_tls: ConsulTls = Field(
        default_factory=ConsulTls, description="How tasks speak to Consul where its address is an https one."
    )
    network: Literal["host", "bridge"] = Field(
        default="host",
        description="The network that tasks are on: the node's, or one of their own behind it, where the nodes have "
        "CNI plugins.",
    )
    host: str | None = Field(
        default=None,
        description="The address that tasks are told for each other, in Nomad's words; without it the one that Nomad "
        "gives with the port.",
    )
    cores: bool = Field(
        default=False, description="Whether a role's cpus are whole cores of its own (Nomad 1.1 and later)."
    )
    gpu: Gpu = Field(default_factory=Gpu, description="Which GPUs the roles' gpus are.")
    secrets: Mapping[str, Secret] = Field(
        default_factory=dict, description="Environment variables whose values the node fetches."
    )
    vault: Vault = Field(default_factory=Vault, description="As whom tasks ask Vault for secrets.")
    shared_folder: str | None = Field(
        default=None,
        description="A folder that all nodes see at this path: checkpoints are kept in it.",
    )
    disk_mb: int = Field(default=300, ge=50, description="Disk for each task in MB; two thirds of it are for its log.")
    meta: Mapping[str, str] = Field(default_factory=dict, description="Meta data of the job.")
    config: Mapping[str, Any] = Field(
        default_factory=dict, description="More of the driver's own configuration, in Nomad's words."
    )

    @model_validator(mode="after")
    def _kept(self) -> NomadOptions:
        if self.requirements is not None and self.driver != "raw_exec" and self.cache_folder is None:
            raise ValueError(
                f"with the driver {self.driver}, requirements need a cache_folder that outlives tasks: a volume's path"
            )
        return self

    @field_validator("secrets")
    @classmethod
    def _names(cls, secrets: Mapping[str, Secret]) -> Mapping[str, Secret]:
        for name in secrets:
            if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) or name.startswith(RESERVED):
                raise ValueError(f"{name!r} cannot be a secret's variable: {', '.join(RESERVED)} are taken")
        return secrets
