"""What runs in a run's pods: the first program, a task's agent, the keeper. Real processes, on this machine."""

from __future__ import annotations

import ast
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.pods import Pods
from tests.support.runs import wait_until
from yurt.contract import names
from yurt.contract.packed import unpack_spec
from yurt.contract.state import EXITED, FAILED, LOST, RUNNING, STARTED, Beat, Cause, Exit, Member, RunState, Verdict
from yurt.contract.sweep import marked
from yurt.engines.kubernetes.pod import start
from yurt.engines.kubernetes.pod.absent import Absent
from yurt.engines.kubernetes.pod.last_words import LIMIT_BYTES, keepers
from yurt.engines.kubernetes.pod.place import completed
from yurt.engines.kubernetes.pod.state_file import StateFile
from yurt.engines.kubernetes.pod.stopped import Stopped
from yurt.kv.client import Store
from yurt.kv.run_store import RunStore
from yurt.kv.server import EmbeddedStore
from yurt.kv.state import State

SOURCE = Path(start.__file__)


@pytest.fixture
def make(tmp_path):
    made = []

    def one(**values) -> Pods:
        made.append(Pods(tmp_path, **values))
        return made[-1]

    yield one
    for pods in made:
        pods.end_all()
        wait_until(lambda pods=pods: not marked(f"{pods.run.run_id}/", prefix=True), 5)


def started(pods: Pods, generation: int = 0) -> dict[str, int]:
    """The processes of all tasks."""

    def all_started() -> dict[str, int] | None:
        try:
            members = pods.store.members(generation)
        except Exception:
            return None
        found = {task: member.pid for task, member in members.items() if member.status == STARTED}
        return found if len(found) == len(pods.run.tasks) else None

    return wait_until(all_started, 30, f"all in generation {generation}")


# The first program.


def test_the_first_program_has_nothing_that_an_old_python_does_not_read():
    tree = ast.parse(SOURCE.read_text())
    new = (ast.JoinedStr, ast.AnnAssign, ast.NamedExpr, ast.AsyncFunctionDef, ast.Nonlocal, ast.Starred)
    assert not [node for node in ast.walk(tree) if isinstance(node, new)]
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            assert node.returns is None
            assert not any(each.annotation for each in node.args.args)
            assert not node.args.kwonlyargs
        if isinstance(node, ast.Raise):
            assert node.cause is None


def test_a_python_that_is_too_old_is_said_in_one_sentence(tmp_path):
    found = shutil.which("python2") or shutil.which("python2.7")
    old = found if found and not subprocess.run([found, "-V"], capture_output=True, check=False).returncode else None
    if old is not None:
        command = [old, str(SOURCE)]
    else:
        code = f"import sys; sys.path.insert(0, {str(SOURCE.parent)!r}); import start; start.OLDEST = (9, 9); "
        command = [sys.executable, "-c", code + "sys.exit(start.main(sys.argv[1:]))"]
    done = subprocess.run([*command, "worker", str(tmp_path)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (78, "")
    assert "too old for Yurt's agent, which needs 3.11: see engines: kubernetes: python" in done.stdout
    assert done.stdout.count("\n") == 1
    assert (tmp_path / "termination-log").read_text() in done.stdout


def test_what_cannot_be_unpacked_is_said(make):
    pods = make()
    root = pods.pod("worker-0-first")
    (root / "code" / "payload.0").write_bytes(b"nothing")
    assert pods.start("worker").wait(20) == 78
    assert pods.said("worker-0").startswith("the pod of worker cannot be made ready:")
    for each in (root / "code").glob("payload.*"):
        each.unlink()
    assert pods.start("worker").wait(20) == 78
    assert "there is no payload in" in pods.said("worker-0")


def test_a_pod_that_is_told_to_go_while_it_is_made_ready_goes(make):
    """The first process of a container is deaf to signals that it has not asked for."""
    pods = make()
    root = pods.pod("worker-0-first")
    os.mkfifo(root / "run" / "fifo")
    (root / "run" / "run.json").unlink()
    (root / "run" / "run.json").symlink_to("fifo")
    process = pods.start("worker")
    wait_until((root / "local" / "lib").is_dir, 20)
    time.sleep(0.2)
    process.send_signal(signal.SIGTERM)
    assert process.wait(10) == 143


def test_an_agents_place_is_its_pod(make, tmp_path):
    pods = make()
    (tmp_path / "local" / "state").mkdir(parents=True)
    variables = {"YURT_POD": "r-1-worker-3", "YURT_POD_UID": "u", "YURT_NODE": "n", "YURT_INDEX": "3"}
    order = {
        **pods.order,
        "host": "r-{role}-{index}.r.ns.svc",
        "checkpoints": None,
        "roles": {"worker": {"threads": 2, "visible_gpus": "-1"}},
    }
    found = completed(order, "worker", str(tmp_path), variables)
    assert found["host"] == "r-worker-3.r.ns.svc"
    assert (found["task"], found["allocation"], found["placed_on"]) == ("worker/3", "u.0", "n/r-1-worker-3")
    assert (found["threads"], found["visible_gpus"], found["port"], found["observe"]) == (2, "-1", None, False)
    assert found["checkpoint_dir"] == str(tmp_path / "local" / "checkpoints")
    again = completed({**order, "host": "{pod}.ns.svc"}, "worker", str(tmp_path), variables)
    assert again["host"] == "r-1-worker-3.ns.svc", "a TFJob that was submitted again has a name of its own"
    assert again["allocation"] == "u.1", "a container that starts again has another agent"


# Runs.


def test_a_run_from_its_first_state_to_its_last_words(make):
    pods = make()
    tasks = [pods.start("worker", index) for index in range(2)]
    time.sleep(0.5)
    keeper = pods.start("keeper")
    started(pods)
    spec = unpack_spec(pods.store.store.get(names.spec_key(pods.run.run_id)).value)
    assert spec.run_id == pods.run.run_id
    assert Path(f"/proc/{keeper.pid}/status").read_text().split("VmRSS:")[1].split()[0].isdigit()
    (pods.checkpoints / "enough").touch()
    assert [task.wait(20) for task in tasks] == [0, 0]
    assert keeper.wait(20) == 0
    words = json.loads(pods.said("keeper-0"))
    assert words["verdict"]["outcome"] == "succeeded"
    assert (words["generation"], words["restarts"], words["done"]) == (0, 0, 2)
    assert words["members"]["worker/1"]["exit"]["code"] == 0
    assert words["members"]["worker/1"]["placed_on"] == f"node1/{pods.run.run_id}-worker-1"
    assert pods.said("worker-0") == "worker/0 finished"


@pytest.mark.parametrize(("way", "codes"), [("none", [0, 0]), ("tfjob", [1, 1])])
def test_a_failed_run_ends_its_pods_as_their_controller_understands_it(make, way, codes):
    pods = make(way=way, max_restarts=0)
    keeper = pods.start("keeper")
    tasks = [pods.start("worker", index) for index in range(2)]
    started(pods)
    (pods.checkpoints / "worker-1").write_text("7")
    assert [task.wait(20) for task in tasks] == codes
    assert keeper.wait(20) == 0
    assert json.loads(pods.said("keeper-0"))["verdict"]["message"] == "worker/1 failed with exit code 7"
    assert pods.said("worker-1") == "worker/1 failed with exit code 7"
    assert pods.said("worker-0").startswith("worker/0 was stopped: the run has ended (failed: worker/1 failed with")


@pytest.mark.parametrize("with_file", [True, False])
def test_a_keeper_that_was_killed_goes_on(make, with_file):
    """With its file: its container started again. Without: its pod is another."""
    pods = make()
    keeper = pods.start("keeper")
    tasks = [pods.start("worker", index) for index in range(2)]
    started(pods)
    (pods.checkpoints / "worker-1").write_text("9")
    running = started(pods, 1)
    keeper.kill()
    keeper.wait()
    keeper = pods.start("keeper", uid="first" if with_file else "second")
    assert started(pods, 1) == running
    state, _ = pods.store.read()
    assert (state.phase, state.generation, state.restarts) == (RUNNING, 1, 1)
    assert [cause.message for cause in state.causes] == ["worker/1 failed with exit code 9"]
    (pods.checkpoints / "enough").touch()
    assert [task.wait(20) for task in tasks] == [0, 0]
    assert keeper.wait(20) == 0
    words = json.loads(pods.said("keeper-0", "first" if with_file else "second"))
    assert (words["verdict"]["outcome"], words["restarts"]) == ("succeeded", 1)
    assert ("as it was before" in pods.log("keeper-0")) == with_file


def test_a_pod_that_is_told_to_go_is_no_success_and_another_takes_its_place(make):
    pods = make()
    keeper = pods.start("keeper")
    tasks = [pods.start("worker", index) for index in range(2)]
    started(pods)
    tasks[1].terminate()
    assert tasks[1].wait(10) == 143
    assert pods.said("worker-1") == "worker/1 was told to stop before its run had ended"
    tasks[1] = pods.start("worker", 1, uid="second")
    started(pods, 1)
    keeper.terminate()
    assert keeper.wait(5) == 143
    keeper = pods.start("keeper")
    (pods.checkpoints / "enough").touch()
    assert [task.wait(20) for task in tasks] == [0, 0]
    assert keeper.wait(20) == 0


def test_pods_of_a_tfjob_that_are_told_to_go_count_nothing(make):
    """One that is deleted takes all with it: whoever follows the TFJob counts once."""
    pods = make(way="tfjob")
    pods.start("keeper")
    tasks = [pods.start("worker", index) for index in range(2)]
    started(pods)
    for task in tasks:
        task.terminate()
    assert [task.wait(10) for task in tasks] == [143, 143]
    state, _ = pods.store.read()
    assert (state.generation, state.restarts) == (0, 0)
    rights = json.loads(pods.store.store.get(names.keeper_key(pods.run.run_id)).value)
    assert rights == {"may_submit": False, "why": "the keeper's pod has no account of the cluster"}


def test_the_only_pod_of_a_tfjob_that_is_made_again_goes_on(make):
    pods = make(way="tfjob", workers=1)
    keeper = pods.start("keeper")
    task = pods.start("worker")
    started(pods)
    task.terminate()
    assert task.wait(10) == 143
    task = pods.start("worker", uid="second")
    started(pods, 1)
    (pods.checkpoints / "enough").touch()
    assert (task.wait(20), keeper.wait(20)) == (0, 0)
    assert json.loads(pods.said("keeper-0"))["restarts"] == 1


def test_a_task_whose_store_never_comes_leaves(make):
    pods = make(start_deadline_s=1.0)
    assert pods.start("worker").wait(30) == 1
    assert "nobody has answered at the run's store" in pods.log("worker-0")
    assert "nobody answered at the run's store" in pods.said("worker-0")


def test_a_pod_that_is_not_ready_says_why_in_the_run(make):
    pods = make(max_restarts=3)
    for index in range(2):
        root = pods.pod(f"worker-{index}-first")
        start.unpack(str(root / "code"), str(root / "local"))
        ready = root / "local" / "lib" / "ready.json"
        ready.write_text(json.dumps({**json.loads(ready.read_text()), "requirements": "none.txt"}))
    keeper = pods.start("keeper")
    tasks = [pods.start("worker", index) for index in range(2)]
    assert [task.wait(30) for task in tasks] == [0, 0]
    assert keeper.wait(20) == 0
    verdict = json.loads(pods.said("keeper-0"))["verdict"]
    assert verdict["outcome"] == "failed"
    assert "could not start" in verdict["message"]


# Pieces.


def test_a_store_survives_in_its_file_in_its_order(tmp_path):
    one = State()
    file = StateFile(str(tmp_path / "store"), one, "beats/")
    assert not file.restore()
    one.put("b", b"\x00\xff")
    one.put("a", b"x" * 100_000)
    one.put("beats/a", b"1")
    one.put("b", b"\x00\xfe")
    file.write()
    stamp = (tmp_path / "store").stat().st_mtime_ns
    one.put("beats/a", b"2")
    file.write()
    assert (tmp_path / "store").stat().st_mtime_ns == stamp
    file.write(seldom=True)
    other = State(first_index=10**12)
    assert StateFile(str(tmp_path / "store"), other, "beats/").restore()
    entries = sorted(other.list(""), key=lambda entry: entry.modify_index)
    assert [(entry.key, entry.value[:2]) for entry in entries] == [("a", b"xx"), ("b", b"\x00\xfe"), ("beats/a", b"2")]
    assert all(entry.modify_index > 10**12 for entry in entries)
    (tmp_path / "store").write_bytes(b"half")
    assert not StateFile(str(tmp_path / "store"), State(), "beats/").restore()


def test_whoever_waits_on_a_store_that_was_here_before_is_answered_at_once():
    state = State()
    state.put("a", b"1")
    begin = time.monotonic()
    assert state.watch("a", 10**6, 30.0).index == 0
    assert time.monotonic() - begin < 5
    with EmbeddedStore("", token=None) as server, Store(f"http://[::1]:{server.port}") as six:
        assert Store(f"http://127.0.0.1:{server.port}").put("a", b"1")
        assert six.watch("a", 10**6, 30.0).index == 0
        assert time.monotonic() - begin < 5


@pytest.mark.parametrize("workers", [2, 200])
def test_the_last_words_fit(make, workers):
    pods = make(workers=workers)
    end = Exit(1, "exit", 5.0, last_lines=tuple("é" * 500 for _ in range(30)), message="m" * 3000)
    causes = tuple(Cause("worker/0", 0, "c" * 800, 1.0) for _ in range(20))
    verdict = Verdict(FAILED, "worker/1 failed" + "!" * 5000, "worker/1", end, hint="h" * 5000)
    state = replace(RunState.first(0.0), causes=causes, published={"ok": False, "message": "p" * 5000})
    members = {task.name: Member(task.name, "a", "h:1", EXITED, exit=end) for task in pods.run.tasks}
    beats = {"worker/0": Beat(1.0, {"text": "b" * 5000})}
    text = keepers(pods.run, state.ended(verdict, 1.0, 0.0), members, beats)
    assert len(text.encode()) <= LIMIT_BYTES
    words = json.loads(text)
    assert Verdict.from_json(words["verdict"]).outcome == FAILED
    assert words["verdict"]["message"].startswith("worker/1 failed")
    small = keepers(pods.run, RunState.first(0.0).ended(Verdict(FAILED, "so"), 1.0, 0.0), {}, {})
    assert json.loads(small)["verdict"]["message"] == "so"


@pytest.fixture
def runs(make):
    pods = make()
    with EmbeddedStore(token=None) as server:
        store = RunStore(Store(server.address), pods.run)
        store.create()
        yield store


def running(runs: RunStore, *tasks: str) -> RunState:
    cluster = {"worker": ["a:1", "b:2"]}
    state = replace(RunState.first(time.time()), phase=RUNNING, cluster=cluster, attempts={"worker/0": 0})
    runs.swap(state, runs.read()[1])
    for task in tasks:
        runs.put_member(0, Member(task, task, "a:1", STARTED))
    return state


def test_a_task_that_went_with_the_store_is_lost(runs):
    state = running(runs, "worker/0")
    patient = Absent(runs, patience_s=60.0, new_s=0.0)
    assert patient.look(state) == []
    runs.put_beat("worker/1", Beat(1.0))
    assert patient.look(state) == ["worker/1"], "an agent is there that remembers nothing"
    assert runs.member(0, "worker/1")[0].address == "b:2"
    after = runs.advance()
    assert (after.generation, after.restarts) == (1, 1)
    assert Absent(runs, 0.0, 0.0).look(after) == [], "a gang that joins may still come"


def test_a_task_that_has_finished_is_not_absent(runs):
    state = running(runs, "worker/0")
    runs.mark_done("worker/1", 0, 0)
    assert Absent(runs, 0.0, 0.0).look(state) == []


def test_a_run_that_nobody_submits_again_ends(runs, monkeypatch):
    monkeypatch.setattr("yurt.engines.kubernetes.pod.stopped._LAST_BEAT_S", 0.0)
    state = running(runs)
    end = Exit(143, "stopped", 1.0)
    for task in ("worker/0", "worker/1"):
        runs.put_member(0, Member(task, task, "a:1", EXITED, exit=end))
    stopped = Stopped(runs, give_up_s=0.2)
    assert not stopped.look(state)
    time.sleep(0.3)
    assert stopped.look(state)
    verdict = runs.read()[0].verdict
    assert (verdict.outcome, "nobody has submitted it again" in verdict.message) == ("launcher-error", True)


def test_a_stopped_task_whose_pod_is_made_again_is_lost(runs, monkeypatch):
    monkeypatch.setattr("yurt.engines.kubernetes.pod.stopped._LAST_BEAT_S", 0.0)
    state = running(runs, "worker/0")
    runs.put_beat("worker/1", Beat(1.0))
    runs.put_member(0, Member("worker/1", "old", "b:2", EXITED, exit=Exit(143, "stopped", 1.0)))
    stopped = Stopped(runs, give_up_s=60.0)
    assert not stopped.look(state)
    assert runs.advance().generation == 0
    runs.put_beat("worker/1", Beat(2.0))
    assert stopped.look(state)
    assert runs.member(0, "worker/1")[0].status == LOST
    assert runs.advance().generation == 1
