"""The environment of a task's process."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from yurt.agent.foreign_source import packages
from yurt.contract import names
from yurt.contract.config import AgentConfig
from yurt.contract.spec import CHIEF, PARAMETER_SERVER
from yurt.contract.state import RunState
from yurt.contract.tf_config import LONGEST_ENVIRONMENT_BYTES, seen_from_itself, split_host_port, tf_config

#: Variables of the launcher's or agent's own that a task must not see or inherit.
_PRIVATE = ("YURT_", "CONSUL_HTTP_TOKEN", "NOMAD_TOKEN", "VAULT_TOKEN")
_LONGEST_PROXY_LIST = LONGEST_ENVIRONMENT_BYTES - 64
_PROXIES = ("no_proxy", "NO_PROXY", "no_grpc_proxy")


def environment(
    config: AgentConfig, state: RunState, own_address: str, base: Mapping[str, str]
) -> tuple[dict[str, str], str]:
    """Everything the task's process finds in its environment, and the text of TF_CONFIG.

    The job's own variables win over Yurt's defaults, never over what makes the cluster (TF_CONFIG, YURT_...).
    `base` is the agent's environment.
    """
    task = config.run.task(config.task)
    cluster: Mapping[str, Sequence[str]] = state.cluster or {}
    # The coordinator of parameter servers hands its cluster spec to the others: there it is as they see it.
    if not config.reaches_itself and (config.run.strategy, task.role) != (PARAMETER_SERVER, CHIEF):
        cluster = seen_from_itself(cluster, task.role, task.index, own_address)
    config_text = tf_config(cluster, task.role, task.index, own_address)
    result = {name: value for name, value in base.items() if not name.startswith(_PRIVATE)}
    result |= config.environment
    result |= _defaults(config, task.env, result)
    result |= task.env
    _bypass_proxies(result, state)
    result |= {
        names.RUN_ID: config.run.run_id,
        names.ROLE: task.role,
        names.INDEX: str(task.index),
        names.GENERATION: str(state.generation),
        names.ATTEMPT: str(state.attempts.get(task.name, 0)),
        names.STRATEGY: config.run.strategy,
        names.MODEL_DIR: config.model_dir,
        names.CHECKPOINT_DIR: config.checkpoint_dir,
        names.TRACKING_DIR: config.tracking_dir or os.path.join(config.checkpoint_dir, "tracking"),
        names.JOB: config.run.job_name,
        names.PROGRESS_FILE: os.path.join(config.state_dir, "progress.json"),
        names.TF_CONFIG_FILE: os.path.join(config.state_dir, "tf_config.json"),
        names.PACKAGES: packages(),
        names.PROCESS: mark(config),
    }
    if config.run.track:
        result[names.TRACK] = ",".join(config.run.track)
    result.pop(names.TF_CONFIG, None)
    if len(config_text) + len("TF_CONFIG=") < LONGEST_ENVIRONMENT_BYTES:
        result[names.TF_CONFIG] = config_text
    return result, config_text


def mark(config: AgentConfig) -> str:
    """What YURT_PROCESS says in every process of this task."""
    return f"{config.run.run_id}/{config.task}"


def _defaults(config: AgentConfig, own: Mapping[str, str], inherited: Mapping[str, str]) -> dict[str, str]:
    """What Yurt sets unless somebody else has."""
    defaults = {"PYTHONUNBUFFERED": "1", "TF_CPP_MIN_LOG_LEVEL": "1"}
    if config.threads is not None:
        threads = str(config.threads)
        # With one, a coordinator's step over a per-worker dataset never ends: ParameterServerStrategy's servers need a
        # second to answer while the first waits (TensorFlow 2.21, seen with and without standard servers).
        between = str(max(2, config.threads)) if config.run.strategy == PARAMETER_SERVER else threads
        # Pinning without both thread counts is the worst of all under load (TensorFlow 2.21, measured).
        defaults |= {
            "TF_NUM_INTRAOP_THREADS": threads,
            "TF_NUM_INTEROP_THREADS": between,
            "OPENBLAS_NUM_THREADS": threads,
        }
    values = {name: value for name, value in defaults.items() if name not in inherited}
    if config.visible_gpus is not None and "CUDA_VISIBLE_DEVICES" not in own:
        values["CUDA_VISIBLE_DEVICES"] = config.visible_gpus
    if config.python_path_first:
        values["PATH"] = os.pathsep.join([config.python_path_first, inherited.get("PATH", os.defpath)])
    return values


def _bypass_proxies(result: dict[str, str], state: RunState) -> None:
    """Peers are reached directly: with a proxy set, TensorFlow's workers hang in silence, on 127.0.0.1 too."""
    addresses = [address for addresses in (state.cluster or {}).values() for address in addresses]
    hosts = sorted({split_host_port(address)[0] for address in addresses} | {"localhost", "127.0.0.1"})
    for name in _PROXIES:
        present = [host for host in result.get(name, "").split(",") if host]
        wanted = ",".join(present + [host for host in hosts if host not in present])
        # A value that Linux does not take would keep the process from starting at all.
        result[name] = wanted if len(wanted) < _LONGEST_PROXY_LIST else wanted[:_LONGEST_PROXY_LIST].rpartition(",")[0]
