"""What the Nomad engine sends: a file that a person can read, and text that arrives letter for letter."""

from __future__ import annotations

import base64
import io
import json
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest

from yurt.contract.config import AgentConfig
from yurt.contract.spec import RunSpec, TaskSpec
from yurt.engines.base import Engine, Place
from yurt.engines.nomad.engine import NomadEngine
from yurt.engines.nomad.nodes import Cluster, Node
from yurt.engines.nomad.options import NomadOptions
from yurt.engines.nomad.quoting import in_config, template
from yurt.engines.nomad.render import PAYLOAD, render, with_payload
from yurt.engines.nomad.room import room_for
from yurt.engines.travel.payload import payload
from yurt.errors import EngineError, UsageError
from yurt.launcher.agent_zip import agent_zip

#: What this engine decides in an agent's configuration.
SHOWN = ("store", "token", "beat_s", "silent_after_s", "store_lost_s", "python_path_first", "threads")
GOLDEN = Path(__file__).parent / "golden"
NASTY = "a 'b' \"c\" ${HOME} $${x} %{y} %%{z} {{ env }} <<<~ $$ \\n\n~>>> ü"
TASKS = (
    TaskSpec("chief", 0, ("python", "train.py", "--text", NASTY), {"EPOCHS": "3"}),
    TaskSpec("worker", 0, None, {}, cpus=1),
    TaskSpec("worker", 1, None, {}, cpus=1),
    TaskSpec("ps", 0, None, {}, memory_bytes=2**30),
)
RUN = RunSpec(
    run_id="weather-abc123", job_name="weather", strategy="parameter-server", tasks=TASKS, restart="exit-code",
    max_restarts=3, success="chief", start_deadline_s=600.0, deadline_s=None, grace_s=30.0,
    output="s3://models/weather", saves_to=None, submitted_at=0.0,
)  # fmt: skip
PLACE = Place(Path("/runs/weather-abc123"), Path("/agents/agent.pyz"), "http://127.0.0.1:8500", "token")


def node(name: str, **changes: object) -> Node:
    drivers = frozenset({"raw_exec", "exec"})
    plain = Node(name, name, "dc1", "ready", eligible=True, cpu_mhz=8000, cores=4, memory_mb=16000, drivers=drivers)
    return replace(plain, **changes)


CLUSTER = Cluster(tuple(node(f"n{number}") for number in range(4)), "1.6.1")


@pytest.fixture(autouse=True)
def no_cluster(monkeypatch):
    for name in ("NOMAD_ADDR", "NOMAD_TOKEN", "NOMAD_NAMESPACE", "NOMAD_REGION"):
        monkeypatch.delenv(name, raising=False)


def test_it_is_an_engine():
    assert isinstance(NomadEngine(), Engine)


def test_what_is_rendered_is_a_file_that_a_person_can_read():
    """After a wanted change: write what `rendered` is into the file, and read it."""
    request = render(RUN, PLACE, NomadOptions(), CLUSTER)
    shown = json.loads(json.dumps(request))
    for group in shown["job"]["TaskGroups"]:
        start, order, packed = group["Tasks"][0]["Templates"]
        start["EmbeddedTmpl"] = start["EmbeddedTmpl"].splitlines()[0]  # the script is a file of its own
        order["EmbeddedTmpl"] = json.loads(order["EmbeddedTmpl"])
        config = order["EmbeddedTmpl"]["config"]
        order["EmbeddedTmpl"]["config"] = {key: config[key] for key in SHOWN}
        assert packed["EmbeddedTmpl"] == PAYLOAD
    rendered = json.dumps(shown, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
    assert rendered == (GOLDEN / "nomad.json").read_text()
    assert request == render(RUN, PLACE, NomadOptions(), CLUSTER), "render is pure"


def test_every_option_has_its_place():
    options = NomadOptions.model_validate(
        {
            "driver": "exec",
            "python": "/venv/bin/python",
            "datacenters": ["eu", "us"],
            "region": "west",
            "namespace": "ml",
            "node_pool": "gpu",
            "priority": 70,
            "share": True,
            "constraints": [{"attribute": "${node.class}", "value": "big"}],
            "affinities": [{"attribute": "${attr.cpu.arch}", "value": "amd64", "weight": -20}],
            "volumes": {"data": {"source": "training", "path": "/data", "read_only": True}},
            "consul": "http://10.0.0.1:8500",
            "host": "${attr.unique.platform.aws.local-ipv4}",
            "shared_folder": "/mnt/yurt",
            "disk_mb": 600,
            "meta": {"team": "weather"},
            "config": {"no_pivot_root": True},
        }
    )
    job = render(RUN, PLACE, options, CLUSTER)["job"]
    assert (job["Region"], job["Namespace"], job["NodePool"]) == ("west", "ml", "gpu")
    assert (job["Datacenters"], job["Priority"], job["Meta"]["team"]) == (["eu", "us"], 70, "weather")
    assert job["Constraints"] == [{"LTarget": "${node.class}", "Operand": "=", "RTarget": "big"}], "no distinct_hosts"
    assert job["Affinities"][0]["Weight"] == -20
    group = job["TaskGroups"][0]
    task = group["Tasks"][0]
    assert group["Volumes"]["data"] == {"Name": "data", "Type": "host", "Source": "training", "ReadOnly": True}
    assert task["VolumeMounts"] == [{"Volume": "data", "Destination": "/data", "ReadOnly": True}]
    assert task["Config"]["command"] == "/venv/bin/python"
    assert task["Config"]["no_pivot_root"] is True
    assert task["Env"]["YURT_HOST"] == "${attr.unique.platform.aws.local-ipv4}"
    assert task["LogConfig"]["MaxFiles"] * task["LogConfig"]["MaxFileSizeMB"] < group["EphemeralDisk"]["SizeMB"] == 600
    order = json.loads(task["Templates"][1]["EmbeddedTmpl"])
    assert order["checkpoints"] == "/mnt/yurt/weather-abc123/checkpoints"
    config = AgentConfig.from_json(order["config"])
    assert (config.store, config.python_path_first) == ("http://10.0.0.1:8500", "/venv/bin")


def test_a_python_in_a_volume_is_started_by_a_program_that_the_chroot_has():
    options = {"driver": "exec", "volumes": {"tf": {"source": "tf", "path": "/opt/tf"}}}
    for python, command in [("/opt/tf/bin/${x}", "/usr/bin/env"), ("/opt/tf2/bin/python", "/opt/tf2/bin/python")]:
        job = render(RUN, PLACE, NomadOptions.model_validate({**options, "python": python}), CLUSTER)["job"]
        config = job["TaskGroups"][0]["Tasks"][0]["Config"]
        assert config["command"] == command
        assert config["args"][:-3] == (["/opt/tf/bin/$${x}"] if command == "/usr/bin/env" else [])


def test_raw_exec_has_no_volumes():
    options = NomadOptions.model_validate({"volumes": {"data": {"source": "data", "path": "/data"}}})
    with pytest.raises(UsageError, match="raw_exec has no volumes"):
        render(RUN, PLACE, options, CLUSTER)


def test_a_gang_without_a_shared_folder_is_told_what_that_means():
    gang = replace(RUN, strategy="multi-worker-mirrored", tasks=tuple(t for t in TASKS if t.role != "ps"))
    told = [
        any("checkpoint folder of its own" in note for note in render(run, PLACE, options, CLUSTER)["notes"])
        for run, options in [
            (gang, NomadOptions()),
            (gang, NomadOptions(shared_folder="/mnt")),
            (replace(gang, restart="never"), NomadOptions()),
            (RUN, NomadOptions()),
        ]
    ]
    assert told == [True, False, False, False]


def test_every_group_says_itself_when_it_is_started_again():
    for group in render(RUN, PLACE, NomadOptions(), CLUSTER)["job"]["TaskGroups"]:
        assert group["RestartPolicy"]["Mode"] == "fail"
        assert group["RestartPolicy"]["Attempts"] == 3
        assert group["ReschedulePolicy"] == {"Attempts": 0, "Unlimited": False}
        task = group["Tasks"][0]
        assert (task["KillSignal"], task["KillTimeout"]) == ("SIGTERM", 30_000_000_000), "as much as clients allow"


def test_text_of_users_is_in_no_place_that_nomad_interpolates():
    job = render(RUN, PLACE, NomadOptions(), CLUSTER)["job"]
    for group in job["TaskGroups"]:
        task = group["Tasks"][0]
        assert "HOME" not in json.dumps([task["Env"], task["Config"], job["Meta"]])
        order = task["Templates"][1]
        assert order["LeftDelim"] not in order["EmbeddedTmpl"]
        command = AgentConfig.from_json(json.loads(order["EmbeddedTmpl"])["config"]).run.tasks[0].command
        assert command == TASKS[0].command, "letter for letter"


@pytest.mark.parametrize(("text", "left"), [("a", "<<<~"), ("<<<~", "<<<~~"), ("<<<~~~ b", "<<<~~~~")])
def test_a_template_has_delimiters_that_its_text_has_not(text, left):
    assert template(text, "local/x")["LeftDelim"] == left


def test_a_literal_in_a_drivers_configuration():
    assert in_config("${HOME} $$ %{x} {{ }} $${y}") == "$${HOME} $$ %%{x} {{ }} $$${y}"


def test_the_whole_node_is_asked_for_as_large_as_enough_nodes_are():
    run = replace(RUN, tasks=TASKS[:1])
    job = render(run, PLACE, NomadOptions(), Cluster((node("small", memory_mb=512, cpu_mhz=500), node("big"))))["job"]
    assert job["TaskGroups"][0]["Tasks"][0]["Resources"] == {"CPU": 8000, "MemoryMB": 16000}
    two = replace(RUN, tasks=(TASKS[0], TaskSpec("worker", 0, ("a",))))
    job = render(two, PLACE, NomadOptions(), Cluster((node("small", memory_mb=512, cpu_mhz=500), node("big"))))["job"]
    assert job["TaskGroups"][0]["Tasks"][0]["Resources"] == {"CPU": 500, "MemoryMB": 512}


def test_numbers_of_the_job_win():
    run = replace(RUN, tasks=(TaskSpec("worker", 0, ("a",), cpus=1.5, memory_bytes=1_000_000_000, gpus=2),))
    resources = render(run, PLACE, NomadOptions(), CLUSTER)["job"]["TaskGroups"][0]["Tasks"][0]["Resources"]
    assert resources == {"CPU": 3000, "MemoryMB": 954, "Devices": [{"Name": "nvidia/gpu", "Count": 2}]}


def test_docker_needs_an_image():
    with pytest.raises(UsageError, match="needs an image"):
        render(RUN, PLACE, NomadOptions(driver="docker"), CLUSTER)
    job = render(replace(RUN, image="tf:1"), PLACE, NomadOptions(driver="docker"), CLUSTER)["job"]
    config = job["TaskGroups"][0]["Tasks"][0]["Config"]
    assert (config["image"], config["network_mode"]) == ("tf:1", "host")


def test_without_a_cluster_it_still_renders_and_says_what_it_does_not_know(monkeypatch):
    monkeypatch.setenv("NOMAD_ADDR", "http://127.0.0.1:1")
    engine = NomadEngine()
    request = engine.render(RUN, PLACE, NomadOptions(), engine.facts(NomadOptions()))
    assert "nothing is known of the cluster's nodes" in request["notes"][0]


def test_what_travels_is_the_agent_the_publisher_and_the_jobs_files(tmp_path, monkeypatch):
    monkeypatch.setenv("YURT_HOME", str(tmp_path / "home"))
    files = tmp_path / "files"
    (files / "sub").mkdir(parents=True)
    (files / "train.py").write_text(NASTY)
    (files / "sub" / "run.sh").write_text("x")
    (files / "sub" / "run.sh").chmod(0o755)
    text = payload(agent_zip(), files, room_for(1))
    assert text == payload(agent_zip(), files, room_for(1)), "the same every time"
    with tarfile.open(fileobj=io.BytesIO(base64.b64decode(text))) as tar:
        names = tar.getnames()
        assert tar.extractfile("work/train.py").read().decode() == NASTY
        assert tar.getmember("work/sub/run.sh").mode == 0o755
    assert {"lib/yurt/agent/__main__.py", "lib/yurt/storage/publish.py", "lib/yurt/errors.py"} <= set(names)
    job = with_payload(render(RUN, PLACE, NomadOptions(meta={"x": PAYLOAD}), CLUSTER)["job"], text)
    assert job["Meta"]["x"] == PAYLOAD
    for group in job["TaskGroups"]:
        assert group["Tasks"][0]["Templates"][2]["EmbeddedTmpl"] == f'<<<~ base64Decode "{text}" ~>>>'


def test_files_that_are_too_large_to_travel_are_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("YURT_HOME", str(tmp_path / "home"))
    files = tmp_path / "files"
    files.mkdir()
    (files / "data").write_text("x")
    monkeypatch.setattr("yurt.engines.nomad.room.LARGEST_JOB_BYTES", 1000)
    with pytest.raises(EngineError, match=r"too large to travel .* for 2 roles"):
        payload(agent_zip(), files, room_for(2))
