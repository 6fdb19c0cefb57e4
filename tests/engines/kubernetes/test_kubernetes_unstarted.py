"""Runs that do not start, or not at once: why is told while they wait, and at their end."""

from __future__ import annotations

import pytest

from tests.support.runs import wait_until


@pytest.mark.parametrize(
    ("changes", "code", "said"),
    [
        ({"image": "localhost/nobody-has-it:1"}, 3, "its image localhost/nobody-has-it:1 cannot be pulled"),
        ({"roles": {"worker": {"replicas": 2, "cpus": 50}}}, 3, "50"),
    ],
)
def test_what_does_not_start_is_named_at_the_deadline(runs, changes, code, said):
    done = runs.to_its_end(start_deadline=10, **changes)
    assert done.returncode == code, done.stdout + done.stderr
    assert said in done.stdout + done.stderr


def test_a_quota_is_named(runs):
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "few"}, "spec": {"hard": {"pods": "1"}}}
    runs.cluster.kubectl("create", "-n", runs.namespace, "-f", "-", content=quota)
    done = runs.to_its_end(start_deadline=10)
    assert done.returncode == 3, done.stdout + done.stderr
    assert "quota few" in done.stdout


def test_a_task_whose_node_comes_late_is_waited_for(runs):
    """The name of its pod leads nowhere until then."""
    options = {"roles": {"worker": {"node_selector": {runs.namespace: "here"}}}}
    run = runs.start(roles={"chief": 1, "worker": 1}, options=options)
    wait_until(lambda: "worker/0" in run.snapshot()["waiting"], 60, "a reason")
    wait_until(lambda: runs.namespace in run.snapshot()["waiting"]["worker/0"], 60, "the label among the reasons")
    node = runs.cluster.nodes[0]
    runs.cluster.kubectl("label", "node", node, f"{runs.namespace}=here")
    try:
        runs.started(run)
    finally:
        runs.cluster.kubectl("label", "node", node, f"{runs.namespace}-")
    runs.enough(run)
    assert run.wait() == 0, run.output
    assert run.state()["restarts"] == 0
