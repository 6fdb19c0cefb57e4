"""The rig of the tests is what they take it for: two nodes that see each other, that die and come back, and go without a trace."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.kubernetes import rig
from tests.support.runs import wait_until

SERVE = """
import socket
server = socket.create_server(("0.0.0.0", 2222))
server.accept()
"""
MEET = """
import json, os, socket, time
task = json.loads(os.environ["TF_CONFIG"])
me = socket.create_server(("0.0.0.0", 2222))
for host in task["cluster"]["worker"]:
    while True:
        try:
            socket.create_connection((host.split(":")[0], 2222)).close()
            break
        except OSError:
            time.sleep(0.2)
print("met", len(task["cluster"]["worker"]), flush=True)
time.sleep(3)  # so that the other one finds this one too
"""
CALL = """
import socket, time
while True:
    try:
        print(socket.create_connection(("serve.there", 2222)).getpeername()[0])
        break
    except OSError:
        time.sleep(0.2)
"""


def container(cluster, name, script):
    command = ["python3", "-c", script]
    return {"name": name, "image": cluster.python_image, "imagePullPolicy": "Never", "command": command}


def pod(cluster, name, node, script, **spec):
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": {
            "nodeName": node,
            "restartPolicy": "Never",
            "containers": [container(cluster, "main", script)],
            "terminationGracePeriodSeconds": 0,
            **spec,
        },
    }


def phase(cluster, namespace, name):
    return cluster.get("pod", name, "-n", namespace)["status"]["phase"]


def test_pods_on_two_nodes_find_each_other_by_a_headless_name(kubernetes_cluster, kubernetes_namespace):
    cluster, create = kubernetes_cluster, ("create", "-n", kubernetes_namespace, "-f", "-")
    here, there = cluster.nodes[:2]
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "there"},
        "spec": {"clusterIP": "None", "selector": {"app": "serve"}, "ports": [{"port": 2222}]},
    }
    cluster.kubectl(*create, content=service)
    cluster.kubectl(*create, content=pod(cluster, "serve", there, SERVE, hostname="serve", subdomain="there"))
    cluster.kubectl(*create, content=pod(cluster, "call", here, CALL))
    wait_until(lambda: phase(cluster, kubernetes_namespace, "call") == "Succeeded", 60, "the pods to meet")
    wait_until(lambda: phase(cluster, kubernetes_namespace, "serve") == "Succeeded", 20, "the end of the other pod")
    address = cluster.get("pod", "serve", "-n", kubernetes_namespace)["status"]["podIP"]
    assert cluster.kubectl("logs", "call", "-n", kubernetes_namespace).strip() == address


def test_the_operator_runs_a_tfjob_of_two_workers(training_operator, kubernetes_namespace):
    cluster = training_operator
    worker = {
        "replicas": 2,
        "restartPolicy": "Never",
        "template": {"spec": {"containers": [container(cluster, "tensorflow", MEET)]}},
    }
    job = {
        "apiVersion": "kubeflow.org/v1",
        "kind": "TFJob",
        "metadata": {"name": "meet"},
        "spec": {"tfReplicaSpecs": {"Worker": worker}},
    }
    cluster.kubectl("create", "-n", kubernetes_namespace, "-f", "-", content=job)

    def over():
        conditions = cluster.get("tfjob", "meet", "-n", kubernetes_namespace).get("status", {}).get("conditions") or []
        return {each["type"] for each in conditions if each["status"] == "True"} & {"Succeeded", "Failed"}

    assert wait_until(over, 90, "the end of the TFJob") == {"Succeeded"}
    assert cluster.kubectl("logs", "meet-worker-1", "-n", kubernetes_namespace).strip() == "met 2"


def test_with_the_operator_away_a_tfjob_is_refused(training_operator, kubernetes_namespace):
    job = {
        "apiVersion": "kubeflow.org/v1",
        "kind": "TFJob",
        "metadata": {"name": "away"},
        "spec": {"tfReplicaSpecs": {}},
    }
    create = ("create", "--dry-run=server", "-n", kubernetes_namespace, "-f", "-")
    with training_operator.no_operator(), pytest.raises(RuntimeError, match="failed calling webhook"):
        training_operator.kubectl(*create, content=job)


def test_a_dead_node_is_not_ready_and_comes_back(kubernetes_cluster, kubernetes_namespace):
    cluster = kubernetes_cluster
    create = ("create", "-n", kubernetes_namespace, "-f", "-")
    with cluster.dead_node(2) as dead:
        assert dead == "node2"
        assert cluster.nodes == ["node1"]
        cluster.kubectl(*create, content=pod(cluster, "waits", dead, "print('alive')"))
    assert cluster.nodes == ["node1", "node2"]
    wait_until(lambda: phase(cluster, kubernetes_namespace, "waits") == "Succeeded", 60, "what waited for the node")


def test_the_api_server_goes_and_comes_back(kubernetes_cluster, kubernetes_namespace):
    with kubernetes_cluster.own.no_api_server(), pytest.raises(RuntimeError, match="refused"):
        kubernetes_cluster.kubectl("get", "nodes")
    assert kubernetes_namespace in kubernetes_cluster.kubectl("get", "namespaces", "-o", "name")
    wait_until(lambda: len(kubernetes_cluster.nodes) == 2, 60, "the nodes")


RAISE = """
import os, signal, sys
from tests.support.kubernetes.rig import Rig
rig = Rig(sys.argv[1])
rig.up(1, owner=os.getpid())
os.kill(os.getpid(), signal.SIGKILL)
"""


def traces(of):
    """What a rig could leave on this machine: in mounts, interfaces, firewall rules, control groups and networks."""
    lines = Path("/proc/mounts").read_text().splitlines()
    for command in (["ip", "-brief", "link"], ["iptables-save"]):
        lines += subprocess.check_output(command, text=True).splitlines()
    lines += [str(each) for folder in ("sys/fs/cgroup", "run/netns") for each in Path("/", folder).glob("**/*")]
    words = (of.name, "KUBE-", "cni-")
    return {line for line in lines if any(word in line for word in words)}


def processes(text):
    found = []
    for each in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found += [each.parent.name] if text in each.read_text() else []
        except OSError:
            continue
    return found


def test_what_a_killed_test_run_leaves_goes_whole_with_the_next(kubernetes_cluster):
    assert kubernetes_cluster.own, "so that one is up beside it"
    left = rig.Rig(f"killed-{os.getpid()}")
    before = traces(left)
    done = subprocess.run([sys.executable, "-c", RAISE, left.name], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (-9, "")
    assert left.abandoned
    assert traces(left) > before
    assert processes(left.name)
    interface = left.control.link.interface
    assert (Path("/sys/class/net") / interface).exists()
    rig.sweep()
    assert traces(left) == before
    assert not (Path("/sys/class/net") / interface).exists()
    assert not processes(left.name)
    assert not left.folder.exists()
    assert len(kubernetes_cluster.nodes) == 2
