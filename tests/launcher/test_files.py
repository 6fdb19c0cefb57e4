"""The job's files as they are at submission."""

from __future__ import annotations

import pytest

from yurt.errors import LauncherError
from yurt.launcher import files
from yurt.launcher.files import COPIED_BYTES, snapshot


def tree(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if not path.is_dir())


@pytest.fixture
def job(tmp_path):
    folder = tmp_path / "job"
    for name in (
        "train.py",
        "pkg/a.py",
        "pkg/__pycache__/a.pyc",
        ".git/x",
        "venv/pyvenv.cfg",
        "venv/b.py",
        "models/m",
        "x.pyc",
    ):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    (folder / "big.bin").write_bytes(b"x" * (COPIED_BYTES + 1))
    return folder


def test_code_is_copied_data_is_linked_and_rubbish_is_left(job, tmp_path):
    count = snapshot(job, ["."], tmp_path / "files", leave_out=[job / "models"])
    assert tree(tmp_path / "files") == ["big.bin", "pkg/a.py", "train.py"]
    assert count == 3
    assert (tmp_path / "files/big.bin").is_symlink()
    (job / "train.py").write_text("later")
    assert (tmp_path / "files/train.py").read_text() == "train.py"


def test_only_what_is_named_travels_also_what_is_hidden(job, tmp_path):
    snapshot(job, ["pkg", ".git/x", "*.py", "models"], tmp_path / "files", leave_out=[job / "models"])
    assert tree(tmp_path / "files") == [".git/x", "models/m", "pkg/a.py", "train.py"]


def test_a_folder_that_holds_where_the_run_is_kept_is_no_endless_copy(job, monkeypatch):
    import yurt

    monkeypatch.setenv("YURT_HOME", str(job / "home"))
    for _ in range(2):
        verdict = yurt.run(yurt.Job(name="here", command=["python", "-c", "pass"]), folder=job)
        assert verdict.outcome == "succeeded"
    runs = list((job / "home/runs").iterdir())
    assert len(runs) == 2
    assert not any((run / "files/home").exists() for run in runs)


def test_links_in_a_circle_end(job, tmp_path):
    (job / "loop").symlink_to(job)
    snapshot(job, ["."], tmp_path / "files")
    assert "train.py" in tree(tmp_path / "files")


def test_too_many_files_are_refused_in_a_sentence(job, tmp_path, monkeypatch):
    monkeypatch.setattr(files, "MOST_FILES", 2)
    with pytest.raises(LauncherError, match="holds more than 2 files") as caught:
        snapshot(job, ["."], tmp_path / "files")
    assert "name those that the job needs under `files`" in caught.value.hint
