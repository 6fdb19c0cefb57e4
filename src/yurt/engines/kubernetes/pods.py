"""The pods of one run, held as they are now by one watch: a list, then what changes."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any, Final

from yurt.engines.kubernetes.client import Client, Expired, KubernetesError, Watch
from yurt.engines.kubernetes.kinds import POD
from yurt.engines.kubernetes.states import GONE, is_keeper, task_of
from yurt.errors import EngineError

#: Seconds between two tries while the API server does not answer: the first, and the most.
_PAUSE_S: Final = 0.5
_LONGEST_PAUSE_S: Final = 8.0
#: Seconds for which one list is tried.
_PATIENCE_S: Final = 2.0
#: Seconds that the first list is waited for, and for which silence later on is not worth a word.
_FIRST_S: Final = 20.0
_BLINK_S: Final = 5.0
#: Pods that are gone of which the last that was seen is kept.
_GONE_KEPT: Final = 256
#: Seconds that `stop` waits for the thread: one that makes a connection ends when that has failed.
_STOP_S: Final = 5.0

Pod = Mapping[str, Any]


class PodWatch:
    """Watches the pods of a selector in a thread, which begins with the first question.

    It holds what is, not what happened: whoever has slept has missed nothing. While the API server does not answer it
    tries for ever; `error` and `silent_since` (`time.time()`) say so. A pod that is gone stays, marked `states.GONE`,
    as it was last seen. `on_change` is called in the thread after each change.
    """

    def __init__(self, client: Client, namespace: str, selector: str) -> None:
        self._client = client
        self._lister = Client(client.session, patience_s=_PATIENCE_S)
        self._namespace = namespace
        self._selector = selector
        self._pods: dict[str, Pod] = {}
        self._gone: OrderedDict[str, Pod] = OrderedDict()
        self._version: str | None = None  # after which the watch goes on; None: list
        self._lock = threading.Lock()
        self._watch: Watch | None = None
        self._ending = threading.Event()
        self._answered = threading.Event()  # the first list, or a fault
        self._thread: threading.Thread | None = None
        self.on_change: Callable[[], object] = lambda: None
        self.error: EngineError | None = None
        self.silent_since: float | None = None

    def check(self) -> None:
        """Raise why nothing is known of the pods: Unreachable after some seconds, a refusal at once."""
        self._start()
        error, since = self.error, self.silent_since
        if error is None or since is None:
            return
        if isinstance(error, KubernetesError) or self._version is None or time.time() - since > _BLINK_S:
            raise error

    def pods(self) -> list[Pod]:
        """As they are now, those that are gone first."""
        self._start()
        with self._lock:
            return [*self._gone.values(), *self._pods.values()]

    def by_task(self) -> dict[str, list[Pod]]:
        """The pods of each task, the oldest first, those that are gone as well."""
        found: dict[str, list[Pod]] = {}
        for pod in sorted(self.pods(), key=_made):
            if (task := task_of(pod)) is not None:
                found.setdefault(task, []).append(pod)
        return found

    def keepers(self) -> list[Pod]:
        """The keeper's pods, the newest first."""
        found = [pod for pod in self.pods() if is_keeper(pod)]
        return sorted(found, key=_made, reverse=True)

    def stop(self) -> None:
        """End the thread."""
        self._ending.set()
        with self._lock:
            watch, thread = self._watch, self._thread
        if watch is not None:
            watch.close()
        if thread is not None and thread is not threading.current_thread():
            thread.join(_STOP_S)

    def _start(self) -> None:
        with self._lock:
            if self._thread is None and not self._ending.is_set():
                self._thread = threading.Thread(target=self._work, name=f"pods {self._selector}", daemon=True)
                self._thread.start()
        if threading.current_thread() is not self._thread:
            self._answered.wait(_FIRST_S)

    def _work(self) -> None:
        pause_s = _PAUSE_S
        while not self._ending.is_set():
            try:
                if self._version is None:
                    self._list()
                began = time.monotonic()
                self._follow(self._version or "")
                pause_s = _PAUSE_S
                if time.monotonic() - began < _PAUSE_S:
                    self._ending.wait(_PAUSE_S)  # something between us and the server ends every watch at once
            except Expired:
                self._version = None
            except EngineError as error:
                if isinstance(error, KubernetesError) and error.status == 410:
                    self._version = None
                    continue
                pause_s = _PAUSE_S if self.silent_since is None else min(2 * pause_s, _LONGEST_PAUSE_S)
                self._fell_silent(error)
                self._ending.wait(pause_s)
        self._answered.set()

    def _fell_silent(self, error: EngineError) -> None:
        self.error = error
        if self.silent_since is None and not self._ending.is_set():
            self.silent_since = time.time()
            self._answered.set()
            self.on_change()

    def _heard(self) -> None:
        was_silent = self.silent_since is not None
        self.error = self.silent_since = None
        if was_silent:
            self.on_change()

    def _list(self) -> None:
        found = self._lister.list(POD, self._namespace, labels=self._selector)
        pods = {pod["metadata"]["uid"]: pod for pod in found.get("items", ())}
        with self._lock:
            for uid, pod in self._pods.items():
                if uid not in pods:
                    self._keep(uid, pod)
            self._pods = pods
        self._version = found["metadata"]["resourceVersion"]
        self._answered.set()
        self.on_change()

    def _follow(self, version: str) -> None:
        watch = self._client.watch(POD, version, self._namespace, labels=self._selector)
        self._heard()
        with self._lock:
            self._watch = watch
        try:
            if self._ending.is_set():
                return
            for event in watch:
                self._take(event["type"], event["object"])
                if self._ending.is_set():
                    return
        finally:
            with self._lock:
                self._watch = None
            watch.close()

    def _take(self, kind: str, pod: Pod) -> None:
        self._version = pod["metadata"]["resourceVersion"]
        if kind == "BOOKMARK":
            return
        uid = pod["metadata"]["uid"]
        with self._lock:
            if kind == "DELETED":
                self._pods.pop(uid, None)
                self._keep(uid, pod)
            else:
                self._pods[uid] = pod
        self.on_change()

    def _keep(self, uid: str, pod: Pod) -> None:
        self._gone[uid] = {**pod, GONE: True}
        while len(self._gone) > _GONE_KEPT:
            self._gone.popitem(last=False)


def _made(pod: Pod) -> str:
    return str(pod["metadata"].get("creationTimestamp"))
