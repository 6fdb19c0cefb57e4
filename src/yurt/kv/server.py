"""The embedded store: the subset of Consul that Yurt needs, in this process, where there is no Consul."""

from __future__ import annotations

import socket
import time
from typing import TYPE_CHECKING

from yurt.kv.errors import StoreRejected
from yurt.kv.loop import Loop
from yurt.kv.state import State
from yurt.kv.values import SESSION_TTL_MIN_S

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self

_BACKLOG = 512


class EmbeddedStore:
    """Serves a `State` over HTTP at ``host:port``; port 0 takes a free one, host "" all addresses, IPv6's too.

    Every request has to carry `token`, as ``X-Consul-Token`` or ``Authorization: Bearer``; None asks
    nobody, which is for tests. `min_ttl_s` is the shortest TTL of a session: 10 s like Consul's, or less.
    `first_index` is for a store that takes the place of another: higher than the other's, nobody who waits for
    a change misses it. `state` is the same store without HTTP, for the process that serves it.
    """

    def __init__(
        self,
        host: str = "127.0.0.1",
        port: int = 0,
        *,
        token: str | None,
        clock: Callable[[], float] = time.monotonic,
        min_ttl_s: float = SESSION_TTL_MIN_S,
        first_index: int = 1,
    ) -> None:
        self.state = State(clock=clock, min_ttl_s=min_ttl_s, first_index=first_index)
        self.host = host
        self.port = port
        self._token = token
        self._clock = clock
        self._loop: Loop | None = None

    @property
    def address(self) -> str:
        """``http://host:port``, for clients on this machine where it listens on all addresses."""
        host = {"0.0.0.0": "127.0.0.1", "": "127.0.0.1", "::": "::1"}.get(self.host, self.host)  # noqa: S104
        return f"http://[{host}]:{self.port}" if ":" in host else f"http://{host}:{self.port}"

    def start(self) -> Self:
        """Listen and serve, in a daemon thread. Raises StoreRejected where it cannot listen."""
        try:
            listener = self._listener()
        except OSError as error:
            raise StoreRejected(
                f"the key-value store cannot listen at {self.host}:{self.port}: {error.strerror or error}"
            ) from error
        self.port = listener.getsockname()[1]
        self._loop = Loop(listener, self.state, self._token, self._clock, self.address.removeprefix("http://"))
        self._loop.start()
        return self

    def _listener(self) -> socket.socket:
        if self.host == "" and socket.has_dualstack_ipv6():
            try:
                return socket.create_server(
                    ("", self.port), family=socket.AF_INET6, backlog=_BACKLOG, dualstack_ipv6=True
                )
            except OSError:
                pass  # a kernel that knows IPv6 and has it switched off
        family = socket.AF_INET6 if ":" in self.host else socket.AF_INET
        return socket.create_server((self.host, self.port), family=family, backlog=_BACKLOG)

    def close(self) -> None:
        """Close every connection and wake whoever waits, here or over HTTP. Again is no error."""
        loop, self._loop = self._loop, None
        if loop is not None:
            loop.stop()
        self.state.close()

    def __enter__(self) -> Self:
        return self if self._loop is not None else self.start()

    def __exit__(self, *_: object) -> None:
        self.close()
