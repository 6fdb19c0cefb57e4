"""Where the store is: addresses, and the variables that Consul's own tools read (1.8.7)."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from yurt.errors import UsageError
from yurt.kv.tls import TlsParams

if TYPE_CHECKING:
    from collections.abc import Mapping

ADDRESS = "CONSUL_HTTP_ADDR"  # 127.0.0.1:8500, http://consul:8500
TOKEN = "CONSUL_HTTP_TOKEN"  # noqa: S105 - the name of a variable
TOKEN_FILE = "CONSUL_HTTP_TOKEN_FILE"  # noqa: S105 - the name of a variable; wins over the token
USE_TLS = "CONSUL_HTTP_SSL"  # true: https, also where the address says http
VERIFY_TLS = "CONSUL_HTTP_SSL_VERIFY"  # false: any certificate will do
CA_FILE = "CONSUL_CACERT"
CA_PATH = "CONSUL_CAPATH"
CERT_FILE = "CONSUL_CLIENT_CERT"
KEY_FILE = "CONSUL_CLIENT_KEY"
SERVER_NAME = "CONSUL_TLS_SERVER_NAME"

DEFAULT_ADDRESS = "127.0.0.1:8500"
_TRUE = ("1", "t", "true")
_FALSE = ("0", "f", "false")


@dataclass(frozen=True, slots=True)
class Settings:
    """What the environment says: `address` has its scheme."""

    address: str
    token: str | None
    tls_params: TlsParams


def parse_address(address: str) -> tuple[bool, str, int]:
    """``https://host:port`` -> (True, host, port). Raises UsageError.

    The port defaults to 80 and 443, an IPv6 address stands in brackets.
    """
    scheme, found, rest = address.partition("://")
    if scheme == "unix" and found:
        raise UsageError(
            f"{address}: Yurt does not speak to Consul over a Unix socket",
            hint="give an address such as http://127.0.0.1:8500",
        )
    wrong = UsageError(f"{address!r} is no address of a store", hint="such as http://127.0.0.1:8500")
    if not found or scheme not in ("http", "https"):
        raise wrong
    rest = rest.removesuffix("/")
    if rest.startswith("["):
        host, bracket, tail = rest[1:].partition("]")
        if not bracket or (tail and not tail.startswith(":")):
            raise wrong
        port = tail[1:]
    else:
        host, _, port = rest.partition(":")
    if not host or not host.isascii() or not host.isprintable() or any(c in "/?#@ " for c in rest):
        raise wrong
    if port and not (port.isascii() and port.isdigit() and 0 < int(port) < 65536):
        raise wrong
    secure = scheme == "https"
    return secure, host, int(port) if port else (443 if secure else 80)


def settings_from_environment(environ: Mapping[str, str] | None = None) -> Settings:
    """Read the variables above. Raises UsageError."""
    env = os.environ if environ is None else environ
    address = env.get(ADDRESS) or DEFAULT_ADDRESS
    scheme, found, rest = address.partition("://")
    if not found:
        scheme, rest = "http", address
    if scheme == "http" and _flag(env, USE_TLS, default=False):
        scheme = "https"  # as Consul's tools do: never less than was asked for
    return Settings(
        address=f"{scheme}://{rest}",
        token=_token(env),
        tls_params=TlsParams(
            ca_file=env.get(CA_FILE) or None,
            ca_path=env.get(CA_PATH) or None,
            cert_file=env.get(CERT_FILE) or None,
            key_file=env.get(KEY_FILE) or None,
            verify=_flag(env, VERIFY_TLS, default=True),
            server_name=env.get(SERVER_NAME) or None,
        ),
    )


def _token(env: Mapping[str, str]) -> str | None:
    path = env.get(TOKEN_FILE)
    if not path:
        return env.get(TOKEN) or None
    try:
        with open(path, encoding="utf-8") as file:  # noqa: PTH123 - pathlib would cost the agent memory
            return file.read().strip() or None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UsageError(f"{TOKEN_FILE}: {path} cannot be read: {reason}") from error


def _flag(env: Mapping[str, str], name: str, *, default: bool) -> bool:
    text = (env.get(name) or "").lower()
    if not text:
        return default
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    raise UsageError(f"{name}={env[name]!r} is neither true nor false")
