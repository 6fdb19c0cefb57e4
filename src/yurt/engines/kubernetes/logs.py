"""A task's output over all its pods and their restarts, followed live, as one stream of bytes.

One thread and one open stream a task. A container's output is followed from its start, or from where another process
stopped reading; once it has ended, what is left is read, and the next allocation's follows.
"""

from __future__ import annotations

import re
import threading
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from yurt.engines.kubernetes.client import Client, KubernetesError
from yurt.engines.kubernetes.kinds import POD
from yurt.engines.kubernetes.session import Stream
from yurt.engines.kubernetes.stamped import Place, Stamped
from yurt.engines.kubernetes.states import CONTAINER, GONE, is_going, task_status
from yurt.errors import EngineError

#: Bytes that wait to be taken by `read`; while there are more, no more is read from the cluster.
_MOST_WAITING: Final = 4 << 20
#: Bytes that one `read` gives.
_MOST_AT_ONCE: Final = 1 << 20
#: Seconds between two tries: the first, and the most.
_PAUSE_S: Final = 0.3
_LONGEST_PAUSE_S: Final = 8.0
#: Seconds that a container whose stream has ended has to be seen ended before it is asked again.
_END_S: Final = 3.0
#: Seconds without output after which a pod that is going is left for the one that has its task now.
_SILENT_S: Final = 10.0
#: Seconds that `read` waits for the last lines of an ended container, and for which it says nothing of a fault.
_LAST_LINES_S: Final = 2.0
_FAULT_S: Final = 3.0
#: Seconds that `close` waits for the thread: one that makes a connection ends when that has failed.
_CLOSE_S: Final = 5.0
#: Refusals after which the output of an ended container is given up.
_TRIES: Final = 3
#: What the kubelet says of a container that is about to run.
_STARTING: Final = re.compile("is waiting to start")
_NOT_OVER: Final = "closed"


@dataclass
class Cursor:
    """Where the reading of one task stands. `position` bytes were given; `allocations` are read to their end."""

    position: int = 0
    allocations: list[str] = field(default_factory=list)
    allocation: str = ""
    stamp: str = ""
    nth: int = 0
    given: int = 0

    @property
    def place(self) -> Place:
        """In `allocation`."""
        return Place(self.stamp, self.nth, self.given)


@dataclass(frozen=True, slots=True)
class _Source:
    """One container: the `restart`-th start of ``tensorflow`` in a pod."""

    id: str
    uid: str
    pod: str
    behind: int  # starts since: the kubelet keeps the last (0) and the one before it (1)
    ended: bool
    going: bool = False
    gone: bool = False


@dataclass(frozen=True, slots=True)
class _Item:
    """What waits to be taken by `read`; `done`: the allocation is read to its end."""

    data: bytes
    allocation: str
    place: Place
    done: bool = False


class TaskLog:
    """Reads one task's output forward, from `cursor` on. `take` its pods as they change, `read` what has come."""

    def __init__(self, client: Client, namespace: str, cursor: Cursor | None = None) -> None:
        self.cursor = cursor or Cursor()
        self._client = client
        self._namespace = namespace
        self._pods: dict[str, tuple[str, list[_Source]]] = {}  # uid -> when it was made, its containers
        self._done = set(self.cursor.allocations)
        self._items: deque[_Item] = deque()
        self._waiting_bytes = 0
        self._changed = threading.Condition()
        self._ending = False
        self._thread: threading.Thread | None = None
        # Of the container that is being read.
        self._source: _Source | None = None
        self._place = self.cursor.place
        self._line_begins = True
        self._stream: Stream | None = None
        self._heard_at = 0.0  # when anything came, also what was read before
        self._new_at = 0.0
        self._fault: tuple[float, EngineError] | None = None

    def take(self, pod: Mapping[str, Any]) -> None:
        """A pod of this task as it is now, also one that is gone."""
        meta = pod["metadata"]
        with self._changed:
            if self._ending:
                return
            self._pods[meta["uid"]] = (str(meta.get("creationTimestamp")), _sources_of(pod))
            if self._thread is None and self._next() is not None:
                self._thread = threading.Thread(target=self._work, name=f"log of {meta['name']}", daemon=True)
                self._thread.start()
            self._changed.notify_all()

    def read(self) -> bytes:
        """What has come since; empty where there is nothing yet. Raises EngineError where it cannot be had now."""
        self._break_off_what_is_stuck()
        with self._changed:
            if not self._items:
                self._changed.wait_for(lambda: self._items or not self._last_lines_are_coming(), _LAST_LINES_S)
            given = []
            size = 0
            while self._items and size < _MOST_AT_ONCE:
                item = self._items.popleft()
                self._note(item)
                given.append(item.data)
                size += len(item.data)
            self._waiting_bytes -= size
            self._changed.notify_all()
            if not size and self._fault is not None and self._is_in_the_way():
                raise self._fault[1].with_traceback(None)
            return b"".join(given)

    def close(self) -> None:
        """End the thread. What `read` has not taken is read again by whoever goes on at `cursor`."""
        with self._changed:
            self._ending = True
            stream = self._stream
            self._changed.notify_all()
        if stream is not None:
            stream.close()
        if self._thread is not None:
            self._thread.join(_CLOSE_S)

    def _note(self, item: _Item) -> None:
        at = self.cursor
        at.position += len(item.data)
        at.allocation, at.stamp, at.nth, at.given = item.allocation, item.place.stamp, item.place.nth, item.place.given
        if item.done:
            at.allocations.append(item.allocation)
            at.allocation, at.stamp, at.nth, at.given = "", "", 0, 0

    def _next(self) -> _Source | None:
        """The oldest container that is not read to its end."""
        for _, sources in sorted(self._pods.values(), key=lambda each: each[0]):
            for source in sources:
                if source.id not in self._done:
                    return source
        return None

    def _last_lines_are_coming(self) -> bool:
        """A container has ended, and its output is not read to the end."""
        source = self._next()
        return source is not None and source.ended and not self._ending and not self._is_in_the_way()

    def _is_in_the_way(self) -> bool:
        """A fault that is more than a blink."""
        return self._fault is not None and time.monotonic() - self._fault[0] > _FAULT_S

    def _is_followed(self, source: _Source) -> bool:
        """Another container has the task by now."""
        ids = [each.id for _, sources in sorted(self._pods.values(), key=lambda each: each[0]) for each in sources]
        return source.id in ids and ids[-1] != source.id

    def _break_off_what_is_stuck(self) -> None:
        """End a stream that gives nothing though its container has ended, or is going and another has its task."""
        with self._changed:
            source, stream = self._source, self._stream
            if source is None or stream is None:
                return
            now = self._as_it_is(source)
            over = (now.gone or now.ended) and time.monotonic() - self._heard_at > _END_S
            if not over and not self._is_left_behind(now):
                return
        stream.close()

    def _is_left_behind(self, source: _Source) -> bool:
        """It is going, says nothing more, and another container has its task."""
        return source.going and self._is_followed(source) and time.monotonic() - self._new_at > _SILENT_S

    def _as_it_is(self, source: _Source) -> _Source:
        _, sources = self._pods.get(source.uid, ("", []))
        return next((each for each in sources if each.id == source.id), source)

    # In the thread.

    def _work(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._ending or self._next() is not None)
                source = self._next()
                if self._ending or source is None:
                    return
                self._source = source
                known = self.cursor.allocation == source.id
                self._place = self.cursor.place if known else Place()
                self._heard_at = self._new_at = time.monotonic()
            why = self._read_to_its_end(source)
            if why is _NOT_OVER:
                return
            with self._changed:
                self._done.add(source.id)
                self._fault = None
            line = f"yurt: the rest of the output of {source.pod} is gone: {why}\n" if why else ""
            self._give(self._own(line), self._place, done=True)

    def _read_to_its_end(self, source: _Source) -> str | None:
        """Why the rest of it cannot be had; None where there is none, `_NOT_OVER` where this log was closed."""
        pause_s, tries = _PAUSE_S, 0
        whole = False  # the kubelet has ended the last stream by itself: there was no more
        while True:
            with self._changed:
                if self._ending:
                    return _NOT_OVER
                source = self._as_it_is(source)
            if source.behind > 1:
                return "it was started again before this was read"
            try:
                if source.gone or (tries and not self._is_there(source)):
                    return None if whole else "its pod is gone"
                self._follow(source)
            except EngineError as error:
                tries += 1
                whole = whole and isinstance(error, KubernetesError)
                if (why := self._why_given_up(source, error, tries)) is not None:
                    return why
                with self._changed:
                    if not _STARTING.search(str(error)):
                        self._fault = self._fault or (time.monotonic(), error)
                    self._changed.wait_for(lambda: self._ending, pause_s)
                pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
                continue
            if source.ended:
                return None
            pause_s, tries, whole = _PAUSE_S, 0, True
            self._wait_for_news_of(source)

    def _wait_for_news_of(self, source: _Source) -> None:
        """The kubelet ends the stream a little before the pod is said to have ended."""
        with self._changed:
            self._changed.wait_for(lambda: self._ending or self._as_it_is(source) != source, _END_S)

    def _why_given_up(self, source: _Source, error: EngineError, tries: int) -> str | None:
        with self._changed:
            now = self._as_it_is(source)
            if self._is_left_behind(now):
                return "its node does not answer, and another pod has its task"
        refused = isinstance(error, _NoOutput) or (isinstance(error, KubernetesError) and error.status in (400, 404))
        return str(error) if now.ended and refused and tries >= _TRIES else None

    def _is_there(self, source: _Source) -> bool:
        """A log is asked for by its pod's name, which another pod may have by now."""
        pod = self._client.get(POD, source.pod, self._namespace)
        return pod is not None and pod["metadata"]["uid"] == source.uid

    def _follow(self, source: _Source) -> None:
        """One stream, until the kubelet ends it."""
        query = {"timestamps": "true"}
        if (since := self._place.since) is not None:
            query["sinceTime"] = since
        if source.ended:
            query["follow"] = "false"
        if source.behind:
            query["previous"] = "true"
        stream = self._client.follow_log(source.pod, CONTAINER, query, self._namespace)
        with self._changed:
            self._stream = stream
            self._heard_at = time.monotonic()
            if self._ending:
                stream.close()
        stamped = Stamped(self._place)
        try:
            for piece in stream.pieces():
                self._take_in(stamped, stamped.feed(piece))
        finally:
            self._take_in(stamped, stamped.flush())
            with self._changed:
                self._stream = None
            stream.close()
        if stamped.complaint:
            raise _NoOutput(stamped.complaint)

    def _take_in(self, stamped: Stamped, data: bytes) -> None:
        with self._changed:
            self._heard_at = time.monotonic()
            self._fault = None
        if stamped.place == self._place:
            return
        if stamped.missing:
            stamped.missing = False
            data = self._own("yurt: some of the output is gone: its node has begun a new file\n") + data
        self._give(data, stamped.place)

    def _own(self, line: str) -> bytes:
        """A line of Yurt's own, on a line of its own."""
        return (b"" if self._line_begins or not line else b"\n") + line.encode()

    def _give(self, data: bytes, place: Place, *, done: bool = False) -> None:
        assert self._source is not None
        with self._changed:
            self._changed.wait_for(lambda: self._ending or self._waiting_bytes < _MOST_WAITING)
            if self._ending:
                return
            self._place = place
            if data:
                self._new_at = time.monotonic()
                self._line_begins = data.endswith(b"\n")
            self._waiting_bytes += len(data)
            self._items.append(_Item(data, self._source.id, place, done))
            self._changed.notify_all()


class _NoOutput(EngineError):
    """The kubelet gave a complaint in the place of output."""


def _sources_of(pod: Mapping[str, Any]) -> list[_Source]:
    """The containers of the task that were started in a pod, the oldest first."""
    status = task_status(pod)
    meta = pod["metadata"]
    state = status.get("state") or {}
    ended = "terminated" in state or (
        "running" not in state and bool((status.get("lastState") or {}).get("terminated"))
    )
    last = int(status.get("restartCount") or 0)
    started = ended or "running" in state
    gone = GONE in pod
    return [
        _Source(
            id=f"{meta['uid']}.{restart}",
            uid=meta["uid"],
            pod=meta["name"],
            behind=last - restart,
            ended=ended or gone or restart < last,
            going=is_going(pod),
            gone=gone,
        )
        for restart in range(last + started)
    ]
