"""A task's output over pods, restarts and broken connections: nothing lost, nothing twice."""

import contextlib
import threading
import time
from dataclasses import asdict

import pytest

from tests.support.runs import wait_until
from yurt.engines.kubernetes.client import Client, KubernetesError
from yurt.engines.kubernetes.kinds import JOB, POD
from yurt.engines.kubernetes.logs import Cursor, TaskLog
from yurt.engines.kubernetes.pods import PodWatch
from yurt.engines.kubernetes.session import Unreachable, open_session
from yurt.engines.kubernetes.stamped import Place, Stamped
from yurt.engines.kubernetes.states import GONE

# Several lines with one stamp, an empty one, one of a node that counts its hours otherwise, and no end.
LINES = [
    ("2026-12-01T13:00:00.000000001Z", b"one\n"),
    ("2026-12-01T13:00:00.000000001Z", b"two\n"),
    ("2026-12-01T13:00:00.500000000Z", b"\n"),
    ("2026-12-01T13:00:00.500000000Z", b"\xff\x00 three\r\n"),
    ("2026-12-01T15:00:01.000000000+02:00", b"four\n"),
    ("2026-12-01T13:00:01.000000000Z", b"five\n"),
    ("2026-12-01T13:00:07.000000000Z", b"six"),
]
WHOLE = b"".join(text for _, text in LINES)


def given(lines):
    return b"".join(stamp.encode() + b" " + text for stamp, text in lines)


def since(lines, second):
    """As the kubelet does: from that second on."""
    return [each for each in lines if second is None or Place(each[0]).since >= second]


def test_stamps_come_off():
    stamped = Stamped(Place())
    assert stamped.feed(given(LINES)) + stamped.flush() == WHOLE
    assert stamped.place == Place("2026-12-01T13:00:07.000000000Z", 1, 3)


@pytest.mark.parametrize("cut", range(len(given(LINES)) + 1))
def test_a_stream_that_breaks_anywhere_is_gone_on_with(cut):
    first = Stamped(Place())
    data = first.feed(given(LINES)[:cut]) + first.flush()
    assert WHOLE.startswith(data)
    second = Stamped(first.place)
    stream = given(since(LINES, first.place.since))
    for start in range(0, len(stream), 5):
        data += second.feed(stream[start : start + 5])
    assert data + second.flush() == WHOLE
    assert not second.missing
    assert not second.complaint


def test_a_line_that_has_no_end_is_not_kept_back_for_ever():
    stamped = Stamped(Place())
    line = b"x" * 200_000
    stream = given([("2026-12-01T13:00:00.000000001Z", line)])
    data = b"".join(stamped.feed(stream[start : start + 1000]) for start in range(0, 150_000, 1000))
    assert len(data) > 80_000
    again = Stamped(stamped.place)
    assert data + again.feed(stream + b"\n") == line + b"\n"


def test_a_file_that_was_begun_anew_is_said():
    stamped = Stamped(Place("2026-12-01T13:00:00.500000000Z", 2, 9))
    assert stamped.feed(given(LINES[4:])) + stamped.flush() == b"four\nfive\nsix"
    assert stamped.missing


def test_what_the_kubelet_says_is_no_output():
    stamped = Stamped(Place())
    assert stamped.feed(b"unable to retrieve container logs for containerd://123") + stamped.flush() == b""
    assert stamped.complaint == "unable to retrieve container logs for containerd://123"


class FakeStream:
    def __init__(self, kubelet, lines, follow, breaks_after):
        self.kubelet, self.lines, self.follow, self.breaks_after = kubelet, lines, follow, breaks_after
        self.closed = threading.Event()

    def pieces(self):
        given_lines, sent = 0, 0
        while True:
            while given_lines < len(self.lines):
                piece = given([self.lines[given_lines]])
                given_lines += 1
                if self.breaks_after is not None and sent + len(piece) > self.breaks_after:
                    yield piece[: self.breaks_after - sent]
                    self.kubelet.error = self.kubelet.stays_away
                    raise Unreachable("the API server broke off")
                sent += len(piece)
                yield piece
            if self.closed.is_set():
                raise Unreachable("the connection was closed")
            if not self.follow or not self.kubelet.running:
                return
            time.sleep(0.005)

    def close(self):
        self.closed.set()


class Kubelet:
    """Containers by (pod, restart); `breaks` are the bytes after which each next stream breaks."""

    def __init__(self, **containers):
        self.containers = containers
        self.running = True
        self.restart = 0
        self.breaks = []
        self.error = self.stays_away = None
        self.uid = "u"
        self.asked = []

    def get(self, kind, name, namespace):
        return {"metadata": {"uid": self.uid}} if self.uid else None

    def follow_log(self, pod, container, query, namespace):
        assert container == "tensorflow"
        self.asked.append(query)
        if self.error:
            raise self.error
        restart = self.restart - (query.get("previous") == "true")
        lines = self.containers[f"{pod}{restart}"]
        second = query.get("sinceTime")
        kept = lines if second is None else since(lines, second)
        follow = query.get("follow", "true") == "true" and "previous" not in query
        return FakeStream(self, kept, follow, self.breaks.pop(0) if self.breaks else None)


def pod(state, *, uid="u", name="p", restart=0, made="2026-12-01T13:00:00Z", **more):
    states = {"running": {"running": {}}, "ended": {"terminated": {"exitCode": 0}}, "waits": {"waiting": {}}}
    status = {"name": "tensorflow", "restartCount": restart, "state": states[state], **more}
    meta = {"uid": uid, "name": name, "creationTimestamp": made}
    return {"metadata": meta, "status": {"containerStatuses": [status]}}


@pytest.fixture(autouse=True)
def hasty(monkeypatch):
    monkeypatch.setattr("yurt.engines.kubernetes.logs._PAUSE_S", 0.01)
    monkeypatch.setattr("yurt.engines.kubernetes.logs._END_S", 0.05)


@pytest.fixture
def logs_of():
    made = []

    def make(kubelet, cursor=None):
        made.append(TaskLog(kubelet, "ns", cursor))
        return made[-1]

    yield make
    for log in made:
        log.close()
    assert not [each for each in threading.enumerate() if each.name.startswith("log of")]


def read(log, size):
    data = b""

    def enough():
        nonlocal data
        data += log.read()
        return len(data) >= size

    wait_until(enough, 10, f"{size} bytes")
    return data


def test_nothing_is_asked_before_the_container_runs(logs_of):
    kubelet = Kubelet(p0=LINES)
    log = logs_of(kubelet)
    log.take(pod("waits"))
    assert log.read() == b""
    assert kubelet.asked == []


def test_a_running_container_is_followed_by_one_stream_and_drained_at_its_end(logs_of):
    kubelet = Kubelet(p0=list(LINES[:3]))
    log = logs_of(kubelet)
    log.take(pod("running"))
    assert read(log, 9) == b"one\ntwo\n\n"
    kubelet.containers["p0"] += LINES[3:6]
    assert read(log, 20) == b"\xff\x00 three\r\nfour\nfive\n"
    assert len(kubelet.asked) == 1
    kubelet.containers["p0"] += LINES[6:]
    kubelet.running = False
    log.take(pod("ended"))
    assert read(log, 3) == b"six"
    wait_until(lambda: log.read() == b"" and log.cursor.allocations == ["u.0"], 10, "the end")
    assert log.cursor.position == len(WHOLE)
    assert kubelet.asked[-1]["follow"] == "false"


def test_the_last_lines_of_an_ended_container_are_waited_for(logs_of):
    kubelet = Kubelet(p0=LINES)
    log = logs_of(kubelet)
    log.take(pod("ended"))
    assert log.read() != b""


def test_broken_streams(logs_of):
    kubelet = Kubelet(p0=LINES)
    kubelet.breaks = [10, 37, 40, 80, 100, 130]
    log = logs_of(kubelet)
    kubelet.running = False
    log.take(pod("ended"))
    assert read(log, len(WHOLE)) == WHOLE
    time.sleep(0.1)
    assert log.read() == b""


def test_another_process_goes_on_where_one_has_stopped(logs_of):
    kubelet = Kubelet(p0=LINES)
    data, cursor = b"", None
    kubelet.stays_away = Unreachable("away")
    for after in (40, 90, 120, 190):
        kubelet.breaks, kubelet.error = [after], None
        log = logs_of(kubelet, Cursor(**asdict(cursor)) if cursor else None)
        log.take(pod("running"))
        data += read(log, 1)
        log.close()
        cursor = log.cursor
        assert cursor.position == len(data)
    assert len(data) < len(WHOLE)
    log = logs_of(kubelet, Cursor(**asdict(cursor)))
    kubelet.running, kubelet.error = False, None
    log.take(pod("ended"))
    while more := log.read():
        data += more
    assert data == WHOLE
    last = logs_of(kubelet, Cursor(**asdict(log.cursor)))
    asked = len(kubelet.asked)
    last.take(pod("ended"))
    time.sleep(0.05)
    assert last.read() == b""
    assert len(kubelet.asked) == asked


def test_restarts_in_place(logs_of):
    kubelet = Kubelet(p0=LINES[:2], p1=LINES[2:4], p2=LINES[4:6])
    log = logs_of(kubelet)
    log.take(pod("running"))
    assert read(log, 8) == b"one\ntwo\n"
    kubelet.restart, kubelet.running = 2, False  # one was missed meanwhile, and another is before it
    log.take(pod("running", restart=2))
    data = read(log, len(WHOLE) - 11)
    assert data.startswith(b"yurt: the rest of the output of p is gone: it was started again before this was read\n")
    assert data.endswith(b"\n\xff\x00 three\r\nfour\nfive\n")
    assert any(query.get("previous") == "true" for query in kubelet.asked)


def test_a_second_pod_follows_the_first(logs_of):
    kubelet = Kubelet(p0=LINES[:2], q0=LINES[6:])
    kubelet.running = False
    log = logs_of(kubelet)
    log.take(pod("ended"))
    log.take(pod("ended", uid="v", name="q", made="2026-12-01T13:01:00Z"))
    assert read(log, 11) == b"one\ntwo\nsix"


def test_a_pod_that_is_gone_before_it_was_read(logs_of):
    kubelet = Kubelet(p0=LINES)
    kubelet.breaks = [100]
    log = logs_of(kubelet)
    log.take(pod("running"))
    data = read(log, 3)
    kubelet.error = KubernetesError("not found", status=404)
    log.take({**pod("running"), GONE: True})
    data += read(log, 1)
    while more := log.read():
        data += more
    text, _, last = data.rstrip(b"\n").rpartition(b"\n")
    if last.startswith(b"yurt:"):
        assert last == b"yurt: the rest of the output of p is gone: its pod is gone"
        assert WHOLE.startswith(text)
    else:
        assert data == WHOLE  # it was read before that


def test_another_pod_of_that_name_is_not_read_for_it(logs_of):
    kubelet = Kubelet(p0=LINES)
    kubelet.breaks = [40]
    kubelet.uid = "another"
    log = logs_of(kubelet)
    log.take(pod("running"))
    wait_until(lambda: b"its pod is gone" in log.read(), 10, "the line")
    assert len(kubelet.asked) == 1


def test_a_pod_on_a_dead_node_is_left_for_the_next(logs_of, monkeypatch):
    monkeypatch.setattr("yurt.engines.kubernetes.logs._SILENT_S", 0.2)
    kubelet = Kubelet(p0=LINES[:1], q0=LINES[1:2])
    log = logs_of(kubelet)
    dead = pod("running")
    log.take(dead)
    assert read(log, 4) == b"one\n"
    dead["metadata"]["deletionTimestamp"] = "2026-12-01T13:02:00Z"
    log.take(dead)
    time.sleep(0.3)
    assert log.read() == b""  # it may still come: nobody else has its task
    log.take(pod("running", uid="v", name="q", made="2026-12-01T13:01:00Z"))
    line = b"yurt: the rest of the output of p is gone: its node does not answer, and another pod has its task\n"
    assert read(log, len(line) + 4) == line + b"two\n"


def test_a_fault_that_lasts_is_raised_and_passes(logs_of, monkeypatch):
    monkeypatch.setattr("yurt.engines.kubernetes.logs._FAULT_S", 0.05)
    kubelet = Kubelet(p0=LINES)
    kubelet.error = KubernetesError("may not get pods/log", status=403)
    log = logs_of(kubelet)
    log.take(pod("running"))
    time.sleep(0.2)
    with pytest.raises(KubernetesError, match="pods/log"):
        log.read()
    kubelet.error = None
    kubelet.running = False
    log.take(pod("ended"))
    found = []

    def comes():
        try:
            found.append(log.read())
        except KubernetesError:
            return False
        return b"".join(found) == WHOLE

    wait_until(comes, 10, "all of it")


def test_what_nobody_takes_is_not_piled_up(logs_of, monkeypatch):
    monkeypatch.setattr("yurt.engines.kubernetes.logs._MOST_WAITING", 1000)
    lines = [(f"2026-12-01T13:00:00.{number:09d}Z", b"x" * 99 + b"\n") for number in range(1000)]
    kubelet = Kubelet(p0=lines)
    log = logs_of(kubelet)
    log.take(pod("running"))
    time.sleep(0.2)
    assert log._waiting_bytes <= 1100
    assert len(read(log, 100_000)) == 100_000


def job(name, *command, restart="Never"):
    labels = {"yurt/run": name, "yurt/role": "worker"}
    container = {"name": "tensorflow", "image": "localhost/yurt-test-python:1", "command": list(command)}
    container["imagePullPolicy"] = "IfNotPresent"
    spec = {"restartPolicy": restart, "terminationGracePeriodSeconds": 5, "containers": [container]}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": f"{name}-worker"},
        "spec": {
            "completions": 1,
            "parallelism": 1,
            "completionMode": "Indexed",
            "template": {"metadata": {"labels": labels}, "spec": spec},
        },
    }


@pytest.fixture
def cluster(kubernetes_cluster, kubernetes_namespace, monkeypatch):
    monkeypatch.setenv("KUBECONFIG", str(kubernetes_cluster.kubeconfig))
    return Client(open_session(None, kubernetes_namespace))


def collect(client, name, enough, meanwhile=lambda _: None):
    """All output of a job's task until `enough(output, pods)`."""
    watch, log, data = PodWatch(client, client.namespace, f"yurt/run={name}"), TaskLog(client, client.namespace), b""

    def step():
        nonlocal data
        for each in watch.by_task().get("worker/0", ()):
            log.take(each)
        more = log.read()
        data += more
        meanwhile(log)
        return not more and enough(data, watch.pods())

    try:
        wait_until(step, 120, f"the output of {name}")
        return data
    finally:
        watch.stop()
        log.close()
        client.delete(JOB, f"{name}-worker")
        wait_until(lambda: not client.list(POD)["items"], 60, "the pods to be gone")


def over(_, pods):
    return bool(pods) and all(each["status"]["phase"] == "Succeeded" for each in pods)


def test_twenty_thousand_lines_over_connections_that_break(cluster):
    script = "import sys\nfor i in range(20000): print('line', i, 'x' * (i % 90))\nsys.stdout.write('the end')"
    cluster.create(job("many", "python3", "-u", "-c", script))
    broken = []

    def meanwhile(log):
        with contextlib.suppress(AttributeError, OSError):  # it has just ended
            if len(broken) < 4:
                log._stream._response._connection.sock.shutdown(2)  # as a server or a net that goes away
                broken.append(log._place)

    data = collect(cluster, "many", over, meanwhile).decode()
    assert data == "".join(f"line {i} {'x' * (i % 90)}\n" for i in range(20000)) + "the end"
    assert broken


def test_restarts_in_place_on_a_cluster(cluster):
    script = "echo first; python3 -c 'print(\"z\" * 70000)'; echo last; exit 3"
    cluster.create(job("again", "/bin/sh", "-c", script, restart="OnFailure"))
    data = collect(cluster, "again", lambda data, _: data.count(b"last\n") >= 2)
    assert data[:70019] == b"first\n" + b"z" * 70000 + b"\nlast\nfirst\nz"


def test_a_deleted_pod_and_the_one_after_it(cluster):
    cluster.create(
        job("gone", "/bin/sh", "-c", "trap 'echo told; exit 143' TERM; echo here; while :; do sleep 0.1; done")
    )
    deleted = []

    def meanwhile(log):
        if not deleted and log.cursor.position:
            deleted.append(cluster.list(POD)["items"][0]["metadata"]["name"])
            cluster.delete(POD, deleted[0])

    data = collect(cluster, "gone", lambda data, _: data.count(b"here\n") >= 2, meanwhile)
    assert data == b"here\ntold\nhere\n"
