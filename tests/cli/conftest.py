"""Every test has a home of its own, and leaves no process behind."""

from __future__ import annotations

import os
import signal
import time

import pytest

from tests.support.runs import Folder, processes_of


@pytest.fixture
def folder(tmp_path):
    """A place for runs; processes that outlive the test by some seconds are killed and fail it."""
    # Spaces and quotes in a path find faults of quoting.
    place = tmp_path / "it's a place"
    place.mkdir()
    made = Folder(place, {"TERM": "xterm-256color", "NO_COLOR": "", "YURT_HOME": str(place / "home")})
    yield made
    end = time.monotonic() + 6  # agents whose launcher was killed give their tasks time to end
    while (left := processes_of(str(place))) and time.monotonic() < end:
        time.sleep(0.02)
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    assert not left, f"processes were left behind: {left}"
