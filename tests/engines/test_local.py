"""The local engine: what it renders, how it divides the machine, how it starts and ends agents."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from yurt.contract.spec import RunSpec, TaskSpec
from yurt.engines.base import AllocationState, Engine, Place
from yurt.engines.local.engine import LocalEngine
from yurt.engines.local.machine import Machine
from yurt.engines.local.options import LocalOptions
from yurt.engines.local.states import state_of
from yurt.engines.shares import divide
from yurt.engines.work_folder import mirror

GOLDEN = Path(__file__).parent / "golden"
TASKS = (
    TaskSpec("chief", 0, ("python", "train.py", "--text", "a 'b' ${HOME} %{x}\n"), {"EPOCHS": "3"}),
    TaskSpec("worker", 0, None, {}, cpus=1),
    TaskSpec("ps", 0, None, {}, memory_bytes=2**30),
)
RUN = RunSpec(
    run_id="weather-abc123", job_name="weather", strategy="parameter-server", tasks=TASKS, restart="exit-code",
    max_restarts=3, success="chief", start_deadline_s=600.0, deadline_s=None, grace_s=30.0,
    output="file:///models", saves_to=None, submitted_at=0.0,
)  # fmt: skip
PLACE = Place(Path("/runs/weather-abc123"), Path("/agents/agent.pyz"), "http://127.0.0.1:8500", "token")
MACHINE = Machine(tuple(range(8)), ("0", "1"), "machine", "/env/bin/python", "/env/bin")


def test_it_is_an_engine():
    assert isinstance(LocalEngine(), Engine)


def test_what_is_rendered_is_a_file_that_a_person_can_read():
    """After a wanted change: write what `rendered` is into the file, and read it."""
    request = LocalEngine().render(RUN, PLACE, LocalOptions(), MACHINE)
    rendered = json.dumps(request, indent=1, sort_keys=True) + "\n"
    file = GOLDEN / "local.json"
    assert rendered == file.read_text()
    assert request == LocalEngine().render(RUN, PLACE, LocalOptions(), MACHINE), "render is pure"


def shares(tasks, cpus, gpus=(), *, pin=True):
    found, notes = divide(tasks, cpus, gpus, pin=pin)
    return {name: (share.cpus, share.threads, share.gpus) for name, share in found.items()}, notes


def workers(count, **changes):
    return tuple(TaskSpec("worker", index, ("a",), **changes) for index in range(count))


def test_cpus_are_divided_evenly_in_disjoint_sets_with_as_many_threads():
    assert shares(workers(2), range(5))[0] == {"worker/0": ((0, 1, 2), 3, None), "worker/1": ((3, 4), 2, None)}


def test_a_role_gets_the_cpus_it_asks_for_and_the_rest_is_divided():
    tasks = (*workers(2), TaskSpec("ps", 0, None, cpus=1.5))
    found, _ = shares(tasks, range(8))
    assert [len(found[name][0]) for name in ("worker/0", "worker/1", "ps/0")] == [3, 3, 2]


def test_one_task_has_the_machine_and_tensorflows_own_threads():
    assert shares(workers(1), range(4))[0] == {"worker/0": (None, 4, None)}


def test_more_tasks_than_cpus_are_not_pinned_and_it_is_said():
    found, notes = shares(workers(3), range(2))
    assert set(found.values()) == {(None, 1, None)}
    assert "3 tasks share 2 CPUs" in notes[0]


def test_nothing_is_pinned_where_nobody_wants_it():
    assert set(shares(workers(2), range(4), pin=False)[0].values()) == {(None, None, None)}


def test_gpus_go_to_those_who_train_unless_asked_otherwise():
    tasks = (
        TaskSpec("chief", 0, ("a",)),
        *workers(1),
        TaskSpec("ps", 0, None),
        TaskSpec("evaluator", 0, ("a",), gpus=1),
    )
    found, _ = shares(tasks, range(8), ("0", "1", "2", "3"))
    assert {name: gpus for name, (_, _, gpus) in found.items()} == {
        "chief/0": "0,1",
        "worker/0": "2",
        "ps/0": "-1",
        "evaluator/0": "3",
    }


def test_more_gpus_than_there_are_is_said():
    _, notes = shares(workers(2, gpus=2), range(8), ("0",))
    assert notes == ["the job asks for 4 GPUs, this machine has 1"]


@pytest.mark.parametrize(
    ("code", "state"),
    [(None, "running"), (0, "ended"), (1, "ended"), (143, "lost"), (137, "lost"), (-9, "lost"), (-15, "lost")],
)
def test_what_the_end_of_an_agent_means(code, state):
    assert state_of(code) is AllocationState(state)


def test_each_task_has_the_jobs_files_in_a_folder_of_its_own(tmp_path):
    files = tmp_path / "files"
    (files / "pkg").mkdir(parents=True)
    (files / "pkg" / "a.py").write_text("a")
    (tmp_path / "big").write_text("data")
    (files / "big").symlink_to(tmp_path / "big")
    for name in ("one", "two"):
        mirror(files, tmp_path / name)
    (tmp_path / "one/pkg/out.txt").write_text("1")
    (tmp_path / "one/pkg/a.py").write_text("changed")
    assert not (tmp_path / "two/pkg/out.txt").exists()
    assert (tmp_path / "two/pkg/a.py").read_text() == (files / "pkg/a.py").read_text() == "a"
    assert (tmp_path / "two/big").is_symlink()
    mirror(files, tmp_path / "one")
    assert (tmp_path / "one/pkg/out.txt").exists(), "a task that comes back finds what it left"


def test_an_engine_of_somebody_else_is_found_by_its_entry_point(tmp_path, monkeypatch):
    from yurt.engines import registry

    info = tmp_path / "yurt_slurm-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: yurt-slurm\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[yurt.engines]\nslurm = yurt_slurm:Slurm\nbroken = yurt_slurm:Nothing\n")
    (tmp_path / "yurt_slurm.py").write_text("from yurt.engines.local.engine import LocalEngine as Slurm\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert registry.load("slurm").name == "local"
    assert {"local", "slurm", "broken"} <= set(registry.names())
    with pytest.raises(Exception, match=r"'broken' .* does not load"):
        registry.load("broken")
    with pytest.raises(Exception, match="there is no engine 'slrum'") as caught:
        registry.load("slrum")
    assert caught.value.hint == "did you mean slurm?"
    assert "slurm" in registry.all_options()
    assert registry.all_options()["broken"].model_validate({"any": 1}), "its fault is said where it is to be used"


def test_a_run_of_each_kind_of_role_is_planned_from_a_job():
    from yurt.engines.plan import plan
    from yurt.job import Job

    job = Job(
        name="j",
        command="train.py",
        env={"A": "1", "B": "1"},
        roles={"chief": 1, "worker": {"replicas": 2, "standard_server": True, "env": {"B": "2"}}, "ps": 1},
    )
    run = plan(job, "j-1", 5.0)
    assert [task.name for task in run.tasks] == ["chief/0", "worker/0", "worker/1", "ps/0"]
    assert [task.command for task in run.tasks] == [("python", "train.py"), None, None, ("python", "train.py")]
    assert run.tasks[1].env == {"A": "1", "B": "2"}
    assert (run.deciding, run.gang, run.strategy) == ("chief/0", tuple(t.name for t in run.tasks), "parameter-server")
    assert replace(run, run_id="x").training == ("chief/0", "worker/0", "worker/1")
