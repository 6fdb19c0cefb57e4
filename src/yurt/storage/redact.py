"""Secrets never leave: every sentence and every stored value of this room passes through here."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

_SECRET_NAME = re.compile(r"TOKEN|SECRET|PASSW|KEY", re.IGNORECASE)
_USER_INFO = re.compile(r"(?<=://)[^/\s@'\"]+@")
_SIGNED_QUERY = re.compile(r"(?i)\b((?:sig|signature|token|credential|x-(?:amz|goog)-[a-z-]+)=)[^&\s'\"]+")
_PLAIN_WORDS = frozenset({"true", "false", "none", "null", "auto", "default"})
_SHORTEST = 4
HIDDEN = "***"


def redact(text: str, environ: Mapping[str, str] | None = None) -> str:
    """`text` without secrets.

    Hidden are the values of environment variables whose name speaks of a token, secret, password or key (as
    they stand, and percent-encoded), the user part of URLs, and the signature of signed ones.
    Values under 4 characters and words like ``true`` are no secrets: hiding them would only spoil the text.
    """
    for secret in _secrets(os.environ if environ is None else environ):
        text = text.replace(secret, HIDDEN)
    text = _USER_INFO.sub(f"{HIDDEN}@", text)
    return _SIGNED_QUERY.sub(rf"\1{HIDDEN}", text)


def redact_value(value: Any) -> Any:
    """The same for a JSON value: every string in it, keys too; a key that names a secret hides its value."""
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, Mapping):
        return {
            redact(str(key)): HIDDEN if _names_secret(str(key), item) else redact_value(item)
            for key, item in value.items()
        }
    if isinstance(value, list | tuple):
        return [redact_value(item) for item in value]
    return value


def _names_secret(name: str, value: Any) -> bool:
    # Only texts: metrics may well be called "tokens_per_s".
    return isinstance(value, str) and _SECRET_NAME.search(name) is not None


def _secrets(environ: Mapping[str, str]) -> list[str]:
    """Longest first, so that a secret inside another one leaves no rest behind."""
    values = {
        value.strip()
        for name, value in environ.items()
        if _SECRET_NAME.search(name) and value.strip().lower() not in _PLAIN_WORDS
    }
    found = {form for value in values if len(value) >= _SHORTEST for form in (value, quote(value, safe=""))}
    return sorted(found, key=len, reverse=True)
