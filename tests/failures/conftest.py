from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.runs import Folder, processes_of


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Folder]:
    """A folder for runs; whatever a test leaves behind fails it."""
    made = Folder(tmp_path)
    yield made
    left = {run_id: processes_of(run_id) for run_id in made.run_ids()}
    assert not any(left.values()), f"processes left behind: {left}"
