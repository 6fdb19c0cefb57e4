"""Every worker writes to one path, and one backup serves all: on real files, in one shared folder."""

from __future__ import annotations

import signal

import pytest

from tests.training.pairs import close, gang

pytestmark = pytest.mark.tensorflow


@pytest.mark.parametrize("legacy", ["0", "1"])
def test_all_workers_save_to_the_same_paths_and_leave_whole_files(tmp_path, legacy):
    options = {"TF_USE_LEGACY_KERAS": "1"} if legacy == "1" else {}
    for task, ended in gang("shared_paths.py", tmp_path, **options).items():
        assert ended.code == 0, (task, ended.errors[-2000:])
        told = ended.cases()["saved"]["value"]
        assert set(told.values()) == {"ok"}, (task, told)
    shared = tmp_path / "shared"
    files = {file.name for file in shared.iterdir()} - {"backup"}
    assert files == {"checkpoints", "folder", "model.h5", "model.keras", "weights"}
    left = [str(file) for file in shared.rglob("*") if file.name.startswith(".") or "workertemp" in file.name]
    assert left == []


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    return resumed(gang("resume.py", tmp_path_factory.mktemp("undisturbed")))


def resumed(tasks):
    first, second = (tasks[name].cases()["resumed"]["value"] for name in ("worker-0", "worker-1"))
    assert first == second
    return first


@pytest.mark.parametrize(("victim", "one_folder"), [("1", "1"), ("0", "0")])
def test_a_killed_gang_resumes_with_equal_weights(tmp_path, undisturbed, victim, one_folder):
    ended = gang("resume.py", tmp_path, DIE=victim, ONE_FOLDER=one_folder)
    assert ended[f"worker-{victim}"].code == -signal.SIGKILL
    again = resumed(gang("resume.py", tmp_path, ONE_FOLDER=one_folder))
    assert again["epochs"] == 2, "it began anew instead of resuming"
    assert close({**again, "epochs": 4}, undisturbed)
