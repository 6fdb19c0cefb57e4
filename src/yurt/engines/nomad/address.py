"""Where Nomad is: the variables that Nomad's own tools read."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Final
from urllib.parse import urlsplit

from yurt.errors import EngineError, UsageError

ADDRESS: Final = "NOMAD_ADDR"  # http://127.0.0.1:4646
TOKEN: Final = "NOMAD_TOKEN"  # noqa: S105 - the name of a variable
NAMESPACE: Final = "NOMAD_NAMESPACE"
REGION: Final = "NOMAD_REGION"
CA_FILE: Final = "NOMAD_CACERT"
CA_PATH: Final = "NOMAD_CAPATH"
CERT_FILE: Final = "NOMAD_CLIENT_CERT"
KEY_FILE: Final = "NOMAD_CLIENT_KEY"
SERVER_NAME: Final = "NOMAD_TLS_SERVER_NAME"
SKIP_VERIFY: Final = "NOMAD_SKIP_VERIFY"

DEFAULT_ADDRESS: Final = "http://127.0.0.1:4646"


@dataclass(frozen=True, slots=True)
class NomadAddress:
    """One cluster, as its API is reached. `region` and `namespace` are None where Nomad's defaults hold."""

    host: str
    port: int
    secure: bool = False
    token: str | None = None
    region: str | None = None
    namespace: str | None = None
    ca_file: str | None = None
    ca_path: str | None = None
    cert_file: str | None = None
    key_file: str | None = None
    server_name: str | None = None
    verify: bool = True

    @property
    def url(self) -> str:
        """``http://host:port``."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.secure else 'http'}://{host}:{self.port}"


def from_environment(environ: Mapping[str, str] | None = None) -> NomadAddress:
    """What the variables above say. Raises UsageError for an address that is none."""
    env = os.environ if environ is None else environ
    text = env.get(ADDRESS) or DEFAULT_ADDRESS
    wrong = UsageError(f"{ADDRESS}={text!r} is no address of Nomad", hint=f"such as {DEFAULT_ADDRESS}")
    if text.startswith("unix:"):
        raise UsageError(
            f"{ADDRESS}: Yurt does not speak to Nomad over a Unix socket", hint=f"such as {DEFAULT_ADDRESS}"
        )
    parts = urlsplit(text if "://" in text else f"http://{text}")
    try:
        port = parts.port
    except ValueError:
        raise wrong from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise wrong
    return NomadAddress(
        host=parts.hostname,
        port=port or (443 if parts.scheme == "https" else 80),
        secure=parts.scheme == "https",
        token=env.get(TOKEN) or None,
        region=env.get(REGION) or None,
        namespace=env.get(NAMESPACE) or None,
        ca_file=env.get(CA_FILE) or None,
        ca_path=env.get(CA_PATH) or None,
        cert_file=env.get(CERT_FILE) or None,
        key_file=env.get(KEY_FILE) or None,
        server_name=env.get(SERVER_NAME) or None,
        verify=env.get(SKIP_VERIFY, "").lower() not in ("1", "t", "true"),
    )


class NomadError(EngineError):
    """Nomad refused a call, or could not be asked (`NomadAway`). `status` is HTTP's; `text` is what it said."""

    def __init__(self, message: str, *, hint: str | None = None, status: int = 0, text: str = "") -> None:
        super().__init__(message, hint=hint)
        self.status = status
        self.text = text


class NomadAway(NomadError):
    """Nobody answers where Nomad should be, or it has no leader: it may come back, or be gone for good."""

    retryable: ClassVar[bool] = True
