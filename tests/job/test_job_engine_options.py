from enum import StrEnum
from typing import Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field, field_validator

from yurt.errors import JobError
from yurt.job import Job, job_schema


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


class Inner(BaseModel):
    model_config = ConfigDict(extra="forbid")
    cpus: int = 1


class Docker(BaseModel):
    network: str = "bridge"
    shm_bytes: int = Field(0, alias="shm")
    gpus: bool = False
    mode: Literal["fast", "safe"] = "safe"
    colour: Colour = Colour.RED
    mounts: list[str] = []
    limit: int | str | None = None
    inner: Inner = Inner()
    port: int = Field(80, gt=0)

    @field_validator("network")
    @classmethod
    def _no_space(cls, value: str) -> str:
        if " " in value:
            raise ValueError("a network has no spaces in its name")
        return value


class Nomad(BaseModel):
    datacenter: str


OPTIONS = {"docker": Docker, "nomad": Nomad}


def test_options_are_kept_as_given(load):
    text = "engines: {docker: {shm: 5, mounts: [a, b], inner: {cpus: 2}}, nomad: {datacenter: dc1}}\n"
    job = load(text, small=True, engine_options=OPTIONS)
    assert job.engines == {
        "docker": {"shm": 5, "mounts": ("a", "b"), "inner": {"cpus": 2}},
        "nomad": {"datacenter": "dc1"},
    }
    assert Docker.model_validate(job.engines["docker"]).shm_bytes == 5
    assert Job(**job.as_file()) == job


def test_without_models_every_engine_is_taken(load):
    job = load("engines: {mine: {a: 1.10, b: no, c: [x, {d: null}]}}\n", small=True)
    assert job.engines == {"mine": {"a": 1.1, "b": False, "c": ("x", {"d": None})}}


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("{dokcer: {}}", "3:11: engines.dokcer: is not an engine (did you mean docker?)"),
        ("{wibble: {}}", "3:11: engines.wibble: is not an engine (the engines are docker, nomad)"),
        ("{docker: host}", '3:11: engines.docker: must be a mapping of options, not the text "host"'),
        ("{docker: {netwrok: x}}", "3:20: engines.docker.netwrok: is not a known key (did you mean network?)"),
        ("{docker: {shm_bytes: 5}}", "3:20: engines.docker.shm_bytes: is not a known key (the keys here are colour, gpus, inner, limit, mode, mounts, network, port, shm)"),
        ("{docker: {network: no}}", '3:20: engines.docker.network: must be text, but YAML reads no as false (quote it: "no")'),
        ("{docker: {network: [x]}}", "3:20: engines.docker.network: must be text, not a list"),
        ("{docker: {network: a b}}", '3:20: engines.docker.network: a network has no spaces in its name (found the text "a b")'),
        ("{docker: {shm: lots}}", '3:20: engines.docker.shm: must be a whole number, not the text "lots"'),
        ("{docker: {shm: 1.5}}", "3:20: engines.docker.shm: must be a whole number, not the number 1.5"),
        ("{docker: {gpus: many}}", '3:20: engines.docker.gpus: must be true or false, not the text "many"'),
        ("{docker: {mode: quick}}", '3:20: engines.docker.mode: must be one of fast, safe, not the text "quick"'),
        ("{docker: {colour: green}}", '3:20: engines.docker.colour: must be one of red, blue, not the text "green"'),
        ("{docker: {mounts: [a, [b]]}}", "3:32: engines.docker.mounts[1]: must be text, not a list"),
        ("{docker: {inner: {cpu: 2}}}", "3:28: engines.docker.inner.cpu: is not a known key (did you mean cpus?)"),
        ("{docker: {port: 0}}", "3:20: engines.docker.port: must be greater than 0 (found the number 0)"),
        ("{nomad: {}}", "3:11: engines.nomad.datacenter: is missing"),
    ],
)  # fmt: skip
def test_mistakes_in_options(said, written, expected):
    assert said(f"engines: {written}\n", small=True, engine_options=OPTIONS) == [f"job.yaml:{expected}"]


def test_all_mistakes_of_all_engines_at_once(said):
    text = "engines: {docker: {a: 1, shm: x}, nomad: {}, slurm: {}}\nroles: {chief: 2}\n"
    found = said(text, small=True, engine_options=OPTIONS)
    assert [problem.split(": ")[1] for problem in found] == [
        "engines.docker.a",
        "engines.docker.shm",
        "engines.nomad.datacenter",
        "engines.slurm",
        "roles.chief",
    ]


def test_a_union_is_named_once_per_choice_at_the_written_place(said):
    found = said("engines: {docker: {limit: [x]}}\n", small=True, engine_options=OPTIONS)
    assert {problem.split(": ")[1] for problem in found} == {"engines.docker.limit"}


def test_the_schema_knows_the_options():
    import jsonschema

    schema = job_schema(OPTIONS)
    jsonschema.Draft202012Validator.check_schema(schema)
    check = jsonschema.Draft202012Validator(schema)
    assert check.is_valid({"name": "a", "engines": {"docker": {"shm": 5, "inner": {"cpus": 2}}}})
    assert not check.is_valid({"name": "a", "engines": {"docker": {"shm": "lots"}}})
    assert not check.is_valid({"name": "a", "engines": {"slurm": {}}})


def test_an_engine_may_name_its_model_like_one_of_ours():
    class Role(BaseModel):
        x: int = 1

    assert job_schema({"mine": Role})["properties"]["roles"]


def test_mistakes_are_job_errors():
    with pytest.raises(JobError):
        Job(name="a", command="x", engines=5)
