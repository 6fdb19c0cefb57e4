"""`from yurt import training` alone: without a launcher, before and after Keras, and where Yurt is not installed."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

import yurt
from tests.support.runs import Folder
from tests.training.pairs import HOOK, alone, close, environment, finish, ports, start


def python(program, *path, **variables):
    """A program's output, in a process with only these folders on PYTHONPATH."""
    changes = {"PYTHONPATH": os.pathsep.join(map(str, path)), **variables}
    result = subprocess.run(
        [sys.executable, "-c", program], env=environment(**changes), capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
    return result.stdout.strip(), result.stderr


def test_the_import_is_light_and_sets_the_finders_up_once():
    program = (
        "import sys\nfrom yurt import training\nimport yurt.training\n"
        "print(sum(getattr(each, '__name__', '') == 'Finder' for each in sys.meta_path),"
        " sorted({name.partition('.')[0] for name in sys.modules} & {'numpy', 'tensorflow', 'keras', 'json'}))"
    )
    assert python(program)[0] == "1 []"
    assert python(program, HOOK)[0] == "1 []"


def test_it_can_be_switched_off():
    program = (
        "import sys\nfrom yurt import training\nprint([each.__name__ for each in sys.meta_path if 'yurt' in str(each)])"
    )
    assert python(program, YURT_HOOK="0")[0] == "[]"
    mends = "from yurt import training\nimport _yurt_finders\nprint(len(_yurt_finders.Finder.mends))"
    assert python(mends, YURT_HOOK_MENDS="0")[0] == "0"
    assert python(mends)[0] != "0"


def test_what_goes_wrong_breaks_no_import():
    program = (
        "import importlib.machinery as machinery\nreal = machinery.PathFinder.find_spec\n"
        "machinery.PathFinder.find_spec = lambda name, *more: None if name == '_yurt_finders' else real(name, *more)\n"
        "from yurt import training\nprint(training.TrainingError.__name__)"
    )
    told, errors = python(program)
    assert told == "TrainingError"
    assert errors.startswith("yurt: Keras is left as it is: ImportError(")
    assert errors.count("\n") == 1


def test_what_travels_imports_nothing_that_stays_and_is_python_3_10():
    root = Path(yurt.__file__).parent
    for room in ("training", "data"):
        for file in (root / room).rglob("*.py"):
            tree = ast.parse(file.read_text(), feature_version=(3, 10))
            for node in ast.walk(tree):
                module = node.module or "" if isinstance(node, ast.ImportFrom) else ""
                if module.startswith("yurt."):
                    assert module.split(".")[1] in ("contract", "data", "errors", "kv", "training"), (file, module)


def test_names_are_what_they_say():
    from yurt import training

    assert set(training._HOMES) == set(training.__all__) == set(dir(training))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = training.nothing


@pytest.mark.tensorflow
def test_two_workers_that_nobody_launched_equal_one_process(tmp_path):
    """One of them imports Keras first, and its TF_CONFIG is a TFJob's; the other is called `master`, as before 2019."""
    one = alone("one_import.py", tmp_path / "one", PYTHONPATH="", ORDER="after").cases()
    addresses = [f"127.0.0.1:{port}" for port in ports(3)]
    cluster = {"master": addresses[:1], "worker": addresses[1:2], "evaluator": addresses[2:]}
    tasks = [{"type": "master", "index": 0}, {"type": "worker", "index": 0}]
    folders = [tmp_path / "master", tmp_path / "worker"]
    started = [
        start(
            "one_import.py",
            folder,
            PYTHONPATH="",
            ORDER=order,
            TF_CONFIG=json.dumps({"cluster": cluster, "task": task, "environment": "cloud"}),
        )
        for folder, task, order in zip(folders, tasks, ("before", "after"), strict=True)
    ]
    ended = finish(started, folders, 120)
    assert [each.code for each in ended] == [0, 0], ended[0].errors[-2000:]
    first, second = (each.cases() for each in ended)
    assert first["fitted"] == second["fitted"]
    assert close(one["fitted"]["value"], first["fitted"]["value"])
    assert one["facts"]["value"]["replicas"] == 1
    for facts, role in ((first["facts"]["value"], "chief"), (second["facts"]["value"], "worker")):
        assert facts == {
            "strategy": "CollectiveAllReduceStrategy",
            "same": True,
            "replicas": 2,
            "dead_after_ms": 7000,
            "task": {"type": role, "index": 0},
            "hidden": False,
            "communication": "RING",
        }
    assert "yurt:" not in ended[0].errors + ended[1].errors


@pytest.fixture(scope="module")
def without_yurt(tmp_path_factory):
    """A Python that has TensorFlow and no Yurt: a folder that a .pth names has its own .pth files left unread."""
    folder = tmp_path_factory.mktemp("without") / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    site = next(folder.glob("lib/python*/site-packages"))
    (site / "tensorflow.pth").write_text(sysconfig.get_path("purelib") + "\n")
    binary = folder / "bin" / "python"
    program = "import tensorflow.version, importlib.util; print(importlib.util.find_spec('yurt'))"
    found = subprocess.run([binary, "-c", program], capture_output=True, text=True, check=True, cwd=folder)
    assert found.stdout == "None\n", "this environment cannot tell whether the package travels"
    return binary


SCRIPT = """
import sys
from yurt import data, training

strategy = training.strategy()

import keras
import numpy as np
import yurt

print("yurt from", yurt.__file__, sys.path.index(sys.argv[1]) if len(sys.argv) > 1 else "", flush=True)
data.write("numbers", {"x": np.arange(64, dtype="float32").reshape(-1, 4) / 64}, shards=2)
train = data.read("numbers", batch=8, transform=lambda rows: (rows["x"], rows["x"][:, :1]))
with strategy.scope():
    model = keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
model.fit(train.for_fit(), steps_per_epoch=train.steps, epochs=2)
print("saved", training.save(model, "numbers.keras"), flush=True)
"""


@pytest.mark.tensorflow
def test_it_travels_to_where_no_yurt_is_installed(tmp_path, without_yurt):
    folder = Folder(tmp_path)
    job = {"name": "travels", "command": f"{without_yurt} train.py", "roles": {"worker": 2}, "output": "./models"}
    run = folder.start(folder.write(job, train=SCRIPT))
    assert run.wait() == 0, run.output + run.log("worker/0")
    for index in range(2):
        log = run.log(f"worker/{index}")
        assert f"yurt from {folder.home / 'agents'}/agent-" in log
    assert "saved None" in run.log("worker/1")
    assert (tmp_path / "job/models/latest/numbers.keras").is_file()


def test_an_installed_one_wins(tmp_path):
    (tmp_path / "yurt").mkdir()
    (tmp_path / "yurt/__init__.py").write_text("raise SystemExit('the wrong one')")
    program = "import sys, yurt; print(sys.path[-1] == sys.argv[0] or sys.path[-1])"
    told, _ = python(program, HOOK, YURT_PACKAGES=str(tmp_path))
    assert told == str(tmp_path)


def test_the_zip_serves_without_any_hook_on_the_path(without_yurt, tmp_path, monkeypatch):
    """As `PYTHONPATH=agent.pyz python train.py`: parts of the hook are read out of the zip file."""
    from yurt.launcher.agent_zip import agent_zip

    monkeypatch.setenv("YURT_HOME", str(tmp_path))
    program = (
        "from yurt import training, data\nimport _yurt_finders, yurt\n"
        "print(yurt.__file__, _yurt_finders.own('_yurt_task').workers(), training.model_dir(), data.__name__)"
    )
    result = subprocess.run(
        [without_yurt, "-c", program],
        env=environment(PYTHONPATH=str(agent_zip())),
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert result.stderr == ""
    assert ".pyz/yurt/__init__.py" in result.stdout
    assert result.stdout.endswith(" 0 model yurt.data\n")


def test_off_in_a_job_is_off_for_the_import_too(tmp_path):
    folder = Folder(tmp_path)
    script = (
        "import sys\nfrom yurt import training\n"
        "print('finders', sum('_yurt_finders' in str(each) for each in sys.meta_path), flush=True)\n"
    )
    job = {"name": "off", "command": "python train.py", "roles": {"worker": 1}, "keras": "off"}
    run = folder.start(folder.write(job, train=script))
    assert run.wait() == 0, run.output
    assert "finders 0" in run.log("worker/0")
