"""The agent's pieces, each on its own and on the real system."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from tests.contract.test_values import SPEC
from yurt.agent.environment import environment
from yurt.agent.memory import OutOfMemoryWatch
from yurt.agent.output import Output
from yurt.agent.peers import chosen, unreachable_peers
from yurt.agent.ports import HeldPort, greeting, meet
from yurt.agent.process import TaskProcess
from yurt.agent.verdicts import classify
from yurt.contract.config import AgentConfig
from yurt.contract.spec import TaskSpec
from yurt.contract.state import RunState
from yurt.contract.sweep import marked, sweep


def config(tmp_path: Path, **changes) -> AgentConfig:
    values = {
        "run": SPEC, "task": "worker/0", "allocation": "a", "store": "http://x:1", "token": "t", "host": "h",
        "placed_on": "p", "work_dir": str(tmp_path), "model_dir": "m", "checkpoint_dir": "c",
        "state_dir": str(tmp_path), "publisher": ("p",),
    }  # fmt: skip
    return AgentConfig(**{**values, **changes})


class TestPort:
    def test_a_held_port_is_given_to_nobody_else_but_may_be_bound_by_the_task(self):
        held = HeldPort()
        with socket.socket() as plain, pytest.raises(OSError, match="in use"):
            plain.bind(("", held.port))
        with socket.socket() as tensorflows:  # binds as TensorFlow's server does
            tensorflows.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            tensorflows.bind(("", held.port))
            tensorflows.listen()
        held.close()

    def test_it_says_who_it_is_and_stays_held_when_it_stops(self):
        held = HeldPort("127.0.0.1")
        hello = greeting("r", 0, "worker/0")
        held.listen(hello)
        assert meet(f"127.0.0.1:{held.port}", hello, 1) is None
        assert meet(f"127.0.0.1:{held.port}", greeting("other", 0, "worker/0"), 1) == "something else answers there"
        held.stop_listening()
        assert meet(f"127.0.0.1:{held.port}", hello, 1) == "Connection refused"
        with socket.socket() as plain, pytest.raises(OSError, match="in use"):
            plain.bind(("", held.port))
        with socket.socket() as tensorflows:
            tensorflows.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            tensorflows.bind(("", held.port))
            tensorflows.listen()
        held.close()

    def test_many_at_once_are_all_distinct(self):
        held = [HeldPort() for _ in range(200)]
        assert len({port.port for port in held}) == 200
        for port in held:
            port.close()


def test_an_unreachable_peer_is_named_with_its_address():
    run = replace(SPEC, tasks=(TaskSpec("worker", 0, ("a",)), TaskSpec("worker", 1, ("a",))))
    with HeldPortOf() as address:
        state = replace(RunState.first(0), cluster={"worker": ["127.0.0.1:1", address]})
        rows = unreachable_peers(run, "worker/0", state, 0.1)
    assert rows == (("worker/1", address, "Connection refused"),)


def test_a_name_that_does_not_resolve_yet_is_waited_for_four_times_as_long(monkeypatch):
    """A machine that is not ready for a while takes the names of its tasks along."""
    run = replace(SPEC, tasks=(TaskSpec("worker", 0, ("a",)), TaskSpec("worker", 1, ("a",))))
    resolve, known_at = socket.getaddrinfo, time.monotonic() + 0.6

    def late(host, *rest, **more):
        if host == "pod.somewhere":
            if time.monotonic() < known_at:
                raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
            host = "127.0.0.1"
        return resolve(host, *rest, **more)

    monkeypatch.setattr(socket, "getaddrinfo", late)
    held = HeldPort("127.0.0.1")
    held.listen(greeting(run.run_id, 0, "worker/1"))
    state = replace(RunState.first(0), cluster={"worker": ["127.0.0.1:1", f"pod.somewhere:{held.port}"]})
    assert unreachable_peers(run, "worker/0", state, 0.3) == ()
    known_at += 3600
    rows = unreachable_peers(run, "worker/0", state, 0.1)
    held.close()
    assert rows == (
        ("worker/1", f"pod.somewhere:{held.port}", "its name does not resolve (Name or service not known)"),
    )


class HeldPortOf:
    def __enter__(self) -> str:
        self.held = HeldPort("127.0.0.1")
        return f"127.0.0.1:{self.held.port}"

    def __exit__(self, *_: object) -> None:
        self.held.close()


def test_in_a_large_gang_connections_grow_with_it_not_with_its_square():
    tasks = tuple(TaskSpec("worker", i, ("a",)) for i in range(1000))
    run = replace(SPEC, tasks=tasks)
    state = replace(RunState.first(0), cluster={"worker": [f"h{i}:1" for i in range(1000)]})
    met = [chosen(run, task.name, state) for task in tasks]
    assert max(map(len, met)) <= 65
    assert {peer for peers in met for peer, _ in peers} == {task.name for task in tasks}
    small = replace(SPEC, tasks=tasks[:5])
    few = replace(RunState.first(0), cluster={"worker": [f"h{i}:1" for i in range(5)]})
    assert [peer for peer, _ in chosen(small, "worker/3", few)] == ["worker/4", "worker/0", "worker/1", "worker/2"]


class TestEnvironment:
    STATE = replace(RunState.first(0), cluster={"worker": ["10.0.0.1:1", "[fd00::2]:2"]}, attempts={"worker/0": 2})

    def made(self, tmp_path, base=None, own=None, strategy="none", **changes):
        run = replace(SPEC, strategy=strategy, tasks=(replace(SPEC.tasks[0], env=own or {}), SPEC.tasks[1]))
        return environment(config(tmp_path, run=run, **changes), self.STATE, "10.0.0.1:1", base or {})[0]

    def test_what_a_script_may_read(self, tmp_path):
        made = self.made(tmp_path)
        assert '"worker": ["10.0.0.1:1"' in made["TF_CONFIG"]
        assert (made["YURT_ROLE"], made["YURT_INDEX"], made["YURT_ATTEMPT"]) == ("worker", "0", "2")
        assert (made["YURT_MODEL_DIR"], made["PYTHONUNBUFFERED"], made["TF_CPP_MIN_LOG_LEVEL"]) == ("m", "1", "1")

    def test_the_job_wins_over_defaults_but_not_over_the_cluster(self, tmp_path):
        own = {"PYTHONUNBUFFERED": "0", "TF_CPP_MIN_LOG_LEVEL": "3", "TF_NUM_INTRAOP_THREADS": "7"}
        made = self.made(tmp_path, {"TF_CONFIG": "mine", "OMP": "1"}, own, threads=1)
        assert (made["PYTHONUNBUFFERED"], made["TF_CPP_MIN_LOG_LEVEL"], made["TF_NUM_INTRAOP_THREADS"]) == (
            "0",
            "3",
            "7",
        )
        assert made["TF_NUM_INTEROP_THREADS"] == made["OPENBLAS_NUM_THREADS"] == "1"
        assert made["TF_CONFIG"] != "mine"
        assert made["OMP"] == "1"

    def test_parameter_servers_get_a_second_thread_between_operations(self, tmp_path):
        made = self.made(tmp_path, threads=1, strategy="parameter-server")
        assert (made["TF_NUM_INTRAOP_THREADS"], made["TF_NUM_INTEROP_THREADS"]) == ("1", "2")

    def test_proxies_are_passed_by_for_every_peer(self, tmp_path):
        made = self.made(tmp_path, {"no_proxy": "mine.example", "http_proxy": "http://p:1"})
        assert made["no_proxy"] == "mine.example,10.0.0.1,127.0.0.1,fd00::2,localhost"
        assert made["NO_PROXY"] == made["no_grpc_proxy"] == "10.0.0.1,127.0.0.1,fd00::2,localhost"

    def test_the_agents_own_secrets_do_not_reach_the_script(self, tmp_path):
        made = self.made(tmp_path, {"YURT_HOME": "x", "NOMAD_TOKEN": "y", "CONSUL_HTTP_TOKEN": "z", "AWS_REGION": "r"})
        assert not {"YURT_HOME", "NOMAD_TOKEN", "CONSUL_HTTP_TOKEN"} & set(made)
        assert made["AWS_REGION"] == "r"

    def test_a_tf_config_too_long_for_the_environment_is_in_the_file_alone(self, tmp_path):
        state = replace(self.STATE, cluster={"worker": [f"host-number-{i}:40000" for i in range(8000)]})
        made, text = environment(config(tmp_path), state, "10.0.0.1:1", {})
        assert "TF_CONFIG" not in made
        assert len(text) > 128 * 1024
        subprocess.run(["true"], env=made, check=True)


class TestOutput:
    def pump(self, text: bytes, tmp_path) -> tuple[Output, bytes]:
        self.target = (tmp_path / "log").open("wb")
        output = Output(self.target.fileno(), str(tmp_path / "times"))
        read, write = os.pipe()
        thread = output.pump(read)
        with os.fdopen(write, "wb") as file:
            file.write(text)
        thread.join(5)
        os.close(read)
        return output, (tmp_path / "log").read_bytes()

    def test_everything_arrives_and_the_end_is_kept(self, tmp_path):
        text = b"".join(b"line %d\n" % i for i in range(200_000)) + b"no newline"
        output, got = self.pump(text, tmp_path)
        assert got == text
        assert output.last_lines(2) == ("line 199999", "no newline")
        assert (tmp_path / "times").read_text().count("\n") >= 1

    def test_the_agents_lines_never_tear_the_tasks(self, tmp_path):
        output, _ = self.pump(b"half", tmp_path)
        output.say("hello")
        assert (tmp_path / "log").read_bytes() == b"half\nyurt: hello\n"

    def test_progress_is_read_also_off_a_bar_that_is_not_finished(self, tmp_path):
        output, _ = self.pump(b"Epoch 1/2\n1/9 [>..] - loss: 0.5\b\b\b\b\b2/9 [=>.] - loss: 0.4", tmp_path)
        assert output.progress() == {"epoch": 1, "epochs": 2, "step": 2, "steps": 9, "loss": 0.4}

    def test_binary_rubbish_is_passed_on(self, tmp_path):
        rubbish = bytes(range(256)) * 100
        _, got = self.pump(rubbish, tmp_path)
        assert got == rubbish

    def test_a_reader_that_is_gone_does_not_stop_the_task(self):
        read, write = os.pipe()
        os.close(read)
        output = Output(write)
        output.say("nobody hears this")
        os.close(write)


CGROUP_FILES = [("5:memory:/a\n", "memory/a/memory.oom_control"), ("0::/a\n", "a/memory.events")]


@pytest.mark.parametrize(("cgroup", "file"), CGROUP_FILES)
def test_out_of_memory_is_seen_in_cgroups_of_both_versions(tmp_path, cgroup, file):
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/cgroup").write_text(cgroup)
    (tmp_path / "proc/vmstat").write_text("pgfault 5\noom_kill 3\n")
    counter = tmp_path / "cg" / file
    counter.parent.mkdir(parents=True)
    counter.write_text("under_oom 0\noom_kill 1\n")
    watch = OutOfMemoryWatch(str(tmp_path / "proc"), str(tmp_path / "cg"))
    assert not watch.grew()
    counter.write_text("under_oom 0\noom_kill 2\n")
    assert watch.grew()


@pytest.mark.parametrize(
    ("returncode", "stopped", "oom", "lines", "code", "reason"),
    [
        (0, False, False, (), 0, "exit"),
        (0, True, False, (), 0, "exit"),
        (3, False, False, ("a",), 3, "exit"),
        (-9, False, False, (), 137, "signal"),
        (-9, False, True, (), 137, "out-of-memory"),
        (137, False, True, (), 137, "out-of-memory"),
        (1, False, True, (), 1, "exit"),
        (-15, True, False, (), 143, "stopped"),
        (1, False, False, ("x UnknownError: Could not start gRPC server",), 1, "port-taken"),
    ],
)
def test_how_an_end_is_classified(returncode, stopped, oom, lines, code, reason):
    end = classify(returncode, stopped=stopped, out_of_memory=oom, lines=lines, attempt=4)
    assert (end.code, end.reason, end.attempt) == (code, reason, 4)


class TestProcess:
    def start(self, script: str, mark: str, ended: list) -> TaskProcess:
        return TaskProcess(
            [sys.executable, "-c", script],
            environment={**os.environ, "YURT_PROCESS": mark},
            folder="/",
            cpus=None,
            mark=mark,
            on_exit=lambda _, code: ended.append(code),
        )

    def test_nothing_is_left_of_a_process_that_ends(self):
        """Neither a child in its group nor one that made a session of its own."""
        ended: list[int] = []
        script = (
            "import subprocess, time\n"
            "subprocess.Popen(['sleep', '60'])\n"
            "subprocess.Popen(['sleep', '60'], start_new_session=True)\n"
        )
        self.start(script, "test/leaves-children", ended)
        wait_until(lambda: ended == [0])
        assert marked("test/leaves-children") == []

    def test_kill_takes_everything(self):
        ended: list[int] = []
        script = "import subprocess; subprocess.Popen(['setsid', 'sleep', '60']); subprocess.run(['sleep', '60'])"
        process = self.start(script, "test/killed", ended)
        wait_until(lambda: len(marked("test/killed")) >= 3)
        process.kill()
        wait_until(lambda: ended == [-9])
        assert marked("test/killed") == []

    def test_it_dies_with_its_agent(self):
        agent = (
            "import os, sys; sys.path.insert(0, 'src')\n"
            "from yurt.agent.process import TaskProcess\n"
            "import time\n"
            "TaskProcess(['sleep', '60'], environment={**os.environ, 'YURT_PROCESS': 'test/orphan'}, folder='/',\n"
            "            cpus=None, mark='test/orphan', on_exit=print)\n"
            "time.sleep(60)\n"
        )
        process = subprocess.Popen([sys.executable, "-c", agent])
        wait_until(lambda: len(marked("test/orphan")) == 1)
        process.send_signal(signal.SIGKILL)
        process.wait()
        wait_until(lambda: marked("test/orphan") == [])

    def test_a_command_that_is_not_there(self):
        with pytest.raises(FileNotFoundError):
            TaskProcess(["/no/such"], environment={}, folder="/", cpus=None, mark="x", on_exit=print)


def test_sweep_takes_a_whole_run_by_its_prefix():
    for task in ("worker/0", "worker/1"):
        subprocess.Popen(["sleep", "60"], env={**os.environ, "YURT_PROCESS": f"test-sweep/{task}"})
    assert sweep("test-sweep/", prefix=True) == 2
    wait_until(lambda: not marked("test-sweep/", prefix=True))


def wait_until(true, within_s=10.0):
    end = time.monotonic() + within_s
    while not true():
        assert time.monotonic() < end, "it never came to be"
        time.sleep(0.02)
