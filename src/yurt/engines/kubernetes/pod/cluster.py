"""A run's objects in the cluster, as its keeper sees them and removes them."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from yurt.engines.kubernetes.pod.api import Api, ApiError, in_cluster
from yurt.engines.kubernetes.pod.tfjobs import is_over
from yurt.errors import EngineError, StoreError

_RUN: Final = "yurt/run"
_COMPONENT: Final = "app.kubernetes.io/component"
_KEEPER: Final = "keeper"
#: Seconds that one watch lasts, and the rest after a look that has failed.
_WATCH_S: Final = 120
_RETRY_S: Final = 2.0
#: Seconds that jobs have to notice that their pods have ended.
_FINISH_S: Final = 20.0


class PodCluster:
    """The run's TFJobs, Jobs and pods by an account of the cluster; every method raises ApiError."""

    def __init__(self, api: Api, run_id: str, namespace: str) -> None:
        self._api = api
        self._query = {"labelSelector": f"{_RUN}={run_id}"}
        self._tfjobs = f"/apis/kubeflow.org/v1/namespaces/{namespace}/tfjobs"
        self._jobs = f"/apis/batch/v1/namespaces/{namespace}/jobs"
        self._pods = f"/api/v1/namespaces/{namespace}/pods"
        self._version = ""

    def tfjobs(self) -> Sequence[Mapping[str, Any]]:
        """All of the run."""
        found = self._api.get(self._tfjobs, self._query)
        self._version = found["metadata"]["resourceVersion"]
        items: list[dict[str, Any]] = found["items"]
        return items

    def wait(self) -> None:
        """Until something has changed among them since the last `tfjobs`, or a while has passed."""
        self._api.changed(self._tfjobs, {**self._query, "resourceVersion": self._version}, _WATCH_S)

    def pods(self) -> Sequence[Mapping[str, Any]]:
        """All of the run."""
        items: list[dict[str, Any]] = self._api.get(self._pods, self._query)["items"]
        return items

    def create(self, tfjob: Mapping[str, Any]) -> None:
        """One that exists is no error."""
        try:
            self._api.create(self._tfjobs, tfjob)
        except ApiError as error:
            if error.status != 409:
                raise

    def delete(self, name: str) -> None:
        """A TFJob with its pods; it stays until they are gone."""
        self._api.delete(f"{self._tfjobs}/{name}", "Foreground")

    def clean(self, *, tfjobs: bool) -> None:
        """The run is over: remove its Jobs and TFJobs that have not ended, such as where pods found no room."""
        end = time.monotonic() + _FINISH_S
        while left := [each for each in self._api.get(self._jobs, self._query)["items"] if _unfinished(each)]:
            if time.monotonic() >= end or all(_waits(each) for each in left):
                break
            time.sleep(1.0)
        while tfjobs and time.monotonic() < end and not all(is_over(each) for each in self.tfjobs()):
            time.sleep(1.0)  # the operator has not noticed yet; what is over stays, with its pods' output
        for job in left:
            self._api.delete(f"{self._jobs}/{job['metadata']['name']}", "Background")
        for tfjob in self.tfjobs() if tfjobs else ():
            if not is_over(tfjob):
                self._api.delete(f"{self._tfjobs}/{tfjob['metadata']['name']}", "Background")


def own_cluster(variables: Mapping[str, str], run_id: str, namespace: str) -> PodCluster | None:
    """None where this pod has no account of its cluster."""
    api = in_cluster(variables)
    return PodCluster(api, run_id, namespace) if api is not None else None


def follow(
    cluster: PodCluster,
    look: Callable[[], float | None],
    over: Callable[[], bool],
    on_refused: Callable[[ApiError], None],
) -> None:
    """Look whenever a TFJob changes, until the run is over; what fails is tried again, what is forbidden is not."""
    while not over():
        try:
            pause_s = look()
            if pause_s is not None:
                time.sleep(pause_s)
            elif not over():  # asked again: with a verdict that fell meanwhile nothing need ever change any more
                cluster.wait()
        except ApiError as error:
            if error.status in (401, 403):
                on_refused(error)
                return
            time.sleep(_RETRY_S)
        except (EngineError, StoreError):
            time.sleep(_RETRY_S)


def _unfinished(job: Mapping[str, Any]) -> bool:
    if job["metadata"].get("labels", {}).get(_COMPONENT) == _KEEPER or "deletionTimestamp" in job["metadata"]:
        return False
    conditions = job.get("status", {}).get("conditions") or ()
    return not any(each["type"] in ("Complete", "Failed") and each["status"] == "True" for each in conditions)


def _waits(job: Mapping[str, Any]) -> bool:
    """Whether it has pods that have not even started."""
    status = job.get("status", {})
    return int(status.get("active") or 0) > int(status.get("ready") or 0)
