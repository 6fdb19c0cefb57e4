"""What a user adds to an object, in Kubernetes' own words, put together with what Yurt makes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def merged(ours: Any, theirs: Any) -> Any:
    """Mappings key by key, lists one after the other, of anything else theirs. Neither is changed."""
    if isinstance(ours, Mapping) and isinstance(theirs, Mapping):
        found = {**ours}
        for key, value in theirs.items():
            found[key] = merged(ours[key], value) if key in ours else plain(value)
        return found
    if isinstance(ours, list) and isinstance(theirs, list | tuple):
        return [*ours, *plain(theirs)]
    return plain(theirs)


def plain(value: Any) -> Any:
    """The same as dicts and lists."""
    if isinstance(value, Mapping):
        return {key: plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    return value
