"""Whole TFJob files, in the shapes that public ones have: what they make, where else they run, what is refused.

YURT_WRITE_GOLDEN=1 writes the golden files anew; look at what changed.
"""

from __future__ import annotations

import os
import shlex
from pathlib import Path

import pytest

from yurt.convert import Source, is_tfjob, job_file, read_jobs, read_source, write_job
from yurt.convert.tfjob.commands import ImageFacts
from yurt.engines import registry
from yurt.errors import UsageError
from yurt.job import load_job

FOLDER = Path(__file__).parent / "tfjob"
TAKEN = sorted(path.name for path in FOLDER.iterdir() if path.is_file())
REFUSED = sorted(path.name for path in (FOLDER / "refused").iterdir())
OPTIONS = registry.all_options()
ELSEWHERE = ("local", "docker", "nomad", "kubernetes")


@pytest.fixture(autouse=True)
def _in_the_folder(monkeypatch):
    monkeypatch.chdir(FOLDER)  # notes name files as they were named


def read(name: str, **options):
    job = "second" if name == "two-jobs.yaml" else None
    return read_jobs([read_source(Path(name))], job=job, engine_options=OPTIONS, **options)


def same(name: str, text: str) -> None:
    path = FOLDER / "golden" / name
    if os.environ.get("YURT_WRITE_GOLDEN"):
        path.write_text(text)
    assert text == path.read_text()


@pytest.mark.parametrize("name", TAKEN)
def test_read(name, tmp_path):
    converted = read(name)
    text = job_file(converted, name)
    same(f"{Path(name).stem}.yaml", text)
    # what is written is a job file without mistakes, and the same job
    written = tmp_path / "job.yaml"
    written.write_text(text)
    assert load_job(written, engine_options=OPTIONS).job == converted.job


@pytest.mark.parametrize("name", TAKEN)
def test_a_tfjob_that_is_written_again_means_the_same(name):
    job = read(name).job
    for syntax in ("yaml", "json"):
        again = read_jobs([Source("again", write_job(job, "tfjob", syntax=syntax).text)], engine_options=OPTIONS)
        # what the operator would do by itself is written out
        options = {**again.job.engines["kubernetes"]}
        if "clean_pod_policy" not in job.engines.get("kubernetes", {}):
            assert options.pop("clean_pod_policy") == "Running"
        written = {**again.job.as_file(), "engines": {"kubernetes": options} if options else {}}
        asked = job.as_file()
        if asked.get("restart") == "never":
            asked.pop("max_restarts", None)  # it means nothing then
        if asked.get("restart") == "always":
            asked["restart"] = "on-failure"  # of which a TFJob would never end
        assert {**written, "engines": plain(written["engines"])} == {**asked, "engines": plain(job.engines)}


def plain(value):
    if hasattr(value, "items"):
        return {key: plain(each) for key, each in value.items()}
    return [plain(each) for each in value] if isinstance(value, list | tuple) else value


def test_where_else_they_run():
    lines = []
    for name in TAKEN:
        for engine in ELSEWHERE:
            lines += [f"{name} on {engine}", *(f"    {line}" for line in elsewhere(name, engine))]
    same("elsewhere.txt", "\n".join(lines) + "\n")


def elsewhere(name: str, engine: str) -> list[str]:
    try:
        converted = read(name, engine=engine)
    except UsageError as error:
        return [f"refused: {error}", f"hint: {error.hint}"]
    job = converted.job
    made = [f"{role}: {shlex.join(job.command_for(role) or ['(standard server)'])}" for role in job.roles]
    made += [f"env: {dict(job.env)}"] if job.env else []
    made += [f"engines: {plain(job.engines)}"] if job.engines and engine != "kubernetes" else []
    return [*made, *(f"told: {note}" for note in converted.notes)]


def test_what_is_refused():
    lines = []
    for name in REFUSED:
        with pytest.raises(UsageError) as caught:
            read(f"refused/{name}")
        lines += [str(caught.value), f"    {caught.value.hint}"]
    same("refused.txt", "\n".join(lines) + "\n")


def test_each_is_known_for_what_it_is():
    assert all(is_tfjob(read_source(Path(name))) for name in TAKEN)
    assert all(is_tfjob(read_source(Path(f"refused/{name}"))) for name in REFUSED)
    assert not any(is_tfjob(read_source(path)) for path in Path("golden").glob("*.yaml"))


def test_what_an_image_starts_can_be_known():
    facts = ImageFacts(("python", "/app/main.py"), ("--help",), "/app")
    asked = []

    def images(image):
        asked.append(image)
        return facts

    converted = read("refused/no-command.yaml", images=images)
    assert converted.job.command == ("/bin/sh", "-c", 'cd /app && exec "$@"', "sh", "python", "/app/main.py", "--help")
    assert asked == ["registry.example/dist:1"]
    # args take the place of the image's own
    assert read("refused/flags-alone.yaml", images=images).job.command[-2:] == ("--backend", "nccl")
    # and where it says its command, nobody looks
    read("simple.yaml", images=lambda _: pytest.fail("looked"))
