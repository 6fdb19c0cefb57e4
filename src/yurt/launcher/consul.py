"""The Consul that runs on a cluster keep their state in: found by the environment, and waited for where it comes."""

from __future__ import annotations

import ssl
import sys
import time
from collections.abc import Callable
from typing import Final

from yurt.errors import Cancelled, StoreError
from yurt.kv.client import Store
from yurt.kv.environment import (
    ADDRESS,
    CA_FILE,
    CERT_FILE,
    KEY_FILE,
    SERVER_NAME,
    USE_TLS,
    settings_from_environment,
)
from yurt.kv.errors import StoreRefused, StoreUnreachable

#: Seconds for a Consul that is about to start where nobody listens yet: a wrong address looks the same.
REFUSED_S: Final = 10.0
#: Seconds for one that is there and cannot answer yet: a server that has just started needs seven to find a leader.
SILENT_S: Final = 60.0
#: Seconds until a person is told what is waited for, and between two tries; one try may take `_ANSWER_S`.
_QUIET_S: Final = 0.5
_PAUSE_S: Final = 0.25
_ANSWER_S: Final = 3.0


def open_store(address: str | None = None) -> Store:
    """The store that the environment names, or the one at `address` with its token; nothing is asked of it."""
    settings = settings_from_environment()
    return Store(address or settings.address, settings.token, tls_params=settings.tls_params)


def explained(error: StoreError) -> StoreError:
    """The same error, with what would be right."""
    hint = error.hint or _tls_hint(error)
    hint = hint or "set CONSUL_HTTP_ADDR, or raise a cluster on this machine: yurt cluster dev"
    return type(error)(f"{error} (this engine keeps a run's state in Consul)", hint=hint)


def _tls_hint(error: StoreError) -> str | None:
    """What would be right where the two do not agree about TLS; None where that is not what is wrong."""
    cause = error.__cause__
    if isinstance(cause, ssl.SSLCertVerificationError):
        return f"name the authority of its certificate: {CA_FILE}, or the name in it: {SERVER_NAME}"
    if isinstance(cause, ssl.SSLError):
        if "WRONG_VERSION_NUMBER" in str(cause):
            return f"it speaks no https: see {ADDRESS} and {USE_TLS}"
        return f"it may ask for a certificate of ours: {CERT_FILE} and {KEY_FILE}"
    if "HTTP request to an HTTPS server" in str(error):
        return f"it speaks https: set {USE_TLS}=true"
    return None


def wait_for(key: str, *, pause: Callable[[float], str | None], tell: Callable[[str], object] | None = None) -> None:
    """Until the store of the environment has answered for `key`.

    `pause` waits so many seconds and returns who has had enough meanwhile (``Ctrl-C``), or None. After half a second
    `tell` is told what is waited for; without one, standard error. Raises StoreError: at once where trying again
    cannot help, after `REFUSED_S` where nobody listens at all, after `SILENT_S` else; Cancelled after `pause`.
    """
    say = tell or (lambda text: print(text, file=sys.stderr, flush=True))
    settings = settings_from_environment()
    begun, told = time.monotonic(), False
    with Store(settings.address, settings.token, tls_params=settings.tls_params, timeout_s=_ANSWER_S) as store:
        while True:
            try:
                store.get(key)
                return
            except StoreError as error:
                waited_s = time.monotonic() - begun
                absent = isinstance(error, (StoreRefused, StoreUnreachable))
                limit_s = REFUSED_S if absent else SILENT_S
                if not error.retryable or isinstance(error.__cause__, ssl.SSLError) or waited_s >= limit_s:
                    raise explained(error) from error
                if not told and waited_s >= _QUIET_S:
                    told = True
                    say(f"yurt: waiting for Consul at {store.address}, up to {limit_s:g} s ({error}); Ctrl-C ends it")
            if by := pause(_PAUSE_S):
                raise Cancelled(f"stopped by {by} while it waited for Consul at {store.address}")
