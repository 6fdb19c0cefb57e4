"""`yurt convert`, as a person uses it."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

GOLDEN = Path(__file__).parent / "golden"
PAGE = (Path(__file__).parents[2] / "docs" / "convert.md").read_text()


@pytest.fixture
def yurt(tmp_path):
    place = tmp_path / "it's a place"
    place.mkdir()
    for path in GOLDEN.iterdir():
        shutil.copy(path, place)

    def run(*arguments, code=0, stdin=None):
        done = subprocess.run(
            [sys.executable, "-m", "yurt.cli.main", *arguments],
            cwd=place,
            capture_output=True,
            text=True,
            input=stdin,
            check=False,
        )
        assert done.returncode == code, done.stderr
        assert "Traceback" not in done.stderr
        return done

    run.place = place
    return run


def test_in_on_standard_output_and_notes_on_standard_error(yurt):
    done = yurt("convert", "chief.nomad", "worker.nomad")
    assert done.stdout == (GOLDEN / "two-files.yaml").read_text()
    told = [line.removeprefix("#   ") for line in done.stdout.splitlines() if line.startswith("#   ")]
    assert done.stderr.splitlines() == [f"yurt: {line}" for line in told]


def test_out_in_both_syntaxes(yurt):
    assert yurt("convert", "leaving.yaml", "--to", "nomad").stdout == (GOLDEN / "leaving.nomad").read_text()
    done = yurt("convert", "leaving.yaml", "--to", "nomad", "--format", "json")
    assert done.stdout == (GOLDEN / "leaving.json").read_text()
    assert "deadline: a Nomad job has none" in done.stderr


def test_into_a_file_that_check_then_takes(yurt):
    done = yurt("convert", "-", "-o", "job.yaml", stdin=(GOLDEN / "one-job.nomad").read_text())
    assert done.stdout == ""
    assert (yurt.place / "job.yaml").read_text().startswith("# Made from standard input by yurt convert.\n")
    yurt("render", "job.yaml")
    # a file that is there is not written over
    assert yurt("convert", "one-job.nomad", "-o", "job.yaml", code=2).stderr == (
        "yurt: job.yaml is there already\n      remove it, or give -o another name\n"
    )


def test_options(yurt):
    assert "name: storm\n" in yurt("convert", "chief.nomad", "--name", "storm").stdout
    assert "image: other:2\n" in yurt("convert", "one-job.nomad", "--var", "image=other:2").stdout
    assert "cpus: 2.5" in yurt("convert", "one-job.nomad", "--mhz", "2000").stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nothing.nomad"], "nothing.nomad does not exist"),
        (["."], ". is a folder"),
        (["leaving.yaml"], "leaving.yaml is a Yurt job file already"),
        (["chief.nomad", "--to", "nomad"], "chief.nomad is no Yurt job file, and --to nomad is for those"),
        (["leaving.yaml", "leaving.yaml", "--to", "nomad"], "--to nomad writes one Yurt job file, and there are 2"),
        (["chief.nomad", "--format", "json"], "--format is for --to; a Yurt job file is YAML"),
        (
            ["leaving.yaml", "--to", "nomad", "--name", "x"],
            "--name is for reading, not for --to nomad",
        ),
        (["one-job.nomad", "--var", "image"], "--var 'image' gives no value"),
        (["one-job.nomad", "--var", "x=1"], "--var x: one-job.nomad declares no such variable"),
        (["one-job.nomad", "-o", "none/job.yaml"], "none/job.yaml cannot be written: no such file or directory"),
    ],
)
def test_mistakes_are_one_sentence(yurt, arguments, said):
    done = yurt("convert", *arguments, code=2)
    assert done.stdout == ""
    assert done.stderr.splitlines()[0] == f"yurt: {said}"


def test_a_yurt_job_with_a_mistake_is_said_as_everywhere(yurt):
    (yurt.place / "bad.yaml").write_text("name: weather\ncommand: train.py\nrolls: 3\n")
    done = yurt("convert", "bad.yaml", "--to", "nomad", code=2)
    assert done.stderr.startswith("bad.yaml:3:1: rolls: is not a known key")


def test_the_parser_of_hcl_is_loaded_for_hcl_alone(yurt):
    code = (
        "import sys; from yurt.cli.main import main; main(['convert', 'inspected.json', '-o', 'x.yaml']);"
        "print([name for name in ('hcl2', 'lark', 'regex') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=yurt.place, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_without_the_parser_json_still_works(yurt):
    code = (
        "import sys; sys.modules['hcl2'] = None; from yurt.cli.main import main;"
        "print(main(['convert', 'inspected.json', '-o', 'x.yaml']), main(['convert', 'chief.nomad']))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=yurt.place, capture_output=True, text=True, check=True)
    assert done.stdout == "0 2\n"
    assert "yurt: chief.nomad is HCL, and python-hcl2 is not installed\n      pip install 'yurt[hcl]'" in done.stderr


def test_the_page_shows_what_happens(yurt):
    """Every example of docs/convert.md: a file, a command, and what it prints."""
    files = re.findall(r"`(\S+)`:\n\n```(?:hcl|yaml)\n(.*?)```", PAGE, re.DOTALL)
    assert len(files) >= 2
    for name, text in files:
        (yurt.place / name).write_text(text)
    shown = re.findall(r"\n    \$ yurt (convert .*)\n((?:    .*\n|\n(?=    ))+)", PAGE)
    assert len(shown) >= 2
    for command, expected in shown:
        done = yurt(*command.split(), code=2 if "yurt:" in expected and "name:" not in expected else 0)
        lines = [line.removeprefix("    ") for line in expected.rstrip().splitlines()]
        found = (done.stdout or done.stderr).splitlines()
        for line in lines:
            assert line == "..." or line in found, line


def test_the_page_names_every_option(yurt):
    for option in re.findall(r"--[a-z]+", yurt("convert", "--help").stdout):
        assert option in ("--help", "--output") or f"`{option}" in PAGE or f" {option}" in PAGE, option
