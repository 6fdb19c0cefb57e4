"""One client's connection to the embedded store: what it sent, what it waits for, what it is owed.

Lives in the loop's thread alone. Nothing here blocks, and every state but an idle, known client has a
deadline, so that neither a slow nor a silent peer holds anything for long.
"""

from __future__ import annotations

import selectors
from typing import TYPE_CHECKING

from yurt.kv.messages import RefusedError, Reply, take_head
from yurt.kv.routes import Wait, handle
from yurt.kv.values import VALUE_LIMIT_BYTES

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

    from yurt.kv.loop import Loop
    from yurt.kv.messages import Head
    from yurt.kv.state import Waiter
    from yurt.kv.timers import Timer

REQUEST_TIMEOUT_S = 30.0
"""A request must be whole this long after its first byte, the first one this long after the connection."""

WRITE_TIMEOUT_S = 30.0
"""An answer must be taken within this time."""

LINGER_S = 2.0
LINGER_BYTES = 8 * 1024 * 1024
"""How long and how much is still read, and thrown away, after a last answer: closing a connection with
unread data resets it, and the peer would lose the answer that says what was wrong."""

AHEAD_LIMIT_BYTES = 64 * 1024
"""How much may be sent ahead of an answer before reading stops."""

_RECV_BYTES = 64 * 1024

Memo = dict[tuple[object, ...], tuple[int, bytes]]
"""Answers made for one change: many clients watch the same prefix, and each reads all of it."""


class Peer:
    """A connection that was accepted."""

    def __init__(self, sock: socket.socket, loop: Loop) -> None:
        self._sock = sock
        self._loop = loop
        self._inbox = bytearray()
        self._out = memoryview(b"")
        self._head: Head | None = None
        self._wait: Wait | None = None
        self._waiter: Waiter | None = None
        self._keep_alive = True
        self._lingered_bytes: int | None = None  # not None: the last answer is out
        self._mask = 0
        self._timer: Timer | None = None
        self._closed = False
        self._set_timer(REQUEST_TIMEOUT_S, self.close)
        self._update_mask()

    def on_ready(self, mask: int) -> None:
        """The socket can be read or written."""
        if mask & selectors.EVENT_WRITE:
            self._flush()
        if mask & selectors.EVENT_READ and not self._closed:
            self._receive()
        if not self._closed:
            self._advance()

    def resume(self, memo: Memo) -> None:
        """What it waited for may have happened."""
        wait = self._wait
        if wait is None or self._closed:
            return
        made = memo.get(wait.memo)
        if made is None or made[0] <= wait.index:
            if self._subscribe(wait):
                return
            found = self._loop.state.read(wait.key, recurse=wait.recurse)
            made = memo[wait.memo] = (found.index, wait.render(found).to_bytes())
        self._answer_wait(made[1])

    def close(self) -> None:
        """End the connection; whatever it waited for is forgotten."""
        if self._closed:
            return
        self._closed = True
        self._clear_timer()
        self._unsubscribe()
        self._loop.forget(self, self._sock, registered=bool(self._mask))
        self._sock.close()

    # Reading

    def _receive(self) -> None:
        try:
            data = self._sock.recv(_RECV_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self.close()
        elif self._lingered_bytes is not None:
            self._lingered_bytes += len(data)
            if self._lingered_bytes > LINGER_BYTES:
                self.close()
        else:
            self._inbox += data

    def _advance(self) -> None:
        """Answer what is there, one request after the other."""
        while self._wait is None and not self._out and self._lingered_bytes is None and not self._closed:
            try:
                if self._head is None:
                    self._head = take_head(self._inbox)
                    if self._head is not None:
                        self._admit(self._head)
            except RefusedError as refused:
                self._reply(refused.reply)
                break
            head = self._head
            if head is None or len(self._inbox) < head.length_bytes:
                if (self._inbox or head is not None) and self._timer is None:
                    self._set_timer(REQUEST_TIMEOUT_S, self._too_slow)
                break
            body = bytes(self._inbox[: head.length_bytes])
            del self._inbox[: head.length_bytes]
            self._head = None
            self._clear_timer()
            self._keep_alive = head.keep_alive
            answer = handle(self._loop.state, head, body, self._loop.leader)
            if isinstance(answer, Reply):
                self._reply(answer)
            else:
                self._begin_wait(answer)
        if not self._closed:
            self._update_mask()

    def _admit(self, head: Head) -> None:
        """Refuse before the body is read: whoever has no token, and what is too large."""
        if not self._loop.admits(head.headers):
            known = "x-consul-token" in head.headers or "authorization" in head.headers
            raise RefusedError(403, "ACL not found" if known else "Permission denied", last=True)
        if head.length_bytes > VALUE_LIMIT_BYTES:
            text = f"Request body({head.length_bytes} bytes) too large, max size: {VALUE_LIMIT_BYTES} bytes"
            raise RefusedError(413, text, last=True)
        if head.expects_continue and len(self._inbox) < head.length_bytes:
            try:
                self._sock.send(b"HTTP/1.1 100 Continue\r\n\r\n")
            except OSError:
                pass  # the next read will tell

    def _too_slow(self) -> None:
        self._reply(Reply(408, b"the request took too long", last=True))

    # Waiting

    def _begin_wait(self, wait: Wait) -> None:
        self._wait = wait
        if self._subscribe(wait):
            self._set_timer(wait.wait_s, self._wait_is_over)
        else:
            self._wait_is_over()

    def _subscribe(self, wait: Wait) -> bool:
        """False where there is nothing to wait for any more."""
        self._waiter = self._loop.state.subscribe(
            wait.key, wait.index, lambda: self._loop.wake(self), recurse=wait.recurse
        )
        return self._waiter is not None

    def _unsubscribe(self) -> None:
        if self._waiter is not None:
            self._loop.state.unsubscribe(self._waiter)
            self._waiter = None

    def _wait_is_over(self) -> None:
        if self._wait is not None:
            found = self._loop.state.read(self._wait.key, recurse=self._wait.recurse)
            self._answer_wait(self._wait.render(found).to_bytes())

    def _answer_wait(self, data: bytes) -> None:
        self._wait = None
        self._unsubscribe()
        self._clear_timer()
        self._send(data)
        if self._inbox:
            self._advance()
        elif not self._closed:
            self._update_mask()

    # Writing

    def _reply(self, reply: Reply) -> None:
        self._clear_timer()
        if reply.last:
            self._keep_alive = False
        self._send(reply.to_bytes())

    def _send(self, data: bytes) -> None:
        self._out = memoryview(data)
        self._flush()
        if self._out and not self._closed:
            self._set_timer(WRITE_TIMEOUT_S, self.close)

    def _flush(self) -> None:
        try:
            while self._out:
                self._out = self._out[self._sock.send(self._out) :]
        except BlockingIOError:
            return
        except OSError:
            self.close()
            return
        self._clear_timer()
        if not self._keep_alive and self._lingered_bytes is None:
            self._linger()

    def _linger(self) -> None:
        self._lingered_bytes = 0
        self._inbox.clear()
        try:
            self._sock.shutdown(1)  # SHUT_WR
        except OSError:
            self.close()
            return
        self._set_timer(LINGER_S, self.close)

    # The loop

    def _update_mask(self) -> None:
        """Tell the selector what is of interest."""
        mask = selectors.EVENT_WRITE if self._out else 0
        if len(self._inbox) <= AHEAD_LIMIT_BYTES or not (self._out or self._wait):
            mask |= selectors.EVENT_READ
        if mask != self._mask:
            self._loop.listen(self, self._sock, self._mask, mask)
            self._mask = mask

    def _set_timer(self, delay_s: float, call: Callable[[], None]) -> None:
        self._clear_timer()
        self._timer = self._loop.after(delay_s, call)

    def _clear_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
