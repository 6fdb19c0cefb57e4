"""Why tasks do not start, on what an API server of Kubernetes 1.36 really said (golden/kubernetes_seen.json)."""

import copy
import json
from decimal import Decimal
from pathlib import Path

import pytest

from yurt.engines.base import AllocationState
from yurt.engines.kubernetes.client import KubernetesError
from yurt.engines.kubernetes.diagnosis import Around
from yurt.engines.kubernetes.events import Events
from yurt.engines.kubernetes.placing import asked, unplaced
from yurt.engines.kubernetes.quantities import in_words, quantity
from yurt.engines.kubernetes.reasons import why
from yurt.engines.kubernetes.refused_pods import refused
from yurt.engines.kubernetes.states import newest

SEEN = json.loads((Path(__file__).parent / "golden/kubernetes_seen.json").read_text())
NODES = SEEN["nodes"]


def around(name, **more):
    return Around(events=SEEN[name]["events"], jobs=SEEN[name]["jobs"], **more)


def said(name, task="worker/0", **more):
    found = why(task, newest(SEEN[name]["pods"]).get(task), around(name, **more))
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("name", "task", "hopeless", "reason"),
    [
        ("cpu", 0, False, "it has no node: 2 of 2 nodes have too little cpu: it asks for 64"),
        ("memory", 0, False, "it has no node: 2 of 2 nodes have too little memory: it asks for 900Gi"),
        ("gpu", 0, False, "it has no node: 2 of 2 nodes have too little nvidia.com/gpu: it asks for 1"),
        ("selector", 0, False, "2 of 2 nodes lack the labels disk=ssd, pool=training of its node selector"),
        ("anti", 2, False, "2 of 2 nodes have another task of the run (`spread: required`"),
        ("port", 2, False, "2 of 2 nodes have the port taken that it asks for"),
        ("noclaim", 0, False, "its claim nope does not exist"),
        ("claimclassless", 0, False, "names no storage class and the cluster has no default one"),
        ("claimbadclass", 0, False, "its claim badclass is not bound to a volume: there is no storage class nope"),
        (
            "pull",
            0,
            False,
            "its image registry.invalid/team/train:2 cannot be pulled: the node does not reach its registry",
        ),
        ("pull backs off", 0, False, "its image registry.invalid/setup:1 cannot be pulled: the node does not reach"),
        ("neverpull", 0, True, "its image localhost/nothing:1 is not on the node, and `image_pull_policy` is Never"),
        (
            "badimage",
            0,
            True,
            "its image Team/Train:2 is no name of an image: repository name (Train) must be lowercase",
        ),
        ("envmap", 0, False, "the config map nope that its variables come from does not exist"),
        ("envsecret", 0, False, "the secret nope that its variables come from does not exist"),
        ("envkey", 0, False, "the config map there has no key b"),
        ("mountmap", 0, False, 'its volume v cannot be mounted: configmap "nope" not found'),
        ("mountsecret", 0, False, 'its volume v cannot be mounted: secret "nope" not found'),
        ("hostpath", 0, False, "its volume v cannot be mounted: hostPath type check failed: /does/not/exist is not"),
        ("nonroot", 0, True, "its container must not run as root, and its image does"),
        ("initruns", 0, False, "its init container setup still runs"),
        ("gated", 0, False, "it waits until Kueue admits the run"),
        ("suspended", 0, False, "it is suspended"),
        ("scheduler", 0, False, "the scheduler volcano has not looked at it: does it run?"),
        ("preempting:vip", 0, False, "it has no node yet: pods of a lower priority on node"),
        ("account", 0, False, "its service account nope does not exist"),
        ("priority", 0, False, "its priority class nope does not exist"),
        ("runtime", 0, False, "its runtime class nvidia does not exist"),
        ("quota", 1, False, "the namespace's quota small is used up: it asks for pods=1, used pods=1 of pods=1"),
        ("quotacpu", 0, True, "the namespace's quota cpus is used up: it asks for requests.cpu=2"),
        ("quotanolimit", 0, True, "the namespace's quota cpus wants limits.memory and requests.cpu to be said"),
        ("restricted", 0, True, "say `engines: kubernetes: restricted: true`"),
        ("range", 0, True, "the namespace's limit range refuses it: maximum cpu usage per Container is 1"),
        ("hook", 0, False, "the cluster's webhook guard.example.com, which is asked about each pod, fails"),
        ("deadline", 0, True, "its Job was active longer than its deadline"),
    ],
)
def test_reason(name, task, hopeless, reason):
    found = said(name, f"worker/{task}")
    assert reason in found.reason
    assert found.hopeless is hopeless
    assert "\n" not in found.reason


def test_what_is_over_is_not_said_any_more():
    events = copy.deepcopy(SEEN["quota"]["events"])
    made = {**events[-1], "reason": "SuccessfulCreate", "message": "Created pod: quota-worker-1-abcde"}
    assert why("worker/1", None, Around(events=[*events, made], jobs=SEEN["quota"]["jobs"])) is None
    events = copy.deepcopy(SEEN["mountmap"]["events"])
    pod = SEEN["mountmap"]["pods"][0]
    pulling = {**events[-1], "reason": "Pulling", "message": "Pulling image"}
    found = why("worker/0", pod, Around(events=[*events, pulling]))
    assert found is not None
    assert found.reason == "its image is being pulled"


def test_a_job_that_has_failed_gives_no_pod_any_more():
    found = why("worker/0", None, around("oom"))
    assert found is not None
    assert (found.reason, found.hopeless) == ("its pods have failed as often as its Job allows", True)


def test_a_tfjob_that_has_failed_is_submitted_again():
    failed = [{"type": "Failed", "status": "True", "reason": "TFJobFailed", "message": "1 Worker replica(s) failed."}]
    owners = [{"metadata": {"name": "r"}, "status": {"conditions": failed}}]
    found = why("worker/0", None, Around(tfjobs=owners))
    assert (found.reason, found.hopeless) == ("r has failed: 1 Worker replica(s) failed.", False)
    owners.append({"metadata": {"name": "r-1"}, "status": {}})
    assert why("worker/0", None, Around(tfjobs=owners)) is None


@pytest.mark.parametrize("name", ["sidesleep", "port", "before:deleted"])
def test_where_nothing_is_wrong_nothing_is_said(name):
    assert why("worker/0", newest(SEEN[name]["pods"])["worker/0"], around(name)) is None
    assert why("worker/7", None, Around()) is None


def node(name, cpu, *, taints=(), **spec):
    return {
        "metadata": {"name": name},
        "spec": {"taints": list(taints), **spec},
        "status": {"allocatable": {"cpu": cpu}},
    }


def user(cpu, on, phase="Running"):
    container = {"name": "c", "resources": {"requests": {"cpu": cpu}}}
    return {"spec": {"nodeName": on, "containers": [container]}, "status": {"phase": phase}}


def test_the_largest_free_node_is_named():
    nodes = [node("big", "96"), node("small", "64500m"), node("off", "200", unschedulable=True)]
    pods = [user("90", "big"), user("500m", "small"), user("64", "small", "Succeeded")]
    text = said("cpu", nodes=nodes, pods=pods).reason
    assert text.endswith("it asks for 64, and the most that is free is 64 on small")
    assert said("cpu", nodes=nodes).reason.endswith("it asks for 64; the largest, big, has 96 when it is empty")
    text = said("cpu", nodes=[nodes[1], node("tiny", "2")], pods=[user("1250m", "small")]).reason
    assert text.endswith("and the most that is free is 63250m on small")
    assert said("cpu", nodes=NODES, pods=()).reason.endswith("and no node has as much: the largest, node1, has 2")
    assert said("gpu", nodes=NODES).reason.endswith("no node has any, is its device plugin missing?")


def test_taints_and_what_to_write():
    assert "see `tolerations`" in said("tainted:taint").reason
    found = said("tainted:taint", nodes=NODES).reason
    assert "1 of 2 nodes have a taint that it does not tolerate" in found
    assert "gpu=yes:NoSchedule" in found
    assert "{key: gpu, value: yes, effect: NoSchedule}" in found
    assert "1 of 2 nodes are cordoned" in found
    pod = copy.deepcopy(SEEN["tainted:taint"]["pods"][0])
    older = unplaced(pod, "0/1 nodes are available: 1 node(s) had untolerated taint {spot: }.", Around())
    assert older.reason.endswith("(spot); to go there: `tolerations: [{key: spot, operator: Exists}]`")
    away = unplaced(
        pod, "0/1 nodes are available: 1 node(s) had untolerated taint {node.kubernetes.io/unreachable: }.", Around()
    )
    assert away.reason == "it has no node: 1 of 1 nodes are not ready"


def test_several_causes_are_all_said():
    pod = newest(SEEN["lost:dead"]["pods"])["worker/0"]
    down = {"key": "node.kubernetes.io/unreachable", "effect": "NoSchedule"}
    found = why("worker/0", pod, Around(nodes=[node("node1", "2"), node("node2", "2", taints=[down])]))
    assert found is not None
    assert "1 of 2 nodes have another task of the run" in found.reason
    assert "1 of 2 nodes are not ready" in found.reason


@pytest.mark.parametrize(
    ("message", "words"),
    [
        ('failed to resolve reference "ghcr.io/a/b:1": ghcr.io/a/b:1: not found', "its registry has none of that name"),
        (
            'failed to resolve reference "docker.io/a/b:1": pull access denied, repository does not exist',
            "its registry refuses",
        ),
        ('Back-off pulling image "x"', "it is tried again"),
        ("no space left on device", "cannot be pulled: no space left on device"),
    ],
)
def test_images(message, words):
    pod = copy.deepcopy(SEEN["pull"]["pods"][0])
    pod["status"]["containerStatuses"][0]["state"]["waiting"] = {"reason": "ImagePullBackOff", "message": message}
    found = why("worker/0", pod, Around())
    assert found is not None
    assert words in found.reason


def test_a_webhook_that_says_no():
    found = refused('admission webhook "policy.example.com" denied the request: no owner label')
    assert found.hopeless
    assert found.reason == "the cluster's webhook policy.example.com refuses it: no owner label"


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("1500m", "1.5"),
        ("2Gi", 2 * 1024**3),
        ("1e3", 1000),
        ("12698620Ki", 12698620 * 1024),
        ("4", 4),
        (".5", "0.5"),
        ("3M", 3 * 10**6),
    ],
)
def test_quantities(text, number):
    assert quantity(text) == Decimal(number)


@pytest.mark.parametrize("text", ["", "two", "1Gb", "1 Gi", "0x10", "NaN"])
def test_no_quantities(text):
    with pytest.raises(ValueError, match="is no quantity"):
        quantity(text)


def test_quantities_in_words():
    assert in_words("cpu", Decimal("1.5")) == "1500m"
    assert in_words("memory", Decimal(12698620 * 1024)) == "12.1Gi"
    assert in_words("nvidia.com/gpu", Decimal(2)) == "2"
    assert in_words("ephemeral-storage", Decimal(512)) == "512"


def test_what_a_pod_asks_for():
    def container(cpu, **more):
        return {"resources": {"requests": {"cpu": cpu}}, **more}

    spec = {
        "containers": [container("1"), {"resources": {"limits": {"cpu": "500m"}}}],
        "initContainers": [container("3"), container("250m", restartPolicy="Always")],
    }
    assert asked({"spec": spec}, "cpu") == 3
    spec["initContainers"][0] = container("1")
    assert asked({"spec": spec}, "cpu") == Decimal("1.75")


class Cluster:
    """Answers lists, counts them, and forbids some."""

    def __init__(self, forbidden=(), **items):
        self.session = None
        self.asked = []
        self.forbidden = forbidden
        self.items = items

    def list(self, kind, namespace=None, **query):
        self.asked.append(kind.plural)
        if kind.plural in self.forbidden:
            raise KubernetesError("no", status=403)
        return {"items": self.items.get(kind.plural, [])}


class Pods:
    def __init__(self, *pods):
        self.found = list(pods)

    def pods(self):
        return self.found

    def keepers(self):
        return []


@pytest.fixture
def clock(monkeypatch):
    now = [1000.0]
    monkeypatch.setattr("yurt.engines.kubernetes.events.time.monotonic", lambda: now[0])
    return now


def events_of(cluster):
    found = Events(cluster, "ns", "r")
    found._client = cluster
    return found


def test_nobody_is_asked_while_all_is_well(clock):
    cluster = Cluster()
    events = events_of(cluster)
    for _ in range(100):
        events.explained(Pods(SEEN["before:deleted"]["pods"][0]), ["worker/0"])
        clock[0] += 1
    assert cluster.asked == []


def test_one_that_waits_is_asked_about_after_two_seconds_and_every_three(clock):
    cluster = Cluster(events=SEEN["mountmap"]["events"])
    events = events_of(cluster)
    pods = Pods(SEEN["mountmap"]["pods"][0])
    assert events.explained(pods, ["worker/0"])[0].reason is None
    clock[0] += 1.9
    events.explained(pods, ["worker/0"])
    assert cluster.asked == []
    clock[0] += 0.2
    (found,) = events.explained(pods, ["worker/0"])
    assert found.state is AllocationState.PENDING
    assert found.reason == 'its volume v cannot be mounted: configmap "nope" not found'
    for _ in range(20):
        clock[0] += 0.5
        events.explained(pods, ["worker/0"])
    assert cluster.asked == ["events"] * 4


def test_without_the_right_to_see_nodes_it_is_asked_once(clock):
    cluster = Cluster(forbidden=("nodes",), events=SEEN["cpu"]["events"])
    events = events_of(cluster)
    for _ in range(100):
        (found,) = events.explained(Pods(*SEEN["cpu"]["pods"]), ["worker/0"])
        clock[0] += 1
    assert cluster.asked.count("nodes") == 1
    assert "pods" not in cluster.asked
    assert found.reason == "it has no node: 2 of 2 nodes have too little cpu: it asks for 64"


def test_a_task_without_a_pod_is_told_by_its_job(clock):
    cluster = Cluster(events=SEEN["quota"]["events"], jobs=SEEN["quota"]["jobs"])
    events = events_of(cluster)
    pods = Pods(*SEEN["quota"]["pods"])
    events.explained(pods, ["worker/0", "worker/1"])
    clock[0] += 2.5
    first, second = events.explained(pods, ["worker/0", "worker/1"])
    assert first.reason is None
    assert (second.id, second.reason) == (
        "",
        "the namespace's quota small is used up: it asks for pods=1, used pods=1 of pods=1",
    )
    assert list(events.diagnoses) == ["worker/1"]
    assert cluster.asked == ["events", "jobs"]
