"""What the readers of foreign files have in common: values that remember whether somebody has looked at them."""

from __future__ import annotations

from typing import Any


class Accounted:
    """A value of a file, in which mappings and lists hold others of its kind. `taken`: it is accounted for."""

    value: Any
    taken: bool

    def plain(self) -> Any:
        """The value without places, all of it accounted for."""
        self.taken = True
        if isinstance(self.value, dict):
            return {key: inner.plain() for key, inner in self.value.items()}
        if isinstance(self.value, list):
            return [inner.plain() for inner in self.value]
        return self.value

    def look(self) -> Any:
        """The value without places, accounted for or not."""
        if isinstance(self.value, dict):
            return {key: inner.look() for key, inner in self.value.items()}
        if isinstance(self.value, list):
            return [inner.look() for inner in self.value]
        return self.value
