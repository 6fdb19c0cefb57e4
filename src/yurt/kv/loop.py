"""The embedded store's one thread: accepts, reads, answers, and sleeps until there is something to do.

One thread for all connections and not one each: two hundred blocked watchers are two hundred small
objects, an idle store costs no CPU at all, and a write reaches a watcher without a change of thread.
"""

from __future__ import annotations

import selectors
import socket
import threading
from _operator import _compare_digest  # hmac.compare_digest, without the 3.6 MB of OpenSSL that hmac brings
from collections import deque
from typing import TYPE_CHECKING

from yurt.kv.messages import Reply
from yurt.kv.peer import Memo, Peer
from yurt.kv.timers import Timer, Timers

if TYPE_CHECKING:
    from collections.abc import Callable

    from yurt.kv.state import State

PEER_LIMIT = 2000
"""Connections at a time; one more is answered 503 and closed."""

_ACCEPT_PAUSE_S = 0.2
_FULL = Reply(503, b"too many connections", last=True).to_bytes()


class Loop:
    """Serves `state` at `listener` until `stop`; every request has to carry `token`, where there is one."""

    def __init__(
        self, listener: socket.socket, state: State, token: str | None, clock: Callable[[], float], leader: str
    ) -> None:
        self.state = state
        self.leader = leader
        self._listener = listener
        self._token = None if token is None else token.encode()
        self._clock = clock
        self._selector = selectors.DefaultSelector()
        self._timers = Timers()
        self._peers: set[Peer] = set()
        self._woken: deque[Peer] = deque()
        self._poked = False
        self._stopping = False
        self._waker, self._alarm = socket.socketpair()
        self._waker.setblocking(False)
        self._alarm.setblocking(False)
        listener.setblocking(False)
        self._selector.register(self._alarm, selectors.EVENT_READ, self._on_alarm)
        self._selector.register(listener, selectors.EVENT_READ, self._on_connect)
        self._thread = threading.Thread(target=self._run, name="yurt-store", daemon=True)
        state.on_nearer_expiry = self._poke

    # From any thread

    def start(self) -> None:
        """Begin to serve."""
        self._thread.start()

    def stop(self) -> None:
        """Close all connections and the listener; returns when it is done."""
        self._stopping = True
        self._poke()
        self._thread.join()

    def wake(self, peer: Peer) -> None:
        """Have a waiting peer look again."""
        self._woken.append(peer)
        self._poke()

    def _poke(self) -> None:
        if not self._poked and threading.get_ident() != self._thread.ident:
            self._poked = True
            try:
                self._waker.send(b"\0")
            except OSError:
                pass  # full: it is awake anyway; closed: it has stopped

    # From the peers, in the loop's own thread

    def admits(self, headers: dict[str, str]) -> bool:
        """Whether a request may pass, judged in the same time for every wrong token."""
        if self._token is None:
            return True
        given = headers.get("x-consul-token")
        if given is None:
            scheme, _, rest = headers.get("authorization", "").partition(" ")
            given = rest.strip() if scheme.lower() == "bearer" else ""
        return _compare_digest(given.encode("utf-8", "replace"), self._token)

    def after(self, delay_s: float, call: Callable[[], object]) -> Timer:
        """Call later."""
        return self._timers.add(self._clock() + delay_s, call)

    def listen(self, peer: Peer, sock: socket.socket, old: int, new: int) -> None:
        """Change what a peer's socket is asked for."""
        if not new:
            self._selector.unregister(sock)
        elif old:
            self._selector.modify(sock, new, peer.on_ready)
        else:
            self._selector.register(sock, new, peer.on_ready)
        self._peers.add(peer)

    def forget(self, peer: Peer, sock: socket.socket, *, registered: bool) -> None:
        """A peer has closed."""
        self._peers.discard(peer)
        if registered:
            self._selector.unregister(sock)

    # The thread

    def _run(self) -> None:
        while not self._stopping:
            for key, mask in self._selector.select(self._sleep_s()):
                self._guard(key.data, mask)
            self._timers.run(self._clock())
            self.state.tick()
            if self._woken:
                self._resume_woken()
        for peer in list(self._peers):
            peer.close()
        self._selector.close()
        for sock in (self._listener, self._alarm, self._waker):
            sock.close()

    def _sleep_s(self) -> float | None:
        due = [when_s for when_s in (self._timers.next_s(), self.state.next_expiry_s) if when_s is not None]
        return max(0.0, min(due) - self._clock()) if due else None

    def _resume_woken(self) -> None:
        memo: Memo = {}
        for _ in range(len(self._woken)):
            peer = self._woken.popleft()
            try:
                peer.resume(memo)
            except Exception:  # as in _guard
                peer.close()

    def _guard(self, handler: Callable[[int], object], mask: int) -> None:
        """A fault while one peer is served ends that peer's connection and nothing else."""
        try:
            handler(mask)
        except Exception:
            owner = getattr(handler, "__self__", None)
            if isinstance(owner, Peer):
                owner.close()

    def _on_alarm(self, _mask: int) -> None:
        try:
            self._alarm.recv(4096)
        except OSError:
            pass
        self._poked = False

    def _on_connect(self, _mask: int) -> None:
        for _ in range(64):  # then the others have their turn
            try:
                sock, _ = self._listener.accept()
            except (BlockingIOError, InterruptedError, ConnectionError):
                return
            except OSError:  # no descriptors left: looking again at once would burn a core
                self._selector.unregister(self._listener)
                self.after(_ACCEPT_PAUSE_S, self._accept_again)
                return
            try:
                sock.setblocking(False)
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
                if len(self._peers) >= PEER_LIMIT:
                    sock.send(_FULL)
                    sock.close()
                else:
                    Peer(sock, self)
            except OSError:
                sock.close()

    def _accept_again(self) -> None:
        self._selector.register(self._listener, selectors.EVENT_READ, self._on_connect)
