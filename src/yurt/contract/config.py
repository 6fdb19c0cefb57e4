"""What an engine hands to an agent: one JSON file (or text), beside the agent's zipapp."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from yurt.contract.spec import RunSpec


@dataclass(frozen=True, slots=True)
class AgentConfig:
    """One task's agent: its run, its task, its place.

    store, token
        Address of the key-value store (``http://host:port``) and the run's token for it.
    store_lost_s
        Seconds without anybody listening at the store after which the agent ends its task and itself; None where
        a store that is away must not hurt a running gang (Consul).
    store_tls
        Towards an https store: the parameters of `yurt.kv.tls.TlsParams` by name; its files are of the task's place.
    host, bind_host
        The address that peers are told, and the one to bind (TensorFlow's server binds all, whatever it is told).
    reaches_itself
        Whether the address that peers are told leads back to the task. Where it does not (a bridge network), the task's
        own TF_CONFIG has a loopback in its place: TensorFlow 2.21 speaks to itself by it, and would wait for ever.
    port
        The port that the engine has set aside for the task; None, or one that somebody uses, means any free one.
    placed_on
        Where this is, for people: machine, node or container.
    work_dir, model_dir, checkpoint_dir, state_dir
        The task's working folder; where it saves; the run's checkpoints; the agent's own files.
    tracking_dir
        The run's folder for trackers; None is a folder among the checkpoints, which outlive a restart on any engine.
    python_path_first
        Folder put first on PATH, so that `python` is the one that is meant; None leaves PATH alone.
    cpus
        CPU numbers that the task's process may use, or None for all; `threads` is what TensorFlow is told.
    visible_gpus
        Text of CUDA_VISIBLE_DEVICES, or None to leave it alone.
    publisher
        Command that publishes, without its arguments; empty where the launcher publishes.
    log_times
        File that gets ``<unix time> <byte offset>`` of the output, or None.
    observe
        Whether this agent moves the run on for all (where no launcher watches).
    silent_after_s
        Seconds without a heartbeat after which an agent that observes takes another for lost; None leaves that to
        the engine. More than ten times `beat_s`: a task whose progress stands still beats that seldom.
    environment
        Engine's own additions for the task.
    """

    run: RunSpec
    task: str
    allocation: str
    store: str
    token: str
    host: str
    placed_on: str
    work_dir: str
    model_dir: str
    checkpoint_dir: str
    state_dir: str
    publisher: tuple[str, ...]
    tracking_dir: str | None = None
    store_tls: Mapping[str, Any] = field(default_factory=dict)
    bind_host: str = ""
    reaches_itself: bool = True
    port: int | None = None
    store_lost_s: float | None = None
    beat_s: float = 5.0
    peer_check_s: float = 30.0
    python_path_first: str | None = None
    cpus: tuple[int, ...] | None = None
    threads: int | None = None
    visible_gpus: str | None = None
    log_times: str | None = None
    observe: bool = False
    silent_after_s: float | None = None
    environment: Mapping[str, str] = field(default_factory=dict)

    def dumps(self) -> str:
        """As JSON text."""
        return json.dumps(asdict(self))

    @classmethod
    def loads(cls, text: str) -> AgentConfig:
        """Back from `dumps`."""
        return cls.from_json(json.loads(text))

    def to_json(self) -> dict[str, Any]:
        """As JSON values."""
        value: dict[str, Any] = json.loads(self.dumps())
        return value

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> AgentConfig:
        """Back from `to_json`."""
        return cls(
            **{
                **value,
                "run": RunSpec.from_json(value["run"]),
                "publisher": tuple(value["publisher"]),
                "cpus": tuple(value["cpus"]) if value["cpus"] is not None else None,
            }
        )
