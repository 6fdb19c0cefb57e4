"""The tasks that train one model, as one of them sees it: who leads, and how all of them agree. Imports TensorFlow.

Under MultiWorkerMirroredStrategy all agree by collectives of the strategy itself, so no shared folder is needed. A
collective must be reached by all members at the same place of the same script.
"""

from __future__ import annotations

import gc
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from yurt.contract import names
from yurt.training.errors import TrainingError

#: So many numbers of eight bytes travel in one collective: 8 MiB.
_AT_ONCE: Final = 1 << 20


@dataclass(frozen=True)
class Gang:
    """`strategy` is None outside any. `several`: more than one member computes each step; `served`: by parameter
    servers, and this is the coordinator. `leads`: this member writes files and speaks for all.
    """

    strategy: Any = None
    several: bool = False
    served: bool = False
    leads: bool = True

    @property
    def pipelines(self) -> int:
        """How many datasets the steps are taken from: under parameter servers each worker has all of the data."""
        if not self.served:
            return 1
        resolver = self.strategy._cluster_resolver  # noqa: SLF001 - the public property is None here (TensorFlow 2.21)
        return len(resolver.cluster_spec().as_dict().get("worker", ())) or 1

    def share(self, payload: bytes | None) -> bytes:
        """What the leader gives, on every member. The others' `payload` is not looked at."""
        if not self.several:
            return payload or b""
        own = payload if self.leads and payload is not None else b""
        size = int(self.total([len(own)])[0])
        numbers = np.zeros(-(-size // 8), np.int64)
        if self.leads:
            numbers.view(np.uint8)[:size] = np.frombuffer(own, np.uint8)
        for first in range(0, len(numbers), _AT_ONCE):
            numbers[first : first + _AT_ONCE] = self._sum(numbers[first : first + _AT_ONCE])
        return numbers.tobytes()[:size]

    def total(self, values: Sequence[float]) -> list[float]:
        """The sums of whole numbers over the members; the same on each."""
        if not self.several:
            return list(values)
        return [int(value) for value in self._sum(np.array(values, np.int64))]

    def settle(self) -> None:
        """Wait until every step that was asked for has been computed."""
        if self.served:
            import tensorflow as tf

            tf.distribute.coordinator.ClusterCoordinator(self.strategy).join()

    def _sum(self, numbers: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        import tensorflow as tf

        strategy = self.strategy
        own = tf.constant(numbers)
        members = len(_training_tasks(strategy))
        replicas = strategy.num_replicas_in_sync // members
        value = own
        if replicas > 1:  # several devices here: the number is the first one's, the others add nothing
            value = strategy.experimental_distribute_values_from_function(
                lambda context: own if context.replica_id_in_sync_group % replicas == 0 else tf.zeros_like(own)
            )
        summed: np.ndarray[Any, Any] = strategy.reduce("SUM", value, axis=None).numpy()
        return summed


def gang(strategy: Any = None) -> Gang:
    """The gang of a strategy: the one given, else the one of this scope, else the one that this process has made.

    Raises TrainingError where TF_CONFIG names several tasks and there is no strategy yet.
    """
    import tensorflow as tf

    found = strategy if strategy is not None else _current()
    if found is None:
        if _tasks_named() > 1:
            raise TrainingError(
                "TF_CONFIG names several tasks and there is no strategy yet",
                hint="make the strategy first, or give strategy=",
            )
        return Gang()
    if isinstance(found, tf.distribute.ParameterServerStrategy):
        return Gang(found, served=True)
    if isinstance(found, tf.distribute.MultiWorkerMirroredStrategy) and len(_training_tasks(found)) > 1:
        return Gang(found, several=True, leads=bool(found.extended.should_checkpoint))
    return Gang(found)


def _current() -> Any:
    """The strategy of this scope; else the only one of several machines that there is in this process."""
    import tensorflow as tf

    if tf.distribute.has_strategy():
        return tf.distribute.get_strategy()
    kinds = (tf.distribute.MultiWorkerMirroredStrategy, tf.distribute.ParameterServerStrategy)
    made = [each for each in gc.get_objects() if isinstance(each, kinds)]
    distinct = {id(each.extended): each for each in made}
    if len(distinct) > 1:
        raise TrainingError("this process has made several strategies", hint="give strategy=, the one to train with")
    return next(iter(distinct.values()), None)


def _training_tasks(strategy: Any) -> list[str]:
    """Chief and workers of a strategy's cluster; empty where it has none."""
    resolver = strategy.cluster_resolver
    if resolver is None or resolver.task_type not in ("chief", "worker"):
        return []
    spec = resolver.cluster_spec().as_dict()
    return [*spec.get("chief", ()), *spec.get("worker", ())]


def _tasks_named() -> int:
    """How many tasks TF_CONFIG says train with this one."""
    try:
        config = json.loads(os.environ.get(names.TF_CONFIG) or "{}")
        cluster, task = config.get("cluster") or {}, config.get("task") or {}
        if task.get("type") not in ("chief", "master", "worker"):
            return 0
        return sum(len(cluster.get(role, ())) for role in ("chief", "master", "worker", "ps"))
    except (ValueError, AttributeError, TypeError):
        return 0
