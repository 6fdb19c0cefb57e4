"""What the Docker engine sends, and what the daemon's words mean to it: no daemon is needed here."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from yurt.contract.spec import RunSpec, TaskSpec
from yurt.engines.base import AllocationState, Cleans, Engine, Looks, Place
from yurt.engines.docker import owner, render
from yurt.engines.docker.engine import DockerEngine
from yurt.engines.docker.ground import Ground
from yurt.engines.docker.ground import look as look_at
from yurt.engines.docker.options import DockerOptions
from yurt.engines.docker.recipe import recipe
from yurt.engines.docker.states import state_of
from yurt.errors import UsageError

GOLDEN = Path(__file__).parent / "golden" / "docker.json"
TASKS = (
    TaskSpec("chief", 0, ("python", "train.py", "--text", "a 'b' ${HOME} %{x}\n"), {"EPOCHS": "3"}, gpus=1),
    TaskSpec("worker", 0, None, {}, cpus=1.5, memory_bytes=2**30),
    TaskSpec("ps", 0, None, {}),
)
RUN = RunSpec(
    run_id="weather-abc123", job_name="weather", strategy="parameter-server", tasks=TASKS, restart="exit-code",
    max_restarts=3, success="chief", start_deadline_s=600.0, deadline_s=None, grace_s=30.0,
    output="file:///models", saves_to=None, submitted_at=0.0, image="tensorflow:2.21",
)  # fmt: skip
PLACE = Place(
    Path("/runs/weather-abc123"), Path("/agents/agent.pyz"), "http://172.18.0.1:8500", "token", (Path("/big"),)
)
GROUND = Ground(tuple(range(8)), ("0", "1"), 1000, 1000, (27, 999), "ada", "1000/4026531836/77/123")
OPTIONS = DockerOptions(volumes=("/data:/data:ro",))


def rendered(options=OPTIONS, ground=GROUND, **changes):
    return render.render(replace(RUN, **changes), PLACE, options, ground)


def host_config(request, position=0):
    return request["agents"][position]["container"]["HostConfig"]


def test_it_is_an_engine():
    engine = DockerEngine()
    assert isinstance(engine, Engine)
    assert isinstance(engine, Looks)
    assert isinstance(engine, Cleans)


def test_what_is_rendered_is_a_file_that_a_person_can_read():
    """After a wanted change: write what `text` is into the file, and read it. The run itself is in local.json."""
    request = DockerEngine().render(RUN, PLACE, OPTIONS, GROUND)
    assert request == rendered(), "render is pure"
    for agent in request["agents"]:
        assert RunSpec.from_json(agent["config"]["run"]) == RUN
        agent["config"]["run"] = RUN.run_id
    text = json.dumps(request, indent=1, sort_keys=True) + "\n"
    assert text == GOLDEN.read_text()


def test_the_token_is_in_nothing_that_the_daemon_keeps():
    for agent in rendered()["agents"]:
        assert "token" not in json.dumps(agent["container"])


def test_gpus_are_asked_for_by_id_or_else_by_number():
    assert host_config(rendered())["DeviceRequests"] == [{"Driver": "", "DeviceIDs": ["0"], "Capabilities": [["gpu"]]}]
    blind = rendered(ground=replace(GROUND, gpus=()))
    assert host_config(blind)["DeviceRequests"] == [{"Driver": "", "Count": 1, "Capabilities": [["gpu"]]}]
    assert host_config(blind, 2)["DeviceRequests"] == []
    shown = [agent["config"]["visible_gpus"] for agent in rendered()["agents"]]
    assert shown == [None, None, "-1"], "a container numbers its own from 0; who has none must see none"


def test_more_cpus_than_there_are_is_a_note_and_not_the_daemons_refusal():
    tasks = tuple(replace(task, cpus=6.0) for task in TASKS[:2])
    request = rendered(tasks=tasks, ground=replace(GROUND, cpus=(0, 1)))
    assert [host_config(request, n)["NanoCpus"] for n in (0, 1)] == [2 * 10**9] * 2
    assert "more was asked than there is" in request["notes"][0]


def test_ways_of_daemons():
    rootless = rendered(ground=replace(GROUND, rootless=True))
    assert rootless["agents"][0]["container"]["User"] == "0:0", "root there is the user here"
    assert host_config(rootless)["GroupAdd"] == []
    assert host_config(rendered(ground=replace(GROUND, remaps=True)))["UsernsMode"] == "host"
    assert host_config(rendered(ground=replace(GROUND, selinux=True)))["SecurityOpt"] == ["label=disable"]


def test_what_the_daemon_says_of_itself():
    ground = look_at({"NCPU": 2, "SecurityOptions": ["name=seccomp,profile=default", "name=rootless"]})
    assert (ground.rootless, ground.remaps, ground.selinux) == (True, False, False)
    assert (ground.uid, ground.gid) == (os.getuid(), os.getgid())


def test_networks():
    assert rendered()["network"]["Name"] == RUN.run_id
    for name, host in {"host": "127.0.0.1", "shared": "weather-abc123-chief-0"}.items():
        request = rendered(DockerOptions(network=name))
        assert request["network"] is None
        assert host_config(request)["NetworkMode"] == name
        assert request["agents"][0]["config"]["host"] == host
    elsewhere = rendered(DockerOptions(store_host="10.0.0.7"))
    assert elsewhere["agents"][0]["config"]["store"] == "http://10.0.0.7:8500"


def test_a_job_without_an_image_is_refused():
    with pytest.raises(UsageError, match="names no image"):
        rendered(image=None)


@pytest.mark.parametrize(
    ("options", "present", "runs"),
    [
        (DockerOptions(), ["python3", "python"], "python3"),
        (DockerOptions(), ["python3"], "python3"),
        (DockerOptions(), ["python"], "python"),
        (DockerOptions(python="/opt/my env/bin/python"), ["python3"], None),
        (DockerOptions(), [], None),
    ],
)
def test_how_a_container_finds_its_python(tmp_path, options, present, runs):
    """The shell's part, with what it runs played by scripts: in a real image only one of these can be true."""
    script = rendered(options)["agents"][0]["container"]["Entrypoint"][2].replace("/yurt/task", str(tmp_path))
    path = tmp_path / "path"
    path.mkdir()
    for name in present:
        (path / name).write_text(f"#!/bin/sh\necho {name} $@\n")
        (path / name).chmod(0o755)
    for name in ("mkdir", "ln"):
        (path / name).symlink_to(f"/bin/{name}")
    done = subprocess.run(["/bin/sh", "-c", script, "yurt", "-"], env={"PATH": str(path)}, check=False)
    log = (tmp_path / "log").read_text()
    if runs is None:
        assert (done.returncode, "yurt: the image has no " in log) == (127, True)
    else:
        assert log == f"{runs} -I -S /yurt/agent.pyz -\n"
        assert (tmp_path / "bin" / "python").exists() == ("python" not in present)


@pytest.mark.parametrize(
    ("status", "code", "state"),
    [
        ("created", None, "pending"), ("running", None, "running"), ("paused", None, "running"),
        ("exited", 0, "ended"), ("exited", 1, "ended"), ("exited", 127, "ended"), ("exited", 126, "ended"),
        ("exited", 137, "lost"), ("exited", 143, "lost"), ("dead", 1, "lost"), ("removing", None, "lost"), (None, None, "lost"),
    ],
)  # fmt: skip
def test_what_a_containers_state_means(status, code, state):
    assert state_of(status, code) is AllocationState(state)


def test_whose_launcher_is_dead():
    mine = owner.this_process()
    assert not owner.is_dead(mine)
    scope = mine.rpartition("/")[0].rpartition("/")[0]
    gone = subprocess.run(
        [sys.executable, "-c", "from yurt.engines.docker import owner; print(owner.this_process())"],
        capture_output=True, text=True, check=True,
    ).stdout.strip()  # fmt: skip
    assert gone.startswith(scope)
    assert owner.is_dead(gone)
    assert owner.is_dead(f"{scope}/{os.getpid()}/1"), "the same number, another process"
    for foreign in (f"99999/{scope.partition('/')[2]}/1/1", f"{scope.partition('/')[0]}/1/1/1", "", "nonsense"):
        assert not owner.is_dead(foreign), foreign


def test_another_content_has_another_name():
    one = recipe("weather", "tensorflow==2.21.0\n")
    assert one.name.startswith("yurt-weather:")
    assert one.name == recipe("weather", "tensorflow==2.21.0\n").name
    assert one.name != recipe("weather", "tensorflow==2.20.0\n").name
    assert one.name != recipe("weather", "tensorflow==2.21.0\n", base="python:3.12-slim").name
    assert recipe("weather", "", name="mine:1").name == "mine:1"
    assert one.context().read() == recipe("weather", "tensorflow==2.21.0\n").context().read()


def test_the_daemons_client_costs_those_nothing_who_do_not_use_it():
    code = "import sys; from yurt.engines import registry; registry.all_options(); assert 'docker' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
