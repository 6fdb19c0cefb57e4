"""Lines that TensorFlow 2.21 prints at every start and that tell nothing; `yurt logs` shows them, `run` does not.

They come at every log level or twice (so no variable takes them away without taking errors too).
"""

from __future__ import annotations

from typing import Final

_NOISE: Final = (
    "WARNING: All log messages before absl::InitializeLog() is called",
    "oneDNN custom operations are on.",
    "Could not find cuda drivers on your machine",
    "This TensorFlow binary is optimized to use available CPU instructions",
    "To enable the following instructions:",
    "Input of GeneratorDatasetOp::Dataset will not be optimized",
)


def without_noise(text: str) -> str:
    """Whole lines without those that are noise."""
    if not any(words in text for words in _NOISE):
        return text
    lines = text.splitlines(keepends=True)
    return "".join(line for line in lines if not any(words in line for words in _NOISE))
