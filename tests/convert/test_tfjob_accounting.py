"""Nothing of a TFJob is lost in silence: it is carried, told or refused, wherever the job runs."""

from __future__ import annotations

import contextlib
import copy
import json
from pathlib import Path

import pytest
import yaml

from yurt.convert import Source, job_file, read_jobs
from yurt.engines import registry
from yurt.errors import UsageError

FOLDER = Path(__file__).parent / "tfjob"
OPTIONS = registry.all_options()
#: Files that have one TFJob and nothing else, as data.
FILES = {
    path.name: data[0]
    for path in sorted(FOLDER.iterdir())
    if path.is_file() and len(data := list(yaml.safe_load_all(path.read_text().replace("\t", " ")))) == 1
}
#: These are looked at for other engines too.
EVERYWHERE = ("chief-worker-ps.yaml", "host-path.yaml", "kueue.yaml", "placement.yaml", "volcano.yaml")


def steps_of(data, path=()):
    yield path
    items = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, inner in items:
        yield from steps_of(inner, (*path, key))


def at(data, steps):
    for step in steps:
        data = data[step]
    return data


def shown(steps):
    path = ""
    for step in steps:
        path += f"[{step}]" if isinstance(step, int) else f".{step}" if path else step
    return path


#: What is the cluster's own record of an object that is there, and no wish of anybody's.
RECORDS = ("status", "metadata.managedFields", "metadata.annotations")


def accounted(data, path, engine):
    """Whether the strange key below `path` is carried, told or refused."""
    try:
        converted = read_jobs([Source("x", json.dumps(data))], engine=engine, engine_options=OPTIONS)
    except UsageError:
        return True
    text = job_file(converted, "").partition("\n\n")[2]
    if "mystery" in text:
        return True
    strange = f"{path}.mystery" if path else "mystery"
    for note in converted.notes:
        if note.place and (strange == note.place or strange.startswith((f"{note.place}.", f"{note.place}["))):
            return True
        if "mystery" in note.message:
            return True
        if engine and note.message.startswith("left out on "):
            names = note.message.rpartition(": ")[2].split(", ")
            if any(name in strange.replace("[", ".").split(".") for name in names):
                return True
    return False


@pytest.mark.parametrize("name", [name for name in FILES if name != "list.json"])
def test_a_strange_key_in_any_mapping(name):
    for steps in steps_of(FILES[name]):
        if not isinstance(at(FILES[name], steps), dict):
            continue
        path = shown(steps)
        if path.startswith(RECORDS):
            continue
        data = copy.deepcopy(FILES[name])
        at(data, steps)["mystery"] = "7"
        for engine in (None, "local", "docker") if name in EVERYWHERE else (None,):
            assert accounted(data, path, engine), (path, engine)


@pytest.mark.parametrize("wrong", [[7], {"name": 7}, "word"], ids=repr)
def test_values_of_any_kind_are_taken_or_refused_in_one_sentence(wrong):
    for name in ("placement.yaml", "env-in-the-cluster.yaml", "v1alpha1.yaml", "volcano.yaml"):
        for steps in steps_of(FILES[name]):
            if not steps:
                continue
            data = copy.deepcopy(FILES[name])
            at(data, steps[:-1])[steps[-1]] = wrong
            with contextlib.suppress(UsageError):  # one sentence; anything else fails the test
                converted = read_jobs([Source("x", json.dumps(data))], engine_options=OPTIONS)
                assert job_file(converted, "x"), steps


def test_a_plain_tfjob_has_nothing_to_tell():
    data = {
        "apiVersion": "kubeflow.org/v1",
        "kind": "TFJob",
        "metadata": {"name": "weather"},
        "spec": {
            "tfReplicaSpecs": {
                "Worker": {
                    "replicas": 2,
                    "restartPolicy": "Never",
                    "template": {
                        "spec": {"containers": [{"name": "tensorflow", "image": "a:1", "command": ["python", "/a.py"]}]}
                    },
                }
            }
        },
    }
    converted = read_jobs([Source("x", json.dumps(data))], engine_options=OPTIONS)
    assert converted.notes == ()
    assert job_file(converted, "x") == (
        "# Made from x by yurt convert.\n\n"
        "name: weather\ncommand: python /a.py\nroles: {worker: 2}\nfiles: []\nrestart: never\nimage: a:1\n"
    )


def test_secrets_in_the_file_are_not_shown():
    converted = read_jobs([Source("x", (FOLDER / "config-map.yaml").read_text())], engine_options=OPTIONS)
    assert "secret\n" not in job_file(converted, "x")
    assert "c2VjcmV0" not in job_file(converted, "x")
