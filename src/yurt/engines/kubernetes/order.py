"""The order: what the script in a pod reads beside its own place (`yurt.engines.kubernetes.pod`)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from yurt.contract.config import AgentConfig
from yurt.contract.spec import RunSpec
from yurt.engines.base import Place
from yurt.engines.kubernetes import container, names
from yurt.engines.kubernetes.options import TFJOB, KubernetesOptions
from yurt.engines.kubernetes.resources import has_gpus, threads
from yurt.engines.kubernetes.roles import roles_of

#: Seconds between a task's heartbeats; no more than so many in a second of the whole run.
_BEAT_S: Final = 2.0
_MOST_BEATS_S: Final = 50
#: A task without progress beats every tenth time; after three of those it is taken for lost.
_SILENT_BEATS: Final = 30


def order(
    run: RunSpec,
    place: Place,
    options: KubernetesOptions,
    *,
    namespace: str,
    tfjob: Mapping[str, Any] | None,
    cleans: bool,
) -> dict[str, Any]:
    """As JSON values. `tfjob` is the object, in the way of the operator; `cleans`: the keeper removes pods at the end.

    A role's `visible_gpus` is ``-1`` where others have GPUs and it has none: images may show all of a node's.
    """
    beat_s = max(_BEAT_S, len(run.tasks) / _MOST_BEATS_S)
    folder = (options.python or "").rpartition("/")[0]
    roles = roles_of(run)
    gpus = {tasks[0].role: has_gpus(tasks[0], options.of(tasks[0].role)) for tasks in roles}
    config = AgentConfig(
        run=run,
        task="",
        allocation="",
        store=names.store(run.run_id, namespace),
        token=place.token,
        host="",
        placed_on="",
        work_dir="",
        model_dir="",
        checkpoint_dir="",
        state_dir="",
        publisher=(),
        port=names.PORT,
        store_lost_s=None,
        beat_s=beat_s,
        silent_after_s=beat_s * _SILENT_BEATS,
        python_path_first=folder or None,
    )
    hosts = names.hosts_of_jobs(run.run_id, namespace) if tfjob is None else names.hosts_of_tfjob(namespace)
    return {
        "config": config.to_json(),
        "host": hosts,
        "roles": {
            tasks[0].role: {
                "count": len(tasks),
                "threads": threads(tasks[0], options.of(tasks[0].role)),
                "visible_gpus": "-1" if any(gpus.values()) and not gpus[tasks[0].role] else None,
            }
            for tasks in roles
        },
        "way": "none" if tfjob is None else TFJOB,
        "checkpoints": container.CHECKPOINTS if options.checkpoint_claim is not None else None,
        "keep_model_s": options.keep_model_s,
        "keeper": {
            "port": names.STORE_PORT,
            "namespace": namespace,
            "tfjob": tfjob,
            "node_lost_after_s": options.node_lost_after_s,
            "cleans": cleans,
        },
    }


def text(value: Mapping[str, Any]) -> str:
    """The order as it stands in the secret."""
    return json.dumps(value, separators=(",", ":"), sort_keys=True) + "\n"  # a secret holds 1 MiB
