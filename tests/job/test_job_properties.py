"""Whatever stands in a file, it becomes a job or a list of mistakes on one line each."""

import tempfile
from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from yurt.errors import JobError
from yurt.job import Job, load_job

KEYS = [*(info.alias or name for name, info in Job.model_fields.items())]
ROLE_KEYS = ["replicas", "cpus", "memory", "gpus", "env", "command", "standard_server"]
WORDS = [
    "a",
    "python t.py",
    "2GiB",
    "90s",
    "no",
    "none",
    "mirrored",
    "parameter-server",
    "never",
    "chief",
    "s3://b",
    "*",
]

scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(WORDS)
    | st.dates()
    | st.binary(max_size=3)
)
trees = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=4) | st.sampled_from(KEYS + ROLE_KEYS), inner, max_size=4)
        | st.dictionaries(scalars, inner, max_size=2)
    ),
    max_leaves=8,
)
roles = st.dictionaries(
    st.sampled_from(["chief", "worker", "ps", "evaluator", "master", "workers"]),
    st.integers(-1, 3) | st.dictionaries(st.sampled_from(ROLE_KEYS), st.integers(0, 2) | trees, max_size=3) | trees,
    max_size=4,
)
nearly_jobs = st.fixed_dictionaries({"name": st.just("a"), "command": st.just("x") | trees}).flatmap(
    lambda base: st.dictionaries(st.sampled_from(KEYS), trees, max_size=3).flatmap(
        lambda more: roles.map(lambda some: {**base, **more, "roles": some})
    )
)
names_of_env = st.from_regex(r"[A-Z]{1,3}", fullmatch=True)
texts = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=6)
env = st.dictionaries(names_of_env, texts | st.integers() | st.floats(), max_size=2)
commands = st.lists(texts, max_size=3).map(lambda words: ["x", *words])
sizes = st.none() | st.integers(2**20, 2**45) | st.integers(1, 9).map(lambda n: f"{n}.5GB")
times = st.integers(1, 10**6) | st.floats(1e-3, 1e6) | st.integers(1, 99).map(lambda n: f"{n}h{n}m")


def role(most):
    return st.integers(1, most) | st.fixed_dictionaries(
        {"replicas": st.integers(1, most)},
        optional={
            "cpus": st.none() | st.floats(0.001, 1000),
            "memory": sizes,
            "gpus": st.none() | st.integers(0, 8),
            "env": env,
            "command": commands,
        },
    )


good_roles = (
    st.fixed_dictionaries({"worker": role(5)}, optional={"chief": role(1), "evaluator": role(1)})
    | st.fixed_dictionaries({"chief": role(1)}, optional={"evaluator": role(1), "ps": st.just(0)})
    | st.fixed_dictionaries({"chief": role(1), "worker": role(5), "ps": role(3)}, optional={"evaluator": role(1)})
)
good_jobs = st.fixed_dictionaries(
    {"name": st.from_regex(r"[a-z]([-a-z0-9]{0,9}[a-z0-9])?", fullmatch=True), "command": commands},
    optional={
        "roles": good_roles,
        "env": env,
        "output": st.sampled_from([None, "s3://bucket/a b", "file:///srv/x", "az://c"]),
        "saves_to": st.sampled_from([None, "model", "./a/b c"]),
        "restart": st.sampled_from(["never", "on-failure", "exit-code", "always"]),
        "max_restarts": st.integers(0, 1000),
        "success": st.sampled_from(["chief", "all-workers"]),
        "start_deadline": times,
        "deadline": st.none() | times,
        "grace": times | st.just(0),
        "keras": st.sampled_from(["auto", "patched", "legacy", "off"]),
        "track": st.sampled_from([None, "tensorboard", [], ["mlflow", "wandb"]]),
        "image": st.sampled_from([None, "a/b:c"]),
        "engines": st.dictionaries(
            names_of_env,
            st.dictionaries(texts, st.recursive(st.booleans() | st.integers() | texts, st.lists), max_size=2),
            max_size=2,
        ),
    },
).filter(lambda job: not (job.get("track") and job.get("keras") == "off"))
relaxed = settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def outcome(make):
    """The job that `make` gives, or None; anything but a JobError of one-line problems is a failure."""
    problems = []
    try:
        return make()
    except JobError as error:
        problems = error.problems
    assert problems
    for problem in problems:
        assert "\n" not in str(problem)
        assert len(str(problem)) < 900
        assert "input" not in problem.message.lower(), "a sentence that is not ours"
        assert "valid" not in problem.message.lower(), "a sentence that is not ours"
    return None


def load_text(data: bytes):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "job.yaml"
        path.write_bytes(data)
        return outcome(lambda: load_job(path))


@relaxed
@given(st.binary(max_size=60))
def test_random_bytes(data):
    load_text(data)


@relaxed
@given(st.text(alphabet="abn:- \n\t{}[],&*!|>'\"#%@`?~<=0123.e\\", max_size=60))
def test_random_yaml_letters(text):
    load_text(text.encode())
    load_text(b"name: a\ncommand: x\nenv: " + text.encode())


@relaxed
@given(nearly_jobs | trees)
def test_random_trees_in_a_file(tree):
    loaded = load_text(yaml.dump(tree).encode("utf-8", "surrogatepass"))
    if loaded is not None:
        assert Job(**loaded.job.as_file()) == loaded.job


@relaxed
@given(nearly_jobs)
def test_random_trees_in_python(tree):
    outcome(lambda: Job(**tree))


@relaxed
@given(good_jobs)
def test_a_good_job_comes_back(tree):
    job = Job(**tree)
    assert Job(**job.as_file()) == job
    assert Job.model_validate_json(job.model_dump_json()) == job
    assert hash(Job(**job.as_file())) == hash(job)
    loaded = load_text(yaml.safe_dump(job.as_file()).encode())
    assert loaded is not None
    assert loaded.job == job


@pytest.mark.parametrize("size", [100, 100_000])
def test_long_values_make_short_sentences(size):
    for key in KEYS:
        outcome(lambda key=key: Job(**{"name": "a", "command": "x", key: "é" * size}))
        outcome(lambda key=key: Job(**{"name": "a", "command": "x", key: {"é" * size: "é" * size}}))
        outcome(lambda key=key: Job(**{"name": "a", "command": "x", key: 10**4000}))
