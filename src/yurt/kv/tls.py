"""TLS towards Consul. `ssl` is imported where a context is made: only for an https address."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from yurt.errors import UsageError

if TYPE_CHECKING:
    import ssl


@dataclass(frozen=True, slots=True)
class TlsParams:
    """Paths of PEM files. Without `ca_file` and `ca_path` the system's authorities are trusted.

    `cert_file` and `key_file` are the client's own; `server_name` replaces the host of the address.
    """

    ca_file: str | None = None
    ca_path: str | None = None
    cert_file: str | None = None
    key_file: str | None = None
    verify: bool = True
    server_name: str | None = None


def context(params: TlsParams) -> ssl.SSLContext:
    """The context for these parameters. Raises UsageError for a file that cannot be used."""
    import ssl  # 4.2 MB, of the agent's 20

    try:
        made = ssl.create_default_context(cafile=params.ca_file, capath=params.ca_path)
        if params.cert_file:
            made.load_cert_chain(params.cert_file, params.key_file)
    except OSError as error:  # SSLError is one
        files = ", ".join(f for f in (params.ca_file, params.ca_path, params.cert_file, params.key_file) if f)
        raise UsageError(f"the certificates for the key-value store cannot be used: {error} ({files})") from error
    if not params.verify:
        made.check_hostname = False
        made.verify_mode = ssl.CERT_NONE
    return made
