"""What is lost in the middle of a run: processes, containers, pods, nodes, and parts of the cluster itself."""

from __future__ import annotations

import json
import signal
import time

import pytest

from tests.support.runs import wait_until


def test_a_killed_process_and_a_killed_container_start_the_gang_again(runs):
    run = runs.start()
    before = runs.started(run)
    runs.kill_process(run, "worker/1")
    again = runs.started(run, 1)
    assert again["worker/1"]["allocation"] == before["worker/1"]["allocation"], "the same agent"
    runs.signal_container(runs.pod_of(run, "worker/1"))
    brought_back = runs.started(run, 2)
    assert brought_back["worker/1"]["allocation"] != again["worker/1"]["allocation"]
    runs.enough(run)
    assert run.wait() == 0, run.output
    assert "restarts: 2 of 3" in run.output
    assert run.log("worker/1").count("enough") == 1


def test_a_deleted_pod_costs_one_restart(runs):
    run = runs.start()
    before = runs.started(run)
    runs.delete("pod", runs.pod_of(run, "worker/1"))
    again = runs.started(run, 1)
    assert again["worker/1"]["allocation"] != before["worker/1"]["allocation"]
    runs.enough(run)
    assert run.wait() == 0, run.output
    state = run.state()
    assert (state["generation"], state["restarts"]) == (1, 1)


def test_the_loss_of_the_keeper_disturbs_no_task(runs):
    run = runs.start()
    before = runs.started(run)
    [keeper] = runs.pods(run, "keeper")
    runs.delete("pod", keeper["metadata"]["name"])

    def another() -> bool:
        return any(
            pod["metadata"]["uid"] != keeper["metadata"]["uid"] and pod["status"]["phase"] == "Running"
            for pod in runs.pods(run, "keeper")
        )

    wait_until(another, 90, "another keeper")
    for _ in range(20):
        assert {member["task"] for member in run.snapshot()["members"]} == set(before), (
            "also while it does not know them yet"
        )
        time.sleep(0.1)
    runs.enough(run)
    assert run.wait() == 0, run.output
    state = run.state()
    assert (state["generation"], state["restarts"]) == (0, 0)
    assert {m["task"]: m["allocation"] for m in run.snapshot()["members"]} == {
        task: member["allocation"] for task, member in before.items()
    }
    for task in before:
        assert run.log(task).count("enough") == 1


def test_a_keeper_that_hangs_for_a_while_disturbs_no_task(runs):
    run = runs.start()
    runs.started(run)
    [keeper] = runs.pods(run, "keeper")
    name = keeper["metadata"]["name"]
    runs.signal_container(name, signal.SIGSTOP)
    time.sleep(5)
    runs.signal_container(name, signal.SIGCONT)
    runs.enough(run)
    assert run.wait() == 0, run.output
    assert run.state()["restarts"] == 0


def test_a_dead_node_is_replaced_and_its_return_disturbs_nobody(runs):
    """A task of the gang is on it, and the keeper too: nobody else has seen the run's state whole."""
    run = runs.start(options={"node_lost_after_s": 5})
    before = runs.started(run)
    node = runs.pods(run, "keeper")[0]["spec"]["nodeName"]
    assert node in {member["placed_on"].partition("/")[0] for member in before.values()}
    with runs.cluster.dead_node(int(node.removeprefix("node"))):
        again = runs.started(run, 1)
        assert node not in {member["placed_on"].partition("/")[0] for member in again.values()}
    runs.enough(run)
    assert run.wait() == 0, run.output
    assert run.state()["restarts"] == 1


def test_an_api_server_that_is_away_for_a_while_disturbs_no_task(runs):
    run = runs.start()
    before = runs.started(run)
    with runs.cluster.own.no_api_server():
        time.sleep(30)
        assert run.process.poll() is None, run.output
    # Soon after another outage a kubelet looks again only after up to a minute.
    wait_until(lambda: len(runs.cluster.nodes) == 2, 150, "the nodes")
    runs.enough(run)
    assert run.wait() == 0, run.output
    assert run.state()["restarts"] == 0
    for task in before:
        assert run.log(task).count("enough") == 1, "every line is there, and once"


@pytest.mark.parametrize("runs", ["tfjob"], indirect=True)
def test_an_operator_that_is_away_for_a_while_disturbs_no_task(runs):
    run = runs.start()
    runs.started(run)
    with runs.cluster.no_operator():
        runs.kill_process(run, "worker/1")
        runs.started(run, 1)
    runs.enough(run)
    assert run.wait() == 0, run.output
    assert run.state()["restarts"] == 1


@pytest.mark.parametrize("runs", ["tfjob"], indirect=True)
def test_with_an_account_for_its_keeper_a_tfjob_survives_a_deleted_pod_alone(runs):
    prepared = runs.folder.yurt("kubernetes", "prepare", "--yes", "--operator", "none", "-n", runs.namespace)
    assert prepared.returncode == 0, prepared.stdout + prepared.stderr
    run = runs.start("-d")
    assert run.wait() == 0, run.output
    runs.started(run)
    run.kill(json.loads((run.path / "host.json").read_text())["pid"])
    runs.delete("pod", runs.pod_of(run, "worker/1"))

    def again() -> bool:
        names = [pod["metadata"]["name"] for pod in runs.pods(run, "worker") if pod["status"]["phase"] == "Running"]
        return sorted(names) == [f"{run.run_id}-1-worker-{index}" for index in (0, 1)]

    wait_until(again, 120, "its second TFJob")
    assert runs.folder.yurt("status", run.run_id).returncode == 0
    runs.started(run, 1)
    runs.enough(run)
    found = runs.folder.yurt("wait", run.run_id)
    assert found.returncode == 0, found.stdout + found.stderr
