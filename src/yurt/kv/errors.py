"""What can go wrong with the key-value store.

::

    StoreError (yurt.errors)   retryable
    |-- StoreRefused           nobody listens at the address, or the connection was reset        retryable
    |-- StoreTimeout           no answer in time: the store or the network swallows the call     retryable
    |-- StoreUnreachable       the name does not resolve, there is no route                      retryable
    |-- StoreBusy              no leader, an error between Consul's agents, too many requests    retryable
    |-- StoreDenied            403: the token is unknown or lacks a right
    |-- StoreTooLarge          413: a value or a transaction over Consul's limits
    |-- SessionGone            the session named in a call no longer lives
    |-- StoreRejected          any other answer that trying again cannot change
    `-- StoreClosed            this store or watch was closed by our own side

Refused and timeout are kept apart because callers draw different conclusions: a store on this machine
that refuses is dead, one that does not answer may only be slow.
"""

from __future__ import annotations

from typing import ClassVar

from yurt.errors import StoreError


class StoreRefused(StoreError):
    """Nobody listens at `address` (``host:port``), or whoever did hung up without an answer."""

    def __init__(self, message: str, *, address: str = "", hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.address = address


class StoreTimeout(StoreError):
    """`address` (``host:port``) gave no answer in time."""

    def __init__(self, message: str, *, address: str = "", hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.address = address


class StoreUnreachable(StoreError):
    """`address` (``host:port``) has no route, its name does not resolve, or TLS could not be agreed."""

    def __init__(self, message: str, *, address: str = "", hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.address = address


class StoreBusy(StoreError):
    """The store answered that it cannot serve now: no leader, an error between agents, a rate limit."""


class StoreDenied(StoreError):
    """The token is unknown or lacks a right; the message names the right."""

    retryable: ClassVar[bool] = False


class StoreTooLarge(StoreError):
    """A value or a transaction is over the limits of Consul."""

    retryable: ClassVar[bool] = False


class SessionGone(StoreError):
    """The session named in the call has expired, was destroyed, or never existed."""

    retryable: ClassVar[bool] = False


class StoreRejected(StoreError):
    """The store refused the request as such; trying again cannot help."""

    retryable: ClassVar[bool] = False


class StoreClosed(StoreError):
    """Our side closed the store or watch, while or before the call was made."""

    retryable: ClassVar[bool] = False
