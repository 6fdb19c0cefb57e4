"""A job as a Python value."""

import pickle
from copy import deepcopy
from pathlib import Path

import pytest
import yaml
from pydantic import TypeAdapter

from yurt.errors import JobError
from yurt.job import Job, RestartPolicy, Role, RoleName, Strategy, SuccessRule, load_job
from yurt.job.kinds import KerasChoice, Tracker
from yurt.job.names import LONGEST_LABEL, LONGEST_NAME, MOST_REPLICAS, RUN_ID_END

FULL = {
    "name": "weather",
    "command": "python train.py --epochs 3",
    "strategy": "parameter-server",
    "roles": {
        "chief": {"cpus": 0.5, "memory": "2GiB", "gpus": 0},
        "worker": {"replicas": 2, "env": {"A": "1.10"}, "command": ["sh", "-c", "a && b\n'c'"]},
        "ps": {"replicas": 2, "standard_server": True},
        "evaluator": 1,
    },
    "env": {"B": "x y", "C": ""},
    "files": ["train.py", "data/*.csv"],
    "output": "s3://bucket/prefix",
    "saves_to": "out/model",
    "restart": "on-failure",
    "max_restarts": 0,
    "success": "all-workers",
    "start_deadline": "5m",
    "deadline": "2h30m",
    "grace": 0,
    "keras": "legacy",
    "track": ["tensorboard", "wandb"],
    "image": "registry.example:5000/team/image:1.2",
    "engines": {"docker": {"network": "host", "ports": [1, 2], "deep": {"a": None}}},
}


def problems(**fields):
    with pytest.raises(JobError) as caught:
        Job(**{"name": "a", "command": "x", **fields})
    assert all(problem.line is None and problem.file is None for problem in caught.value.problems)
    return [str(problem) for problem in caught.value.problems]


def test_the_smallest_job_has_every_default():
    job = Job(name="a", command="train.py")
    assert job.model_dump(mode="json") == {
        "name": "a",
        "command": ["python", "train.py"],
        "strategy": "none",
        "roles": {
            "worker": {
                "replicas": 1,
                "cpus": None,
                "memory_bytes": None,
                "gpus": None,
                "env": {},
                "command": None,
                "standard_server": False,
            }
        },
        "env": {},
        "files": ["."],
        "output": None,
        "saves_to": None,
        "restart": "exit-code",
        "max_restarts": 3,
        "success": "chief",
        "start_deadline_s": 600.0,
        "deadline_s": None,
        "grace_s": 30.0,
        "keras": "auto",
        "track": [],
        "image": None,
        "engines": {},
    }


def test_a_full_job_has_its_units():
    job = Job(**FULL)
    assert job.strategy is Strategy.PARAMETER_SERVER
    assert job.restart is RestartPolicy.ON_FAILURE
    assert job.success is SuccessRule.ALL_WORKERS
    assert job.keras is KerasChoice.LEGACY
    assert job.track == (Tracker.TENSORBOARD, Tracker.WANDB)
    assert (job.start_deadline_s, job.deadline_s, job.grace_s) == (300.0, 9000.0, 0.0)
    assert job.roles["chief"].memory_bytes == 2 * 1024**3
    assert list(job.roles) == ["chief", "worker", "ps", "evaluator"]
    assert job.roles[RoleName.PS].standard_server


def test_attributes_and_keys_are_both_taken():
    one = Job(name="a", command="x", deadline_s=90, grace_s=5, roles={"worker": {"memory_bytes": 2**30}})
    two = Job(name="a", command="x", deadline="90s", grace="5s", roles={RoleName.WORKER: Role(memory="1GiB")})
    assert one == two
    assert hash(one) == hash(two)
    assert problems(deadline="1s", deadline_s=1) == [
        "job: deadline_s: is given twice: it is the same as deadline (keep deadline)"
    ]


def test_one_tracker_is_written_without_a_list():
    job = Job(name="a", command="x", track="mlflow")
    assert job.track == (Tracker.MLFLOW,)
    assert job.as_file() == {"name": "a", "command": "x", "track": "mlflow"}
    assert Job(name="a", command="x", track=[Tracker.MLFLOW]) == job
    assert Job(name="a", command="x", track=None) == Job(name="a", command="x", track=[]) == Job(name="a", command="x")
    assert problems(track="wandb", keras="off")


def test_a_command_keeps_its_placeholders():
    words = ["python", "t.py", "--name={role}", "{index}", "{{role}}", "{0}", "${HOME}", '{"a": {"b": 1}}']
    job = Job(name="a", command=words)
    assert job.command == tuple(words)
    assert Job(**job.as_file()) == job


@pytest.mark.parametrize("job", [Job(**FULL), Job(name="a", command="x")], ids=["full", "small"])
def test_a_job_comes_back(job, tmp_path):
    assert Job(**job.as_file()) == job
    assert Job.model_validate(job.model_dump()) == job
    assert Job.model_validate(job.model_dump(mode="json")) == job
    assert Job.model_validate_json(job.model_dump_json()) == job
    assert pickle.loads(pickle.dumps(job)) == job
    assert deepcopy(job) == job
    assert hash(Job(**job.as_file())) == hash(job)
    (tmp_path / "train.py").touch()
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "x.csv").touch()
    (tmp_path / "job.yaml").write_text(yaml.safe_dump(job.as_file()))
    assert load_job(tmp_path / "job.yaml").job == job


def test_the_short_written_form_is_short():
    job = Job(
        name="weather",
        command="train.py --epochs 3",
        roles={"worker": 2, "ps": 0},
        strategy="multi-worker-mirrored",
        grace="30s",
    )
    assert job.as_file() == {
        "name": "weather",
        "command": "python train.py --epochs 3",
        "roles": {"worker": 2},
    }
    written = {**FULL, "deadline": "150m"}
    del written["strategy"]  # it follows from the roles
    assert Job(**FULL).as_file() == written


def test_a_job_cannot_be_changed():
    job = Job(**FULL)
    with pytest.raises(ValueError):
        job.name = "b"
    for change in (
        lambda: job.env.update(A="1"),
        lambda: job.env.__setitem__("A", "1"),
        lambda: job.roles.pop("chief"),
        job.roles["worker"].env.clear,
        lambda: job.engines["docker"].__delitem__("network"),
        lambda: job.engines["docker"]["deep"].setdefault("b", 1),
    ):
        with pytest.raises(TypeError, match="a job cannot be changed"):
            change()
    assert job == Job(**FULL)


def test_roles_without_replicas_are_left_out():
    job = Job(name="a", command="x", roles={"evaluator": 0, "ps": {"replicas": 0}, "worker": 1, "chief": 1})
    assert list(job.roles) == ["chief", "worker"]
    assert job.strategy is Strategy.MULTI_WORKER_MIRRORED


def test_commands_and_environments_by_role():
    job = Job(**FULL)
    assert job.command_for(RoleName.CHIEF) == job.command
    assert job.command_for(RoleName.WORKER) == ("sh", "-c", "a && b\n'c'")
    assert job.command_for(RoleName.PS) is None
    job = Job(name="a", command="x", env={"A": 1, "B": 2}, roles={"worker": {"env": {"B": 3}}})
    assert job.env_for(RoleName.WORKER) == {"A": "1", "B": "3"}


def test_paths_may_be_path_objects():
    job = Job(name="a", command=["python", Path("t.py")], output=Path("models"), files=[Path("t.py")])
    assert (job.command, job.output, job.files) == (("python", "t.py"), "models", ("t.py",))
    assert job.in_folder(Path("/srv")).output == "file:///srv/models"


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        (
            {"name": "my_Job"},
            ['job: name: may only have small letters a to z, digits and -, not "_", "J" (did you mean my-job?)'],
        ),
        ({"env": {"A": True}}, ['job: env.A: must be text, but True has several spellings (quote it: "true" or "1")']),
        ({"env": {"A": None}}, ['job: env.A: has no value (quote what the script should see: "" or "null")']),
        ({"command": b"x"}, ["job: command: must be a command: text, or a list of words, not a bytes"]),
        ({"command": "a\0b"}, ["job: command: must be text, and text cannot hold a NUL character"]),
        (
            {"command": ["x", "\ud800"]},
            ["job: command[1]: must be text or a number, and half of a surrogate pair is not a character"],
        ),
        (
            {"command": None},
            ["job: command: is missing, and worker has no own command (add a line such as `command: python train.py`)"],
        ),
        (
            {"roles": {"worker": Role(), "wrkr": 2}},
            ["job: roles.wrkr: is not a role; the roles are chief, worker, ps, evaluator (did you mean worker?)"],
        ),
        (
            {"roles": {"worker": {"replicas": -1, "memry": 2}}},
            [
                "job: roles.worker.memry: is not a known key (did you mean memory?)",
                "job: roles.worker.replicas: must be 0 or more, not -1",
            ],
        ),
        ({"engines": {"docker": {"a": {1}}}}, ["job: engines.docker.a: must be plain data, not a set"]),
        (
            {"engines": {"docker": {"a": float("nan")}}},
            ["job: engines.docker.a: must be a finite number, not the number nan"],
        ),
        ({"engines": {"docker": {"a": {1: 2}}}}, ["job: engines.docker.a: must have text for keys, not the number 1"]),
        ({"a.b\n": 1, "x" * 99: 2}, None),
    ],
)
def test_mistakes_without_a_file(fields, expected):
    found = problems(**fields)
    assert found == expected or expected is None
    assert not any("\n" in sentence for sentence in found)


def test_data_that_holds_itself_is_refused():
    loop = {}
    loop["again"] = loop
    assert problems(engines={"docker": loop}) == ["job: engines.docker.again.again: is nested too deeply"]


def test_a_role_alone_raises_the_same_error():
    with pytest.raises(JobError, match=r'^job: memory: has the unknown unit "gb" \(did you mean 2GB\?\)$'):
        Role(memory="2gb")


@pytest.mark.parametrize("value", [5, None, [], "x"])
def test_what_is_no_mapping(value):
    with pytest.raises(JobError, match="must be a mapping"):
        TypeAdapter(Job).validate_python(value)


def test_the_longest_name_fits_a_dns_label_with_every_task():
    longest = max(len(f"-{role}-{MOST_REPLICAS - 1}") for role in ("worker", "ps"))
    assert LONGEST_NAME + RUN_ID_END + max(longest, len("-evaluator-99")) <= LONGEST_LABEL
    assert Job(name="a" * LONGEST_NAME, command="x")


def test_the_public_names():
    import yurt.job

    for name in yurt.job.__all__:
        assert getattr(yurt.job, name).__doc__
