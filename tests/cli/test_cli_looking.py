"""check, render, schema, completion, help and mistakes: what starts nothing."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.cli import scripts
from tests.support.runs import YURT

SECRET = "hunter2-hunter2"


def test_check_says_what_would_run(folder):
    result = folder.yurt("check", folder.write(scripts.two(output="./models"), train=scripts.TRAIN))
    assert (result.returncode, result.stderr) == (0, "")
    assert "job can start on this machine: 2 tasks, strategy multi-worker-mirrored\n" in result.stdout
    assert f" {sys.version.split()[0]} " in result.stdout
    assert result.stdout.count("python train.py") == 1
    assert "the model would go to ./job/models, which can be written" in result.stdout
    assert folder.run_ids() == []
    assert not (folder.path / "job/models").exists()


def test_check_as_json(folder):
    found = json.loads(folder.yurt("check", folder.write(scripts.two(), train=scripts.TRAIN), "--json").stdout)
    assert found["ok"] is True
    (role,) = found["roles"]
    assert (role["role"], role["replicas"], role["command"]) == ("worker", 2, ["python", "train.py"])
    assert {"python", "tensorflow", "keras"} <= set(role["found"])


def test_check_names_everything_that_stands_against_a_start(folder):
    (folder.path / "full").write_text("a file, no folder")
    job = scripts.job(command="python nowhere.py", output=str(folder.path / "full/models"))
    result = folder.yurt("check", folder.write(job))
    assert result.returncode == 2
    assert "yurt: worker: the script 'nowhere.py' is not among the job's files\n" in result.stderr
    assert "yurt: output: " in result.stderr


def test_a_bad_job_file_is_told_at_once_with_all_its_mistakes(folder):
    file = folder.path / "job.yaml"
    file.write_text("name: Bad Name\ncomand: python train.py\nroles: {worker: many}\n")
    for verb in ("run", "check", "render"):
        result = folder.yurt(verb, file)
        assert result.returncode == 2
        assert result.stdout == ""
        lines = result.stderr.splitlines()
        assert len(lines) >= 3
        assert all(line.startswith(f"{file}:") for line in lines)
        assert any("did you mean command" in line for line in lines)
    assert folder.run_ids() == []


def test_render_is_the_request_and_the_same_each_time(folder):
    file = folder.write(scripts.two(), train=scripts.TRAIN)
    first, second = folder.yurt("render", file), folder.yurt("render", file, "--on", "local")
    assert first.stdout == second.stdout
    request = json.loads(first.stdout)
    assert request["run"] == "job-RUN"
    assert [agent["task"] for agent in request["agents"]] == ["worker/0", "worker/1"]
    assert request["agents"][0]["config"]["run"]["submitted_at"] == 0
    assert folder.run_ids() == []


def test_secrets_are_shown_nowhere(folder):
    secrets = {"WANDB_API_KEY": SECRET, "DB_PASSWORD": SECRET, "PLAIN": "seen"}
    file = folder.write(scripts.job(env=secrets, roles={"worker": {"env": {"MY_TOKEN": SECRET}}}), train=scripts.TRAIN)
    rendered = folder.yurt("render", file).stdout
    assert "seen" in rendered
    assert rendered.count("<hidden>") >= 4  # the three, and the run's token
    shown = [rendered, folder.yurt("check", file, "--json").stdout, folder.yurt("run", file, "--json").stdout]
    shown += [folder.yurt(verb, "--json").stdout for verb in ("ls", "status", "wait")]
    assert not [text for text in shown if SECRET in text]
    for path in (folder.home / "runs").rglob("*"):
        own = path.name == "job.yaml"  # the job's own file travels with it as it is
        assert own or not path.is_file() or SECRET.encode() not in path.read_bytes(), path


def test_the_schema_is_json_and_knows_the_engines(folder):
    schema = json.loads(folder.yurt("schema").stdout)
    assert "local" in schema["properties"]["engines"]["properties"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts(folder, shell):
    result = folder.yurt("completion", shell)
    assert result.returncode == 0
    assert "_YURT_COMPLETE" in result.stdout


def complete(folder, words: str) -> list[str]:
    environment = {**folder.env(), "_YURT_COMPLETE": "bash_complete", "COMP_WORDS": words}
    environment["COMP_CWORD"] = str(len(words.split(" ")) - 1)
    result = subprocess.run(YURT, env=environment, capture_output=True, text=True, check=False)
    return [line.partition(",")[2] for line in result.stdout.splitlines()]


def test_verbs_runs_tasks_and_engines_complete(folder):
    folder.yurt("run", folder.write(scripts.two(), train=scripts.TRAIN))
    run_id = folder.run_ids()[0]
    assert complete(folder, "yurt st") == ["status", "stop"]
    assert complete(folder, "yurt status j") == [run_id]
    assert complete(folder, f"yurt logs {run_id} w") == ["worker/0", "worker/1"]
    assert complete(folder, "yurt run --on lo") == ["local"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["rnu"], "yurt: there is no verb 'rnu'; did you mean run?"),
        (["run"], "yurt: missing argument 'JOB.yaml'"),
        (["run", "nowhere.yaml"], "nowhere.yaml: does not exist"),
        (["ls", "--jsno"], "yurt: no such option"),
        (["--bad"], "yurt: no such option"),
        (["logs", "--tail", "x"], "yurt: invalid value for '--tail'"),
        (["status"], "yurt: there are no runs yet"),
        (["prune", "--older-than", "soon"], "yurt: --older-than 'soon' is no age"),
        (["completion", "csh"], "yurt: invalid value"),
    ],
)
def test_mistakes_on_the_command_line_are_one_sentence(folder, arguments, said):
    result = folder.yurt(*arguments)
    assert result.returncode == 2
    assert said.lower() in result.stderr.lower()
    assert "Traceback" not in result.stderr
    assert "Usage" not in result.stderr


def test_an_engine_that_there_is_not(folder):
    result = folder.yurt("run", folder.write(scripts.job(), train=scripts.TRAIN), "--on", "locl")
    assert result.returncode == 2
    assert result.stderr == "yurt: there is no engine 'locl'\n      did you mean local?\n"


def test_a_fault_of_ours_is_one_line_and_a_file(folder):
    broken = folder.home / "runs" / "job-aaaaaa"
    broken.mkdir(parents=True)
    (broken / "record.json").write_text('{"spec": {}}')
    result = folder.yurt("status")
    assert result.returncode == 6
    assert result.stderr.startswith("yurt: internal error: ")
    assert result.stderr.count("\n") == 1
    (kept,) = (folder.home / "errors").iterdir()
    assert str(kept) in result.stderr
    assert "Traceback" in kept.read_text()


def test_the_version(folder):
    assert folder.yurt("--version").stdout == folder.yurt("version").stdout
    assert folder.yurt("version").stdout.startswith("yurt 0.")


def test_every_verb_has_help_and_help_names_every_verb(folder):
    from yurt.cli.group import VERBS

    help_text = folder.yurt("--help").stdout
    for verb, sentence in VERBS.items():
        assert f"{verb} " in help_text
        assert sentence in help_text
        assert folder.yurt(verb, "--help").stdout.startswith(f"Usage: yurt {verb}")


#: What no command may pay for before it is needed.
HEAVY = {"pydantic", "yaml", "rich", "tensorflow", "obstore", "numpy", "asyncio", "http.client"}


def imported(folder, *command: str) -> set[str]:
    result = subprocess.run(
        [sys.executable, "-X", "importtime", *command], env=folder.env(), capture_output=True, text=True, check=True
    )
    names = {line.rpartition("|")[2].strip() for line in result.stderr.splitlines()}
    return names | {name.partition(".")[0] for name in names}


def test_help_imports_nothing_heavy(folder):
    names = imported(folder, "-m", "yurt.cli.main", "--help")
    assert "click" in names
    assert not names & HEAVY


def test_yurt_imports_neither_tensorflow_nor_a_client(folder):
    names = imported(folder, "-c", "import yurt")
    assert not names & {"tensorflow", "obstore", "numpy", "rich"}
