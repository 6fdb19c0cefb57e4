"""One watch for a whole run: what it holds, what it costs, and what it says while nobody answers."""

import queue
import threading
import time

import pytest

from tests.support.runs import wait_until
from yurt.engines.kubernetes.client import Client, Expired, KubernetesError
from yurt.engines.kubernetes.kinds import JOB, POD
from yurt.engines.kubernetes.pods import PodWatch
from yurt.engines.kubernetes.session import Unreachable, open_session
from yurt.engines.kubernetes.states import GONE


def pod(name, version=1, **status):
    labels = {"yurt/role": "worker", "batch.kubernetes.io/job-completion-index": name[-1]}
    meta = {"uid": name, "name": name, "resourceVersion": str(version), "labels": labels, "creationTimestamp": "t"}
    return {"metadata": meta, "status": status}


class FakeWatch:
    def __init__(self):
        self.events = queue.Queue()

    def __iter__(self):
        while (event := self.events.get()) is not None:
            if isinstance(event, Exception):
                raise event
            yield event

    def close(self):
        self.events.put(None)


class Api:
    """Lists `pods`; `watches` are those that were opened, with the version after which."""

    def __init__(self, *pods):
        self.session = None
        self.pods = list(pods)
        self.version = 10
        self.lists = 0
        self.watches = []
        self.refuses = None

    def list(self, kind, namespace, *, labels):
        self.lists += 1
        if self.refuses:
            raise self.refuses
        return {"items": list(self.pods), "metadata": {"resourceVersion": str(self.version)}}

    def watch(self, kind, version, namespace, *, labels):
        if self.refuses:
            raise self.refuses
        self.watches.append((version, FakeWatch()))
        return self.watches[-1][1]

    def send(self, kind, value):
        wait_until(lambda: self.watches, 10, "a watch")
        self.watches[-1][1].events.put({"type": kind, "object": value} if isinstance(kind, str) else kind)


@pytest.fixture
def watch_of(monkeypatch):
    monkeypatch.setattr("yurt.engines.kubernetes.pods._PAUSE_S", 0.01)
    monkeypatch.setattr("yurt.engines.kubernetes.pods._LONGEST_PAUSE_S", 0.02)
    made = []

    def make(api):
        made.append(PodWatch(api, "ns", "yurt/run=r"))
        made[-1]._lister = api
        return made[-1]

    yield make
    for watch in made:
        watch.stop()
    assert not [each for each in threading.enumerate() if each.name.startswith("pods ")]


def names(watch):
    return [("gone " if GONE in each else "") + each["metadata"]["name"] for each in watch.pods()]


def test_one_list_and_one_watch_hold_what_is(watch_of):
    api = Api(pod("a-0"))
    watch = watch_of(api)
    assert names(watch) == ["a-0"]
    api.send("ADDED", pod("b-1", 11))
    wait_until(lambda: names(watch) == ["a-0", "b-1"], 10)
    api.send("MODIFIED", pod("a-0", 12, phase="Running"))
    wait_until(lambda: watch.by_task()["worker/0"][0]["status"] == {"phase": "Running"}, 10)
    api.send("DELETED", pod("a-0", 13))
    wait_until(lambda: names(watch) == ["gone a-0", "b-1"], 10)
    watch.check()
    assert (api.lists, [version for version, _ in api.watches]) == (1, ["10"])


def test_it_says_when_something_changes(watch_of):
    api = Api()
    watch = watch_of(api)
    seen = threading.Event()
    watch.on_change = seen.set
    watch.check()
    seen.clear()
    api.send("ADDED", pod("a-0", 11))
    assert seen.wait(10)


def test_it_goes_on_where_it_was(watch_of):
    api = Api()
    watch = watch_of(api)
    watch.check()
    api.send("BOOKMARK", {"metadata": {"resourceVersion": "50"}})
    api.send(Unreachable("broken off"), None)
    wait_until(lambda: len(api.watches) == 2, 10, "another watch")
    assert [version for version, _ in api.watches] == ["10", "50"]
    assert api.lists == 1
    watch.check()


@pytest.mark.parametrize("error", [Expired("too old"), KubernetesError("too old", status=410)])
def test_too_old_a_version_means_another_list(watch_of, error):
    api = Api(pod("a-0"), pod("b-1"))
    watch = watch_of(api)
    watch.check()
    api.pods, api.version = [pod("b-1")], 99
    api.send(error, None)
    wait_until(lambda: len(api.watches) == 2, 10, "another watch")
    assert names(watch) == ["gone a-0", "b-1"]
    assert api.watches[-1][0] == "99"


def test_silence_is_said_and_passes(watch_of, monkeypatch):
    monkeypatch.setattr("yurt.engines.kubernetes.pods._BLINK_S", 0.1)
    api = Api(pod("a-0"))
    watch = watch_of(api)
    watch.check()
    api.refuses = Unreachable("no API server answers")
    api.send(Unreachable("broken off"), None)
    wait_until(lambda: watch.silent_since is not None, 10)
    time.sleep(0.15)
    with pytest.raises(Unreachable):
        watch.check()
    assert names(watch) == ["a-0"]
    api.refuses = None
    wait_until(lambda: watch.silent_since is None, 10)
    watch.check()


def test_a_refusal_is_said_at_once(watch_of):
    api = Api()
    api.refuses = KubernetesError("somebody may not list pods", status=403)
    watch = watch_of(api)
    with pytest.raises(KubernetesError, match="may not list pods"):
        watch.check()


def test_it_is_not_in_the_way_of_its_end(watch_of):
    api = Api()
    api.refuses = Unreachable("away")
    watch = watch_of(api)
    with pytest.raises(Unreachable):
        watch.check()
    watch.stop()
    assert watch_of(api).stop() is None  # that was never asked anything


def test_on_a_cluster(kubernetes_cluster, kubernetes_namespace, monkeypatch):
    monkeypatch.setenv("KUBECONFIG", str(kubernetes_cluster.kubeconfig))
    client = Client(open_session(None, kubernetes_namespace))
    labels = {"yurt/run": "r", "yurt/role": "worker"}
    container = {"name": "tensorflow", "image": kubernetes_cluster.python_image, "command": ["sleep", "600"]}
    spec = {"restartPolicy": "Never", "terminationGracePeriodSeconds": 0, "containers": [container]}
    template = {"metadata": {"labels": labels}, "spec": spec}
    many = {"completions": 3, "parallelism": 3, "completionMode": "Indexed", "template": template}
    client.create({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "r-worker"}, "spec": many})
    watch = PodWatch(client, kubernetes_namespace, "yurt/run=r")
    watch._lister = client
    before = client.requests

    def running():
        return sum(each["status"]["phase"] == "Running" and GONE not in each for each in watch.pods()) == 3

    wait_until(running, 90, "three pods")
    watch._watch._stream._response._connection.sock.shutdown(2)  # as a net that goes away
    client.delete(POD, watch.by_task()["worker/1"][0]["metadata"]["name"])
    wait_until(lambda: len(watch.by_task()["worker/1"]) == 2 and running(), 90, "another pod")
    assert GONE in watch.by_task()["worker/1"][0]
    assert client.requests - before <= 5  # a list, a watch, its successor, the deletion
    client.delete(JOB, "r-worker")
    wait_until(lambda: all(GONE in each for each in watch.pods()), 60, "the end of all")
    watch.stop()
    assert not [each for each in threading.enumerate() if each.name.startswith("pods ")]
