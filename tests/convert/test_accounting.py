"""Nothing of a Nomad job is lost in silence."""

from __future__ import annotations

import contextlib
import copy
import json
from pathlib import Path

import pytest

from tests.convert import jobs
from yurt.convert import Source, read_jobs
from yurt.convert.converted import job_file
from yurt.convert.nomad.from_json import job_from_json
from yurt.convert.nomad.parts import Part
from yurt.engines import registry
from yurt.errors import UsageError

OPTIONS = registry.all_options()
EVERY = json.loads((Path(__file__).parent / "golden" / "every-block.json").read_text())


def blocks(data, path=()):
    """The path of every mapping of a job."""
    if isinstance(data, dict):
        yield path
        for key, inner in data.items():
            yield from blocks(inner, (*path, key))
    elif isinstance(data, list):
        for index, inner in enumerate(data):
            yield from blocks(inner, (*path, index))


def place_of(part: Part) -> str | None:
    """The place of the strange key in the tree."""
    inner = part.value.values() if isinstance(part.value, dict) else part.value if isinstance(part.value, list) else ()
    if part.key == "Mystery":
        return part.inside
    return next((found for one in inner if (found := place_of(one))), None)


@pytest.mark.parametrize(
    "path",
    [path for path in blocks(EVERY["Job"]) if path[-1:] != ("Volumes",)],
    ids=lambda path: ".".join(map(str, path)) or "job",
)
def test_a_strange_key_in_any_block_is_told(path):
    data = copy.deepcopy(EVERY)
    block = data["Job"]
    for step in path:
        block = block[step]
    block["Mystery"] = "7"
    source = Source("every.json", json.dumps(data))
    place = place_of(job_from_json(source))
    converted = read_jobs([source])
    told = [note.place for note in converted.notes]
    # either itself, or a block around it that is left out as a whole, or the job file has it
    kept = "Mystery" in job_file(converted, "").partition("\n\n")[2]
    assert kept or any(place == one or (place.startswith(one) and place[len(one)] in ".:/") for one in told), place


def test_what_is_nomads_own_default_is_not_told():
    converted = read_jobs([Source("i.json", (Path(__file__).parent / "golden" / "inspected.json").read_text())])
    # only what somebody wrote: the template, the ports, the services, and the rule for MHz
    assert {note.message.split(":")[0].split(",")[0] for note in converted.notes} == {"is left out", "is 250 MHz"}
    assert {note.place.rpartition(": ")[2] for note in converted.notes} == {
        "Templates",
        "Resources.CPU",
        "Networks",
        "Services",
    }


def test_a_plain_job_has_nothing_to_tell():
    assert jobs.read(jobs.job()).notes == ()


def test_a_job_of_a_few_words_stands_on_a_few_lines():
    text = job_file(jobs.read(jobs.job(jobs.group(count=1))), "x")
    assert text == "# Made from x by yurt convert.\n\nname: weather\ncommand: python train.py\n"


def test_secrets_are_told_by_name_alone():
    converted = jobs.read(jobs.job(VaultToken="s3cret", ConsulToken="s3cret"))
    assert len(converted.notes) == 2
    assert "s3cret" not in job_file(converted, "x")


def test_notes_stand_on_one_line_each_whatever_the_names_are():
    converted = jobs.read(jobs.job(jobs.group("worker\n- evil: [", Constraints=[{"LTarget": "a"}], Spreads=[{"x": 1}])))
    text = job_file(converted, "a\nb.nomad")
    comments = text.partition("\n\n")[0].splitlines()
    assert all(line.startswith("#") for line in comments)
    assert len(comments) == 2 + len(converted.notes)


def values(data, path=()):
    """The path of everything in a job."""
    yield path
    items = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, inner in items:
        yield from values(inner, (*path, key))


@pytest.mark.parametrize("wrong", [7, [7], {"Name": 7}], ids=repr)
def test_values_of_any_kind_are_taken_or_refused_in_one_sentence(wrong):
    for path in values(EVERY):
        if not path:
            continue
        data = copy.deepcopy(EVERY)
        block = data
        for step in path[:-1]:
            block = block[step]
        block[path[-1]] = wrong
        with contextlib.suppress(UsageError):  # one sentence; anything else fails the test
            converted = read_jobs([Source("every.json", json.dumps(data))], engine_options=OPTIONS)
            assert job_file(converted, "x"), path
