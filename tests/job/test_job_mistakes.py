"""Every mistake, word for word: mistakes.txt has a job file, an arrow, and what is said about it."""

import time
from pathlib import Path

import pytest

BLOCKS = [
    block.split("--->\n") for block in Path(__file__).with_name("mistakes.txt").read_text().split("\n\n") if block
]


@pytest.mark.parametrize(("text", "expected"), BLOCKS, ids=[text.strip()[-40:] for text, _ in BLOCKS])
def test_the_mistakes_of_a_file_are_named(said, text, expected):
    assert said(text) == expected.strip("\n").split("\n")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "job.yaml:1:1: is empty"),
        ("# nothing yet\n", "job.yaml:1:1: is empty"),
        ("---\n", "job.yaml:2:1: is empty"),
        ("name: a\n---\nname: b\n", "job.yaml:2:1: holds a second document, and a job is one"),
        ("name: a\n\tcommand: x\n", "job.yaml:2:1: has a tab where YAML wants spaces"),
        ("name: a\x07\n", "job.yaml:1:8: holds a character that YAML does not allow (U+0007)"),
        ("a: &x [*x]\n", "job.yaml:1:4: is nested too deeply, or refers to itself"),
        ("a: &x {<<: *x}\n", "job.yaml:1:8: is nested too deeply, or refers to itself"),
        ("[" * 5000, "job.yaml:1:41: is nested too deeply, or refers to itself"),
        ("- a\n" * 20_000, "job.yaml:10000:3: holds more than 10,000 values, repeated ones included"),
    ],
)
def test_a_file_that_is_no_job_gets_one_sentence(said, text, expected):
    (problem,) = said(text)
    assert problem.startswith(expected)


@pytest.mark.parametrize("merged", [False, True])
def test_aliases_that_multiply_do_not_hang(said, merged):
    item = "{<<: [%s]}" if merged else "[%s]"
    text = "a0: &a0 {x: 1}\n" if merged else "a0: &a0 lol\n"
    for level in range(1, 30):
        text += f"a{level}: &a{level} {item % ', '.join([f'*a{level - 1}'] * 9)}\n"
    start = time.monotonic()
    (problem,) = said(text)
    assert "holds more than 10,000 values" in problem
    assert time.monotonic() - start < 5


def test_the_file_system_gets_one_sentence(folder, said):
    from yurt.errors import JobError
    from yurt.job import load_job

    (folder / "sub").mkdir()
    (folder / "sub" / "job.yaml").write_text("name: a\n")
    (folder / "latin.yaml").write_bytes(b"name: a\ncommand: caf\xe9\n")
    (folder / "big.yaml").write_bytes(b"# long\n" * 200_000)
    (folder / "weather.yaml").write_text("name: a\n")
    expected = {
        "sub": "sub: is a folder, not a job file (did you mean sub/job.yaml?)",
        str(folder.parent): f"{folder.parent}: is a folder, not a job file (name the job file in it)",
        "wether.yaml": "wether.yaml: does not exist (did you mean weather.yaml?)",
        "nowhere/job.yaml": "nowhere/job.yaml: does not exist",
        "weather.yaml/job.yaml": "weather.yaml/job.yaml: does not exist",
        "a\0b": "a?b: does not exist",
        "a" * 300: f"{'a' * 300}: cannot be read: file name too long",
        "latin.yaml": "latin.yaml:2:13: is not UTF-8 text (save it as UTF-8)",
        "big.yaml": "big.yaml: is larger than 1 MiB, which no job file is",
        "/dev/zero": "/dev/zero: is larger than 1 MiB, which no job file is",
        "/dev/null": "/dev/null:1:1: is empty (the smallest job is `name: weather` and "
        "`command: python train.py`, in two lines)",
    }
    for path, sentence in expected.items():
        with pytest.raises(JobError) as caught:
            load_job(path)
        assert str(caught.value) == sentence


def test_an_unreadable_file_gets_one_sentence(folder, monkeypatch):
    from yurt.errors import JobError
    from yurt.job import load_job

    def refuse(*_args, **_kwargs):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)  # root may read everything, so the refusal is played
    with pytest.raises(JobError, match=r"^job\.yaml: cannot be read: permission denied$"):
        load_job("job.yaml")


def test_problems_hold_their_parts(load):
    from yurt.errors import JobError

    with pytest.raises(JobError) as caught:
        load("roles: {worker: {memory: 2gb}}\n", small=True)
    (problem,) = caught.value.problems
    assert (problem.file, problem.line, problem.column) == ("job.yaml", 3, 18)
    assert (problem.key, problem.hint) == ("roles.worker.memory", "did you mean 2GB?")


def test_credentials_are_never_repeated(said):
    assert "secret" not in "".join(said("output: s3://me:secret@bucket/x\n", small=True))
