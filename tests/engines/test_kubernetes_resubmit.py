"""A TFJob that is lost with a pod is submitted again, counted once; by a table, and against an API server."""

from __future__ import annotations

import json
import threading
import time
from dataclasses import replace

import pytest

from tests.support.pods import Pods
from tests.support.runs import wait_until
from tests.support.scripted_api import ScriptedApi
from yurt.contract import names
from yurt.contract.spec import TaskSpec
from yurt.contract.state import (
    CLOSING,
    EXITED,
    FAILED,
    JOINED,
    JOINING,
    LOST,
    RUNNING,
    STARTED,
    Exit,
    Member,
    RunState,
    Verdict,
)
from yurt.engines.kubernetes.pod.api import Api, ApiError, in_cluster
from yurt.engines.kubernetes.pod.cluster import PodCluster, follow
from yurt.engines.kubernetes.pod.resubmit import Resubmission, lose_gang, note_rights
from yurt.engines.kubernetes.pod.tfjobs import COUNT, DELETE, SUBMIT, WAIT, WATCH, Step, Why, next_step, why_over
from yurt.kv.client import Store
from yurt.kv.run_store import RunStore
from yurt.kv.server import EmbeddedStore

INDEX = "training.kubeflow.org/replica-index"
FIRST = RunState.first(0.0)
AGAIN = replace(FIRST, generation=1, restarts=1)
MEMBER = {"worker/0": Member("worker/0", "a", "h:1", STARTED)}


def tfjob(name: str, *conditions: str, deleted: bool = False) -> dict:
    meta = {"name": name, "labels": {"yurt/run": "r"}} | (
        {"deletionTimestamp": "2026-12-01T00:00:09Z"} if deleted else {}
    )
    found = [{"type": each, "status": "True", "message": f"it {each.lower()}"} for each in conditions]
    return {"metadata": meta, "status": {"conditions": found}}


def pod(name: str, phase: str = "Running", role: str = "worker", **status) -> dict:
    deleted = {"deletionTimestamp": status.pop("deleted")} if "deleted" in status else {}
    return {
        "metadata": {"name": name, "labels": {"yurt/role": role, "yurt/run": "r", INDEX: name[-1]}, **deleted},
        "spec": {"nodeName": "node1"},
        "status": {"phase": phase, **status},
    }


def disrupted(reason: str) -> list[dict]:
    return [{"type": "DisruptionTarget", "status": "True", "reason": reason, "message": "because"}]


@pytest.mark.parametrize(
    ("state", "members", "tfjobs", "pods", "more", "step"),
    [
        (FIRST, {}, [], [], {}, WATCH),  # not submitted yet
        (FIRST, {}, [tfjob("r", "Created")], [], {}, WATCH),
        (replace(FIRST, phase=RUNNING), MEMBER, [tfjob("r", "Running")], [pod("p")], {}, WATCH),
        (replace(FIRST, phase=RUNNING), MEMBER, [tfjob("r", "Failed")], [pod("p")], {}, DELETE),
        (replace(FIRST, phase=RUNNING), MEMBER, [tfjob("r", "Succeeded", "Failed")], [], {}, DELETE),
        (replace(FIRST, phase=RUNNING), MEMBER, [tfjob("r", "Failed", deleted=True)], [pod("p")], {}, WAIT),
        (replace(FIRST, phase=RUNNING), MEMBER, [], [pod("p")], {"seen": 0}, WAIT),
        (replace(FIRST, phase=RUNNING), MEMBER, [], [pod("p")], {"seen": 0, "patient": False}, COUNT),
        (replace(FIRST, phase=RUNNING), MEMBER, [], [pod("p", "Failed"), pod("k", role="keeper")], {"seen": 0}, COUNT),
        (replace(FIRST, phase=RUNNING), MEMBER, [], [], {}, COUNT),  # a keeper that saw none
        (FIRST, {}, [], [], {"seen": 0}, COUNT),  # deleted before anybody came
        (AGAIN, {}, [], [], {"seen": 0}, SUBMIT),
        (AGAIN, {}, [], [], {}, SUBMIT),
        (AGAIN, MEMBER, [], [], {"seen": 0}, COUNT),  # an agent joined while it was ended
        (AGAIN, {}, [tfjob("r", deleted=True)], [], {}, SUBMIT),
        (AGAIN, {}, [tfjob("r", deleted=True), tfjob("r-1")], [pod("p")], {}, WATCH),
        (AGAIN, {}, [tfjob("r-1", "Failed")], [], {}, DELETE),
        (AGAIN, {}, [tfjob("r-1", deleted=True)], [], {}, COUNT),
        (replace(AGAIN, phase=RUNNING, restarts=2), {}, [], [], {"seen": 1}, WAIT),
        (FIRST.ended(Verdict(FAILED, "so"), 1.0, 0.0), MEMBER, [tfjob("r", "Failed")], [], {}, WATCH),
    ],
)  # fmt: skip
def test_what_is_to_be_done_with_the_tfjobs_of_a_run(state, members, tfjobs, pods, more, step):
    assert next_step("r", state, members, tfjobs, pods, **more).action == step


def test_a_pod_of_a_dead_node_is_not_waited_for():
    dead = pod("p", conditions=disrupted("DeletionByTaintManager"), deleted="2026-12-01T00:00:00Z")
    assert next_step("r", AGAIN, {}, [], [dead], seen=0) == Step(SUBMIT, "r-1")
    assert next_step("r", replace(AGAIN, restarts=7), {}, [], [dead], seen=5).name == "r-7", "numbers rise"


@pytest.mark.parametrize(
    ("pods", "words"),
    [
        ([pod("w0", deleted="2026-12-01T00:00:05Z"), pod("w1", deleted="2026-12-01T00:00:09Z")], "pod w0 on node1 was deleted"),
        (
            [pod("w0", deleted="2026-12-01T00:00:05Z"), pod("w1", deleted="2", conditions=disrupted("EvictionByEvictionAPI"))],
            "pod w1 on node1 was disrupted: EvictionByEvictionAPI (because)",
        ),
        (
            [pod("w0", "Failed", reason="Evicted", message="The node was low on resource: memory. ")],
            "pod w0 on node1: Evicted (The node was low on resource: memory.)",
        ),
        (
            [pod("w0", "Failed", containerStatuses=[{"state": {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}}])],
            "pod w0 on node1 ended with exit code 137 (OOMKilled)",
        ),
        ([pod("w0"), pod("k", role="keeper", deleted="2026-12-01T00:00:05Z")], "it failed"),
        ([pod("w0", deleted="2026-12-01T00:00:05Z"), pod("w1", deleted="2026-12-01T00:00:05Z")], "it failed"),
    ],
)  # fmt: skip
def test_the_pod_that_took_the_tfjob_with_it_is_named_if_it_can_be_told(pods, words):
    assert why_over(tfjob("r", "Failed"), pods).words == f"TFJob r is over: {words}"


def test_a_pod_that_is_gone_already_is_not_taken_for_another():
    of_three = {**tfjob("r", "Failed"), "spec": {"tfReplicaSpecs": {"Worker": {"replicas": 2}, "Chief": {}}}}
    pods = [pod("w0", deleted="2026-12-01T00:00:05Z"), pod("w1", deleted="2026-12-01T00:00:09Z")]
    assert why_over(of_three, pods) == Why("TFJob r is over: it failed")
    pods.append(pod("c0", deleted="2026-12-01T00:00:09Z"))
    assert why_over(of_three, pods).task == "worker/0"


@pytest.fixture
def runs(tmp_path):
    pods = Pods(tmp_path, way="tfjob", run_id="r")
    with EmbeddedStore(token=None) as server:
        store = RunStore(Store(server.address), pods.run)
        store.create()
        yield store


def put(runs: RunStore, phase: str, **members: tuple[str, Exit | None]) -> RunState:
    state = replace(RunState.first(time.time()), phase=phase)
    runs.swap(state, runs.read()[1])
    for task, (status, end) in members.items():
        runs.put_member(0, Member(task.replace("_", "/"), task, "h:1", status, exit=end))
    return state


def test_a_gang_that_is_lost_counts_once(runs):
    stopped = (EXITED, Exit(143, "stopped", 1.0))
    state = put(runs, RUNNING, worker_0=(STARTED, None), worker_1=stopped)
    after = lose_gang(runs, state, Why("TFJob r is over", "worker/1"))
    assert (after.generation, after.phase, after.restarts) == (1, JOINING, 1)
    assert after.causes[0].message == "worker/1 was lost: its agent is gone (TFJob r is over)"


def test_a_gang_of_servers_that_is_lost_counts_once_too(runs):
    tasks = (
        TaskSpec("worker", 0, None),
        TaskSpec("ps", 0, None),
        TaskSpec("chief", 0, None),
        TaskSpec("evaluator", 0, None),
    )
    runs = RunStore(runs.store, replace(runs.spec, strategy="parameter-server", tasks=tasks))
    state = put(runs, RUNNING, worker_0=(STARTED, None), ps_0=(STARTED, None), chief_0=(STARTED, None), evaluator_0=(STARTED, None))  # fmt: skip
    after = lose_gang(runs, state, Why("so"))
    assert (after.generation, after.restarts) == (1, 1)


def test_a_gang_that_never_came_counts_too_and_the_limit_holds(runs):
    state = put(runs, JOINING)
    for number in range(1, 4):
        state = lose_gang(runs, state, Why("TFJob r is gone"))
        assert (state.generation, state.restarts) == (number, number)
    verdict = lose_gang(runs, state, Why("TFJob r is gone")).verdict
    assert verdict.outcome == FAILED
    assert "TFJob r is gone" in verdict.message
    assert "the limit of 3 restarts is used up" in verdict.message


def test_a_run_that_may_not_restart_fails(runs):
    runs = RunStore(runs.store, replace(runs.spec, restart="never"))
    assert lose_gang(runs, put(runs, RUNNING, worker_0=(STARTED, None)), Why("so")).verdict.outcome == FAILED


def test_a_publisher_that_is_lost_ends_the_run(runs):
    runs = RunStore(runs.store, replace(runs.spec, output="s3://models/x"))
    finished = (EXITED, Exit(0, "exit", 1.0))
    state = put(runs, CLOSING, worker_0=finished, worker_1=finished)
    assert lose_gang(runs, state, Why("so")).verdict.outcome == "publish-failed"
    assert runs.member(0, "worker/0")[0].status == LOST


# Against an API server.


@pytest.fixture
def api():
    server = ScriptedApi()
    yield server
    server.close()


@pytest.fixture
def cluster(api, tmp_path):
    (tmp_path / "account").mkdir()
    (tmp_path / "account" / "token").write_text("one\n")
    return PodCluster(Api(api.address, str(tmp_path / "account")), "r", "ns")


@pytest.fixture
def following(cluster, runs):
    """Starts what a keeper starts; it ends with the run, or with the test."""
    threads, ended = [], threading.Event()

    def start(refused: list) -> threading.Thread:
        threads.append(follow_in_thread(cluster, runs, refused, ended))
        return threads[-1]

    yield start
    ended.set()
    cluster.wait = lambda: None
    for thread in threads:
        thread.join(0.1)


def follow_in_thread(cluster: PodCluster, runs: RunStore, refused: list, ended: threading.Event) -> threading.Thread:
    meta = {"name": "r", "labels": {"yurt/run": "r"}, "ownerReferences": [{"uid": "u"}]}
    resubmission = Resubmission(cluster, runs, {"kind": "TFJob", "metadata": meta, "spec": {"x": 1}})

    def over() -> bool:
        return ended.is_set() or runs.read()[0].verdict is not None

    thread = threading.Thread(target=follow, args=(cluster, resubmission.look, over, refused.append), daemon=True)
    thread.start()
    return thread


def test_a_lost_tfjob_is_deleted_counted_and_submitted_again(api, following, runs, tmp_path):
    api.put("tfjobs", tfjob("r", "Running"))
    api.put("pods", pod("r-worker-0"))
    put(runs, RUNNING, worker_0=(STARTED, None), worker_1=(STARTED, None))
    thread = following([])
    wait_until(lambda: ("GET", "tfjobs") in api.asked, 5)
    (tmp_path / "account" / "token").write_text("two\n")
    api.put("pods", pod("r-worker-1", deleted="2026-12-01T00:00:01Z", conditions=disrupted("EvictionByEvictionAPI")))
    api.put("tfjobs", tfjob("r", "Failed"))
    wait_until(lambda: "deletionTimestamp" in api.objects["tfjobs"]["r"]["metadata"], 5)
    time.sleep(1.5)
    assert list(api.objects["tfjobs"]) == ["r"], "its pods are not gone"
    for each in ("r-worker-0", "r-worker-1"):
        api.remove("pods", each)
    made = wait_until(lambda: api.objects["tfjobs"].get("r-1"), 10)
    assert made["spec"] == {"x": 1}
    assert made["metadata"] == {"name": "r-1", "labels": {"yurt/run": "r"}, "ownerReferences": [{"uid": "u"}]}
    state, _ = runs.read()
    assert (state.generation, state.restarts) == (1, 1)
    assert "pod r-worker-1 on node1 was disrupted: EvictionByEvictionAPI" in state.causes[0].message
    assert state.causes[0].task == "worker/1"
    assert api.tokens == {"Bearer one", "Bearer two"}
    api.remove("tfjobs", "r")
    runs.put_member(1, Member("worker/0", "b", "h:1", JOINED))
    api.remove("tfjobs", "r-1")  # by somebody's hand
    wait_until(lambda: "r-2" in api.objects["tfjobs"], 10)
    runs.change(lambda now: now.ended(Verdict(FAILED, "so"), 1.0, 0.0))
    api.put("tfjobs", tfjob("r-2", "Failed"))
    thread.join(10)
    assert not thread.is_alive()
    assert list(api.objects["tfjobs"]) == ["r-2"]


def test_a_quiet_run_asks_little(api, following, runs):
    api.put("tfjobs", tfjob("r", "Running"))
    put(runs, RUNNING, worker_0=(STARTED, None))
    following([])
    time.sleep(2.0)
    assert api.asked == [("GET", "tfjobs"), ("GET", "tfjobs")], "one list and one watch"


def test_what_is_forbidden_is_said_and_left_to_the_launcher(api, following, runs):
    api.put("tfjobs", tfjob("r", "Failed", deleted=True))
    put(runs, RUNNING, worker_0=(STARTED, None))
    api.forbidden = {"POST"}
    refused = []
    thread = following(refused)
    wait_until(lambda: refused, 10)
    thread.join(5)
    assert "cannot POST" in str(refused[0])
    note_rights(runs, str(refused[0]))
    noted = json.loads(runs.store.get(names.keeper_key("r")).value)
    assert (noted["may_submit"], "forbidden" in noted["why"]) == (False, True)
    assert runs.read()[0].restarts == 1


def test_an_api_server_that_is_away_is_asked_again(api, cluster, following):
    address = api.address
    api.close()
    with pytest.raises(ApiError, match="does not answer") as caught:
        cluster.tfjobs()
    assert caught.value.status is None
    refused = []
    following(refused)
    time.sleep(0.5)
    assert not refused, address


def test_what_still_wants_to_run_is_removed_after_the_end(api, cluster):
    def job(name: str, component: str, **status) -> dict:
        return {"metadata": {"name": name, "labels": {"app.kubernetes.io/component": component}}, "status": status}

    api.put("jobs", job("r-keeper", "keeper", active=1, ready=1))
    api.put("jobs", job("r-chief", "chief", conditions=[{"type": "Complete", "status": "True"}]))
    api.put("jobs", job("r-worker", "worker", active=2, ready=1))
    api.put("tfjobs", tfjob("r", "Failed"))
    api.put("tfjobs", tfjob("r-1", "Created"))
    cluster.clean(tfjobs=True)
    assert list(api.objects["jobs"]) == ["r-keeper", "r-chief"]
    assert list(api.objects["tfjobs"]) == ["r"]


def test_a_pod_without_an_account_has_no_cluster(tmp_path):
    variables = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "6443"}
    assert in_cluster(variables, str(tmp_path)) is None
    (tmp_path / "token").write_text("t")
    assert in_cluster(variables, str(tmp_path)) is not None
    assert in_cluster({}, str(tmp_path)) is None
    with pytest.raises(ApiError, match=r"ca\.crt cannot be read"):
        in_cluster(variables, str(tmp_path)).get("/x")
