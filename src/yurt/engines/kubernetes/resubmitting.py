"""Submits a lost TFJob again from the launcher, where the run's keeper has no account that may."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Mapping, Sequence
from typing import Any

from yurt.contract import names as keys
from yurt.engines.kubernetes import labels, names
from yurt.engines.kubernetes.client import Client, KubernetesError
from yurt.engines.kubernetes.kinds import POD, SECRET, TFJOB
from yurt.engines.kubernetes.pod.resubmit import Resubmission
from yurt.errors import EngineError
from yurt.kv.run_store import RunStore

#: Seconds between two looks where nothing is to be done.
_EVERY_S = 2.0


class OwnCluster:
    """A run's TFJobs and pods by the account of whoever has submitted it: what `Resubmission` asks for."""

    def __init__(self, client: Client, run_id: str, namespace: str) -> None:
        self._client = client
        self._namespace = namespace
        self._selector = f"{labels.RUN}={run_id}"

    def tfjobs(self) -> Sequence[Mapping[str, Any]]:
        """All of the run."""
        found: list[dict[str, Any]] = self._client.list(TFJOB, self._namespace, labels=self._selector)["items"]
        return found

    def pods(self) -> Sequence[Mapping[str, Any]]:
        """All of the run."""
        found: list[dict[str, Any]] = self._client.list(POD, self._namespace, labels=self._selector)["items"]
        return found

    def create(self, tfjob: Mapping[str, Any]) -> None:
        """One that exists is no error."""
        try:
            self._client.create(tfjob, self._namespace)
        except KubernetesError as error:
            if error.status != 409:
                raise

    def delete(self, name: str) -> None:
        """With its pods, in the foreground; one that is gone is no error."""
        self._client.delete(TFJOB, name, self._namespace, propagation="Foreground")


class Resubmitting:
    """Of one run, for as long as its keeper leaves it to others."""

    def __init__(self, client: Client, run_id: str, namespace: str) -> None:
        self._client = client
        self._run_id = run_id
        self._namespace = namespace
        self._resubmission: Resubmission | None = None
        self._next = 0.0

    def look(self, runs: RunStore) -> None:
        """Do what is to be done now. Raises EngineError, StoreError; asked again, it goes on from where it was."""
        if time.monotonic() < self._next:
            return
        self._next = time.monotonic() + _EVERY_S
        told = runs.store.get(keys.keeper_key(self._run_id))
        if told is None or json.loads(told.value)["may_submit"]:
            return
        if self._resubmission is None:
            cluster = OwnCluster(self._client, self._run_id, self._namespace)
            self._resubmission = Resubmission(cluster, runs, self._submitted())
        pause_s = self._resubmission.look()
        if pause_s is not None:
            self._next = time.monotonic() + pause_s

    def _submitted(self) -> Mapping[str, Any]:
        """The TFJob as it was sent first, from the run's order."""
        secret = self._client.get(SECRET, names.order(self._run_id), self._namespace)
        if secret is None:
            raise EngineError(f"the order of {self._run_id} is gone from the cluster")
        tfjob: dict[str, Any] = json.loads(base64.b64decode(secret["data"][names.ORDER_KEY]))["keeper"]["tfjob"]
        return tfjob
