import json
from pathlib import Path

import jsonschema
import pytest
import yaml

from yurt.errors import JobError
from yurt.job import job_schema, load_job

COMMITTED = Path(__file__).parents[2] / "docs" / "job.schema.json"

ACCEPTED = [
    "{}",
    "command: [python, t.py, --epochs, 3]",
    "strategy: parameter-server\nroles: {chief: 1, worker: {replicas: 2, cpus: 0.5, memory: 2GiB, gpus: 1}, ps: {standard_server: true}}",
    "roles: {worker: {memory: 2147483648, env: {A: 1.10, B: text}, command: x}}",
    "env: {A: 1, b_2: x}",
    "files: ['.', 'job.*']",
    "output: s3://bucket/prefix",
    "output: null",
    "restart: never\nmax_restarts: 0\nsuccess: all-workers",
    "start_deadline: 90s\ndeadline: 2h30m\ngrace: 0",
    "deadline: 500ms\nstart_deadline: 1d\ngrace: 1.5",
    "keras: patched",
    "keras: off",
    "track: tensorboard",
    "track: [mlflow, wandb]",
    "track: []",
    "track:",
    "image: a/b:c\nengines: {docker: {network: host}}",
]
REFUSED = [
    "name: My Job",
    "name: 5",
    "name: " + "a" * 37,
    "command: []",
    "command: {run: x}",
    "commmand: x",
    "strategy: mirored",
    "roles: {master: 1}",
    "roles: {worker: -1}",
    "roles: {worker: 10001}",
    "roles: {chief: 2}",
    "roles: {worker: two}",
    "roles: {worker: {cpus: 0}}",
    "roles: {worker: {cpu: 1}}",
    "roles: {worker: {memory: 2}}",
    "roles: {worker: {memory: 2gb}}",
    "roles: {worker: {memory: 500m}}",
    "roles: {worker: {gpus: 1.5}}",
    "env: {A: no}",
    "env: {A: null}",
    "env: {TF_CONFIG: x}",
    "env: {YURT_X: x}",
    "env: {a-b: x}",
    "env: [A=1]",
    "files: train.py",
    "restart: sometimes",
    "max_restarts: -1",
    "success: nobody",
    "keras: 3",
    "keras: on",
    "track: tensorbord",
    "track: [wandb, wandb]",
    "track: {wandb: 1}",
    "track: no",
    "deadline: 0",
    "deadline: soon",
    "deadline: 90 seconds",
    "grace: -1",
    "engines: {docker: 5}",
]


@pytest.fixture(scope="module")
def check():
    return jsonschema.Draft202012Validator(job_schema())


def test_the_committed_schema_is_up_to_date():
    new = json.dumps(job_schema(), indent=2) + "\n"
    assert COMMITTED.read_text() == new, "run: python -m yurt.job > docs/job.schema.json"


def test_the_schema_is_one(check):
    check.check_schema(check.schema)


@pytest.mark.parametrize("text", ACCEPTED)
def test_both_accept(check, folder, text):
    check_both(check, folder, text, accepted=True)


@pytest.mark.parametrize("text", REFUSED)
def test_both_refuse(check, folder, text):
    check_both(check, folder, text, accepted=False)


def check_both(check, folder, text, *, accepted):
    job = {"name": "a", "command": "python t.py"} | (yaml.safe_load(text) or {})
    assert check.is_valid(job) is accepted
    (folder / "job.yaml").write_text(yaml.safe_dump(job))
    if accepted:
        assert load_job("job.yaml")
    else:
        with pytest.raises(JobError):
            load_job("job.yaml")


def test_a_name_is_needed(check):
    assert not check.is_valid({"command": "x"})


def test_the_module_prints_it():
    import subprocess
    import sys

    printed = subprocess.run([sys.executable, "-m", "yurt.job"], check=True, capture_output=True, text=True)
    assert json.loads(printed.stdout) == json.loads(COMMITTED.read_text())
    assert printed.stderr == ""
