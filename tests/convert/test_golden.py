"""Whole files, in and out, as a person can read them.

YURT_WRITE_GOLDEN=1 writes them anew; look at what changed.
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from yurt.convert import is_yurt, job_file, read_jobs, read_source, write_job
from yurt.engines import registry
from yurt.job import load_job

GOLDEN = Path(__file__).parent / "golden"
#: What is read -> what it makes.
READ = {
    ("one-job.nomad",): "one-job.yaml",
    ("chief.nomad", "worker.nomad"): "two-files.yaml",
    ("every-block.nomad",): "every-block.yaml",
    ("every-block.json",): "every-block-json.yaml",  # what `nomad job run -output every-block.nomad` prints (1.0.18)
    ("inspected.json",): "inspected.yaml",  # what `nomad job inspect` prints (1.0.18), with all of Nomad's defaults
}


@pytest.fixture(autouse=True)
def _in_the_folder(monkeypatch):
    monkeypatch.chdir(GOLDEN)  # notes name files as they were named


def same(name: str, text: str) -> None:
    if os.environ.get("YURT_WRITE_GOLDEN"):
        Path(name).write_text(text)
    assert text == Path(name).read_text()


@pytest.mark.parametrize("files", READ, ids="+".join)
def test_read(files, tmp_path):
    converted = read_jobs([read_source(Path(file)) for file in files])
    text = job_file(converted, ", ".join(files))
    same(READ[files], text)
    # what is written is a job file without mistakes, and the same job
    written = tmp_path / "job.yaml"
    written.write_text(text)
    assert load_job(written, engine_options=registry.all_options()).job == converted.job


def test_hcl_and_json_make_the_same_job():
    from_hcl, from_json = (read_jobs([read_source(Path(file))]) for file in ("every-block.nomad", "every-block.json"))
    assert _without_lists_of_one(from_hcl.job.as_file()) == _without_lists_of_one(from_json.job.as_file())

    assert {note.message for note in from_hcl.notes} == {note.message for note in from_json.notes}


def _without_lists_of_one(data):
    """Nomad prints every block of a driver's config as a list."""
    data["engines"]["nomad"]["config"] = {
        key: value[0] if isinstance(value, list) and len(value) == 1 else value
        for key, value in data["engines"]["nomad"]["config"].items()
    }
    return data


def test_write():
    job = load_job("leaving.yaml").job
    same("leaving.nomad", write_job(job, "nomad").text)
    same("leaving.json", write_job(job, "nomad", syntax="json").text)


@pytest.mark.skipif(not shutil.which("nomad"), reason="there is no nomad on PATH")
def test_nomad_itself_reads_the_hcl_as_the_json(tmp_path):
    import subprocess

    found = subprocess.run(
        ["nomad", "job", "run", "-output", "leaving.nomad"], capture_output=True, text=True, check=True
    )
    _contains(json.loads(found.stdout), json.loads(Path("leaving.json").read_text()))


def _contains(found, written, at=""):
    """All that is written is found, letter for letter; Nomad adds its defaults."""
    if isinstance(written, dict):
        for key, value in written.items():
            if value or value is False:
                _contains(found.get(key), value, f"{at}.{key}")
    elif isinstance(written, list):
        assert len(found) == len(written), at
        for index, value in enumerate(written):
            _contains(found[index], value, f"{at}[{index}]")
    else:
        assert found == written or (not found and not written), at


def test_every_golden_file_is_known_by_its_content():
    for path in Path().iterdir():
        assert is_yurt(read_source(path)) == (path.suffix == ".yaml")
