"""``python -m yurt.storage.publish``: exit codes, one line, no traceback, no secrets, nothing but the standard library."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipapp
from pathlib import Path

import pytest

import yurt
from tests.storage.helpers import FILES, command, contents
from yurt.storage.read import verify

PACKAGE = Path(yurt.__file__).parent


def test_success(model: Path, tmp_path: Path) -> None:
    answer = command("--source", model, "--output", tmp_path / "out", "--version", "run-1")
    assert (answer.code, answer.stderr) == (0, "")
    assert answer.said == {
        "ok": True,
        "url": (tmp_path / "out/run-1").as_uri(),
        "version": "run-1",
        "files": len(FILES),
        "bytes": sum(map(len, FILES.values())),
        "manifest_url": (tmp_path / "out/run-1/manifest.json").as_uri(),
        "latest_url": (tmp_path / "out/latest").as_uri(),
        "place": str(tmp_path / "out/run-1"),
    }


def test_no_model(tmp_path: Path) -> None:
    answer = command("--source", tmp_path / "none", "--output", tmp_path / "out", "--version", "run-1")
    assert (answer.code, answer.said["ok"], answer.said["reason"], answer.stderr) == (5, False, "no-model", "")
    assert set(answer.said) == {"ok", "reason", "message", "hint"}


@pytest.mark.parametrize(
    "change",
    [
        {"--version": "../run"},
        {"--version": "latest"},
        {"--version": "a/b"},
        {"--output": "ftp://host/x"},
        {"--output": "s3:///x"},
        {"--output": "s3://b/a/../c"},
        {"--output": ""},
        {"--output": "file://host/x"},
        {"--retry-timeout": "0"},
        {"--retry-timeout": "soon"},
        {"--meta-file": "/nonexistent"},
        {"--meta-file": __file__},
        {"--unknown": "x"},
        {"--source": None},
    ],
)
def test_bad_arguments(model: Path, tmp_path: Path, change: dict[str, str | None]) -> None:
    given = {"--source": str(model), "--output": str(tmp_path / "out"), "--version": "run-1"} | change
    answer = command(*(x for name, value in given.items() if value is not None for x in (name, value)))
    assert (answer.code, answer.said["ok"], answer.said["reason"], answer.stderr) == (2, False, "usage", "")
    assert not (tmp_path / "out").exists()


def test_credentials_in_the_url_are_refused_and_not_repeated(model: Path) -> None:
    answer = command("--source", model, "--output", "s3://AKIA:hunter2pass@bucket/x", "--version", "run-1")
    assert answer.code == 2
    assert "hunter2pass" not in answer.stdout
    assert "AKIA" not in answer.stdout


def test_secrets_never_appear(tmp_path: Path, model: Path) -> None:
    env = {"HF_TOKEN": "tok-12345/x", "DB_PASSWORD": "correct horse", "API_KEY": "k3y-abcdef"}
    out = tmp_path / "k3y-abcdef" / "correct horse"
    (tmp_path / "meta.json").write_text(
        json.dumps({"note": "used tok-12345/x", "env": {"WANDB_API_KEY": "zzz9"}, "tokens_per_s": 5})
    )
    answer = command(
        "--source", model, "--output", out, "--version", "run-1", "--meta-file", tmp_path / "meta.json", env=env
    )
    assert answer.code == 0
    assert verify(out).meta == {"note": "used ***", "env": {"WANDB_API_KEY": "***"}, "tokens_per_s": 5}
    (tmp_path / "file").write_bytes(b"")
    for output in (tmp_path / "file" / "correct horse", "s3://tok-12345%2Fx/..", "ftp://k3y-abcdef/"):
        answer = command("--source", model, "--output", output, "--version", "run-1", env=env)
        assert answer.code in (2, 5)
        assert not any(secret in answer.stdout for secret in (*env.values(), "tok-12345%2Fx"))


def without(modules: str) -> list[str]:
    """A Python in which these modules cannot be imported."""
    code = f"import sys, os; [sys.modules.__setitem__(m, None) for m in {modules.split()!r}]; from yurt.storage.publish import main; os._exit(main())"
    return [sys.executable, "-c", code]


def test_without_obstore_folders_work_and_buckets_say_what_to_install(model: Path, tmp_path: Path) -> None:
    python = without("obstore pydantic yaml click rich boto3")
    answer = command("--source", model, "--output", tmp_path / "out", "--version", "run-1", python=python)
    assert answer.code == 0
    answer = command("--source", model, "--output", "s3://bucket/x", "--version", "run-1", python=python)
    assert (answer.code, answer.said["reason"]) == (5, "other")
    assert "obstore is not installed" in answer.said["message"]
    assert "pip install obstore" in answer.said["hint"]


def test_a_profile_without_boto3(model: Path) -> None:
    env = {"AWS_PROFILE": "work", "AWS_REGION": "us-east-1"}
    answer = command(
        "--source", model, "--output", "s3://bucket/x", "--version", "run-1", python=without("boto3"), env=env
    )
    assert (answer.code, answer.said["reason"]) == (5, "denied")
    assert "needs boto3" in answer.said["message"]


def test_in_a_zipapp_with_the_standard_library_alone(model: Path, tmp_path: Path) -> None:
    inside = tmp_path / "inside/yurt"
    (inside / "storage").mkdir(parents=True)
    for name in ("__init__.py", "errors.py"):
        (inside / name).write_bytes((PACKAGE / name).read_bytes())
    for path in (PACKAGE / "storage").glob("*.py"):
        (inside / "storage" / path.name).write_bytes(path.read_bytes())
    (tmp_path / "inside/__main__.py").write_text("from yurt.storage.publish import main\nraise SystemExit(main())\n")
    zipapp.create_archive(tmp_path / "inside", tmp_path / "app.pyz")
    answer = command(
        "--source", model, "--output", tmp_path / "out", "--version", "run-1",
        python=[sys.executable, "-I", "-S", str(tmp_path / "app.pyz")],
    )  # fmt: skip
    assert answer.code == 0
    assert contents(tmp_path / "out/latest") == FILES
    answer = command(
        "--source", model, "--output", "s3://b/x", "--version", "run-1",
        python=[sys.executable, "-I", "-S", str(tmp_path / "app.pyz")],
    )  # fmt: skip
    assert "obstore is not installed" in answer.said["message"]


def test_importing_it_loads_nothing_heavy() -> None:
    code = (
        "import sys; import yurt.storage.publish, yurt.storage.read, yurt.storage.checks, yurt.storage.objects, yurt.storage.bucket\n"
        "print([m for m in ('obstore', 'boto3', 'pydantic', 'yaml', 'click', 'rich', 'asyncio') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_a_reader_that_has_gone(model: Path, tmp_path: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "yurt.storage.publish",
            "--source",
            str(model),
            "--output",
            str(tmp_path / "out"),
            "--version",
            "r",
        ],
        stdout=write,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    os.close(write)
    assert (done.returncode, done.stderr) == (0, "")
