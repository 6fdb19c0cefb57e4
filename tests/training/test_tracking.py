"""The trackers of a job file, real ones, as far as they are installed; the tests name those that are not."""

from __future__ import annotations

import importlib.util
import json
import os
import venv
from dataclasses import replace

import pytest

from tests.agent.test_preflight import RUN
from tests.training.pairs import alone, gang
from yurt import training
from yurt.agent.preflight import missing_trackers, preflight

TRACKERS = ("tensorboard", "mlflow", "wandb")
INSTALLED = [name for name in TRACKERS if importlib.util.find_spec(name)]


def needs(name):
    return pytest.param(name, marks=pytest.mark.skipif(name not in INSTALLED, reason=f"{name} is not installed"))


def variables(folder, **more: str) -> dict[str, str]:
    own = {"YURT_TRACK": ",".join(INSTALLED), "YURT_TRACKING_DIR": str(folder / "tracking"), "YURT_JOB": "weather"}
    return {**own, "YURT_RUN_ID": "weather-abc123", "WANDB_MODE": "offline", "WANDB_SILENT": "true", **more}


def start(folder, name, **more: str):
    ended = alone("tracked.py", folder / name, **variables(folder, **more))
    assert ended.code == 0, ended.errors
    assert "yurt:" not in ended.errors
    return folder / "tracking"


@pytest.fixture(scope="module", params=["0", "1"], ids=["keras3", "legacy"])
def tracking(request, tmp_path_factory):
    """Where a run that was started twice has logged epochs 0 to 2."""
    folder = tmp_path_factory.mktemp("tracked")
    start(folder, "first", TF_USE_LEGACY_KERAS=request.param)
    return start(folder, "second", TF_USE_LEGACY_KERAS=request.param, INITIAL="2", EPOCHS="3")


@pytest.mark.tensorflow
@pytest.mark.parametrize("name", [needs(name) for name in TRACKERS])
def test_two_starts_of_a_run_are_one_run_of_the_tracker(tracking, name):
    {"tensorboard": of_tensorboard, "mlflow": of_mlflow, "wandb": of_wandb}[name](tracking)


def of_tensorboard(tracking):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    for part in ("train", "validation"):
        read = EventAccumulator(str(tracking / "tensorboard" / part))
        read.Reload()
        assert [event.step for event in read.Tensors("epoch_loss")] == [0, 1, 2]


def of_mlflow(tracking):
    (run,) = (tracking / "mlflow").glob("*/*/meta.yaml")
    text = run.read_text()
    assert "run_name: weather-abc123" in text
    assert "status: 3" in text, "finished"
    lines = (run.parent / "metrics" / "val_loss").read_text().splitlines()
    assert [int(line.split()[2]) for line in lines] == [0, 1, 2]
    assert (run.parent / "params" / "workers").read_text() == "1"


def of_wandb(tracking):
    names = [each.name for each in (tracking / "wandb").glob("offline-run-*")]
    assert len(names) == 2  # W&B offline keeps a folder a start, and joins them by the id
    assert {name.partition("-weather-")[2] for name in names} == {"abc123"}
    assert all(each.stat().st_size > 0 for each in (tracking / "wandb").glob("offline-run-*/*.wandb"))


@pytest.mark.tensorflow
@pytest.mark.skipif("tensorboard" not in INSTALLED, reason="tensorboard is not installed")
def test_only_the_leader_logs(tmp_path):
    each = variables(tmp_path, YURT_TRACK="tensorboard", WORKERS="1")
    del each["YURT_TRACKING_DIR"]  # each task in its own folder
    ended = gang("tracked.py", tmp_path, **each)
    assert {one.code for one in ended.values()} == {0}, [one.errors for one in ended.values()]
    assert (tmp_path / "worker-0/tracking/tensorboard/train").is_dir()
    assert not (tmp_path / "worker-1/tracking").exists()


@pytest.mark.tensorflow
@pytest.mark.skipif("tensorboard" not in INSTALLED, reason="tensorboard is not installed")
def test_the_callback_of_the_script_is_the_only_one(tmp_path):
    tracking = start(tmp_path, "own", YURT_TRACK="tensorboard", OWN="1")
    assert (tmp_path / "own/own/train").is_dir()
    assert not tracking.exists()


@pytest.mark.tensorflow
def test_a_tracker_that_does_not_work_is_told_and_training_goes_on(tmp_path):
    (tmp_path / "tensorboard.py").write_text("raise ImportError('it is broken\\nin many lines')\n")
    path = os.pathsep.join([str(training.__path__[0]) + "/hook", str(tmp_path)])
    changes = variables(tmp_path, YURT_TRACK="tensorboard", PYTHONPATH=path)
    ended = alone("tracked.py", tmp_path / "broken", **changes)
    assert ended.code == 0, ended.errors
    assert ended.errors.count("yurt: nothing is logged to tensorboard: it is broken\n") == 1


def test_trackers_of_a_task_that_does_not_lead(monkeypatch):
    cluster = {"cluster": {"worker": ["a:1", "b:2"]}, "task": {"type": "worker", "index": 1}}
    monkeypatch.setenv("TF_CONFIG", json.dumps(cluster))
    monkeypatch.setenv("YURT_TRACK", "tensorboard")
    assert training.trackers() == []
    assert training.trackers("tensorboard", "mlflow") == []


def test_an_unknown_tracker():
    with pytest.raises(training.TrainingError, match="'tensorbord' is no tracker"):
        training.trackers("tensorbord")


def test_which_packages_are_missing():
    assert missing_trackers(("tensorboard", "mlflow", "wandb"), {"mlflow-skinny": "3", "wandb": "1"}) == ["tensorboard"]


def test_a_missing_package_is_refused_before_the_start_by_the_deciding_task_alone(tmp_path):
    venv.create(tmp_path / "venv", with_pip=False)
    python = str(tmp_path / "venv/bin/python")
    (tmp_path / "train.py").write_text("")
    tasks = (replace(RUN.tasks[0], command=(python, "train.py")), replace(RUN.tasks[0], index=1))
    run = replace(RUN, tasks=tasks, track=("tensorboard", "wandb"))
    found = preflight(run, tasks[0], (python, "train.py"), dict(os.environ), str(tmp_path))
    assert found.problem == f"the job's `track` names tensorboard and wandb, and {python} has no such package"
    assert found.hint == f"{python} -m pip install tensorboard wandb"
    assert preflight(run, tasks[1], (python, "train.py"), dict(os.environ), str(tmp_path)).problem is None
