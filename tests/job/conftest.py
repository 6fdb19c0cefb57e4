from collections.abc import Callable
from pathlib import Path

import pytest

from yurt.errors import JobError
from yurt.job import Job, load_job

SMALL = "name: a\ncommand: python t.py\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder with a space in its name, where the test stands."""
    inside = tmp_path / "my jobs"
    inside.mkdir()
    monkeypatch.chdir(inside)
    return inside


@pytest.fixture
def load(folder: Path) -> Callable[..., Job]:
    """Writes a job file and loads it; `small` puts a name and a command before the text."""

    def _load(text: str, *, small: bool = False, **kwargs: object) -> Job:
        (folder / "job.yaml").write_text((SMALL if small else "") + text)
        return load_job("job.yaml", **kwargs).job

    return _load


@pytest.fixture
def said(load: Callable[..., Job]) -> Callable[..., list[str]]:
    """Writes a job file that is wrong; returns its mistakes as they are shown."""

    def _said(text: str, **kwargs: object) -> list[str]:
        with pytest.raises(JobError) as caught:
            load(text, **kwargs)
        assert caught.value.exit_code == 2
        return [str(problem) for problem in caught.value.problems]

    return _said
