"""What each part of a Nomad job becomes."""

from __future__ import annotations

import pytest

from tests.convert import jobs
from tests.convert.jobs import group, hcl, job, messages, read, task
from yurt.convert import Source, read_jobs
from yurt.convert.nomad.roles import role_in, without_role
from yurt.errors import UsageError


@pytest.mark.parametrize(
    ("name", "role"),
    [
        ("chief", "chief"),
        ("master", "chief"),
        ("tf-worker-0", "worker"),
        ("workers", "worker"),
        ("worker0", "worker"),
        ("tfWorker", "worker"),
        ("ps", "ps"),
        ("parameter-server", "ps"),
        ("parameter_servers", "ps"),
        ("param-server-1", "ps"),
        ("eval", "evaluator"),
        ("EVALUATOR", "evaluator"),
        ("ops", None),
        ("tensorboard", None),
        ("chief-worker", None),
        ("http-server", None),
    ],
)
def test_names_of_roles(name, role):
    assert role_in(name) == role


@pytest.mark.parametrize(
    ("name", "bare"),
    [
        ("weather-chief", "weather"),
        ("weather-worker-0", "weather"),
        ("worker-weather", "weather"),
        ("weather", "weather"),
        ("weather_parameter_server", "weather"),
        ("chief", ""),
    ],
)
def test_a_jobs_name_without_its_role(name, bare):
    assert without_role(name) == bare


def roles(converted):
    return {str(name): role.replicas for name, role in converted.job.roles.items()}


def test_the_roles_come_from_groups_tasks_jobs_or_files():
    assert roles(read(job(group("chief", 1), group("tf-workers", 3)))) == {"chief": 1, "worker": 3}
    assert roles(read(job(group("a", 1, [task("chief")]), group("b", 2, [task("worker")])))) == {
        "chief": 1,
        "worker": 2,
    }
    one = {**job(group("main", 1)), "ID": "weather-chief", "Name": "weather-chief"}
    two = {**job(group("main", 3)), "ID": "weather-worker", "Name": "weather-worker"}
    converted = read(one, two)
    assert roles(converted) == {"chief": 1, "worker": 3}
    assert converted.job.name == "weather"
    sources = [Source(f"jobs/{name}.nomad", hcl(name="main")) for name in ("chief", "worker")]
    assert roles(read_jobs(sources)) == {"chief": 1, "worker": 1}


def test_one_group_with_a_task_for_each_role():
    assert roles(read(job(group("training", 1, [task("chief"), task("worker"), task("ps")])))) == {
        "chief": 1,
        "worker": 1,
        "ps": 1,
    }


def test_a_single_group_of_any_name_is_the_worker():
    converted = read(job(group("training", 4)))
    assert roles(converted) == {"worker": 4}
    assert messages(converted) == ["names no role; it is taken as worker"]


def test_groups_of_the_same_role_are_counted_together():
    same = read(job(group("worker-0", 1), group("worker-1", 1)))
    assert roles(same) == {"worker": 2}
    assert same.notes == ()
    other = task(Config={"command": "python", "args": ["train.py", "--index", "1"]})
    unlike = read(job(group("worker-0", 1), group("worker-1", 1, [other])))
    assert roles(unlike) == {"worker": 2}
    assert messages(unlike) == ["is counted as worker with weather/worker-0; its own command is not carried"]


def test_the_first_worker_is_the_chief_beside_a_ps():
    converted = read(job(group("worker", 3), group("ps", 1)))
    assert roles(converted) == {"chief": 1, "worker": 2, "ps": 1}
    assert messages(converted) == ["the first worker becomes the chief, which runs the training loop beside a ps"]


def test_no_more_than_one_chief_and_one_evaluator():
    converted = read(job(group("chief", 2), group("worker", 2), group("eval", 3)))
    assert roles(converted) == {"chief": 1, "worker": 2, "evaluator": 1}
    assert len(converted.notes) == 2


def test_a_group_without_tasks_is_told():
    converted = read(job(group("chief", 1), group("worker", 2), group("eval", 0)))
    assert roles(converted) == {"chief": 1, "worker": 2}
    assert messages(converted) == ["has no replicas, so there is no evaluator"]


def test_the_leader_is_the_task_that_trains():
    converted = read(
        job(group(tasks=[task("a"), task("b", Leader=True, Config={"command": "python", "args": ["b.py"]})]))
    )
    assert converted.job.command == ("python", "b.py")
    assert messages(converted) == ["runs beside the training in its group, which Yurt's tasks do not do: left out"]


@pytest.mark.parametrize(
    ("driver", "config", "command"),
    [
        ("raw_exec", {"command": "/bin/python3", "args": ["-m", "trainer", 3, 0.5, True]}, "/bin/python3 -m trainer 3 0.5 True"),
        ("exec", {"command": "sh", "args": ["-c", "python train.py --a 'b c'"]}, "python train.py --a 'b c'"),
        ("raw_exec", {"command": "/bin/bash", "args": ["-c", "exec python train.py"]}, "python train.py"),
        ("raw_exec", {"command": "python3 train.py --x"}, "python3 train.py --x"),
        ("docker", {"image": "a", "command": "python", "args": ["train.py"]}, "python train.py"),
        ("docker", {"image": "a", "entrypoint": ["python"], "args": ["train.py"]}, "python train.py"),
        ("docker", {"image": "a", "entrypoint": "python", "command": "train.py"}, "python train.py"),
        ("docker", {"image": "a", "args": ["python", "train.py"]}, "python train.py"),
        ("podman", {"image": "docker://a", "args": ["python", "train.py"]}, "python train.py"),
    ],
)  # fmt: skip
def test_commands(driver, config, command):
    import shlex

    assert shlex.join(read(job(group(tasks=[task(driver=driver, Config=config)]))).job.command) == command


@pytest.mark.parametrize(
    "script",
    ["cd /x && python t.py", "python t.py --home $HOME", "python *.py", "python t.py > log", "a=1 python t.py"],
)
def test_what_only_a_shell_understands_stays_in_its_hands(script):
    config = {"command": "sh", "args": ["-c", script]}
    assert read(job(group(tasks=[task(Config=config)]))).job.command == ("sh", "-c", script)


def test_texts_come_out_of_nomads_template_letter_for_letter():
    given = ["$${HOME}", "%%{x}", "$$${HOME}", "$$ $x 100% {{ y }} \" ' \\ \n", "$${open"]
    literal = ("${HOME}", "%{x}", "$${HOME}", "$$ $x 100% {{ y }} \" ' \\ \n", "${open")
    converted = read(job(group(tasks=[task(Config={"command": "python", "args": ["t.py", *given]})])))
    assert converted.job.command == ("python", "t.py", *literal)
    assert converted.notes == ()


def test_what_nomad_fills_in_is_told():
    converted = read(
        job(
            group(
                tasks=[
                    task(
                        Config={"command": "python", "args": ["t.py", "${NOMAD_ALLOC_INDEX}"]}, Env={"A": "x${attr.b}"}
                    )
                ]
            )
        )
    )
    assert converted.job.command[-1] == "${NOMAD_ALLOC_INDEX}"
    assert dict(converted.job.env) == {}
    assert [note.place for note in converted.notes] == [
        "weather/worker/train: Config.args",
        "weather/worker/train: Env.A",
    ]


def test_the_same_for_all_stands_once():
    chief = group("chief", 1, [task(Env={"A": "1", "B": "2"})])
    worker = group("worker", 2, [task(Env={"A": "1"}, Config={"command": "python", "args": ["w.py"]})])
    evaluator = group("eval", 1, [task(Env={"A": "1"})])
    written = read(job(chief, worker, evaluator)).job.as_file()
    assert written["command"] == "python train.py"
    assert written["env"] == {"A": "1"}
    assert written["roles"] == {
        "chief": {"env": {"B": "2"}},
        "worker": {"replicas": 2, "command": "python w.py"},
        "evaluator": 1,
    }


@pytest.mark.parametrize(
    ("resources", "role"),
    [
        ({"CPU": 5000, "MemoryMB": 4096}, (2.0, 4 * 2**30, None)),
        ({"CPU": 100, "MemoryMB": 300}, (None, None, None)),  # Nomad's own
        ({"Cores": 4}, (4.0, None, None)),
        ({"Devices": [{"Name": "nvidia/gpu", "Count": 2}]}, (None, None, 2)),
        ({"Devices": [{"Name": "gpu", "Count": None}]}, (None, None, 1)),
        ({"Devices": [{"Name": "intel/fpga", "Count": 2}]}, (None, None, None)),
    ],
)
def test_resources(resources, role):
    found = read(job(group(tasks=[task(Resources=resources)]))).job.roles["worker"]
    assert (found.cpus, found.memory_bytes, found.gpus) == role


def test_the_mhz_of_a_cpu_can_be_said():
    assert read(job(group(tasks=[task(Resources={"CPU": 6000})])), mhz_per_cpu=3000).job.roles["worker"].cpus == 2


S = 1_000_000_000
DEFAULT_RESTART = {"Attempts": 3, "Interval": 86400 * S, "Delay": 15 * S, "Mode": "fail"}


@pytest.mark.parametrize(
    ("restart", "reschedule", "expected"),
    [
        (None, None, ("exit-code", 3)),
        (DEFAULT_RESTART, {"Attempts": 1, "Interval": 86400 * S, "Delay": 5 * S}, ("exit-code", 3)),
        ({"Attempts": 0}, {"Attempts": 0}, ("never", 3)),
        ({"Attempts": 0}, None, ("never", 3)),
        ({"Attempts": 2}, {"Attempts": 0}, ("on-failure", 2)),
        ({"Attempts": 2}, {"Attempts": 1}, ("on-failure", 5)),  # (2 + 1) * (1 + 1) - 1
        (None, {"Attempts": 0, "Unlimited": False}, ("on-failure", 3)),  # Nomad's own three in place stay
    ],
)
def test_restarts(restart, reschedule, expected):
    blocks = {"RestartPolicy": restart, "ReschedulePolicy": reschedule}
    found = read(job(group(**{key: value for key, value in blocks.items() if value}))).job
    assert (str(found.restart), found.max_restarts) == expected


def test_the_longest_kill_timeout_is_the_grace_time():
    groups = (group("chief", 1, [task(KillTimeout=20 * S)]), group("worker", 1, [task(KillTimeout=90 * S)]))
    assert read(job(*groups)).job.grace_s == 90
    assert read(job(group(tasks=[task(KillTimeout=5 * S)]))).job.grace_s == 30  # Nomad's own 5 s
    assert read(hcl(task_body='kill_timeout = "1m30s"')).job.grace_s == 90


def test_variables_out_of_a_template():
    body = """
      template {
        data        = <<EOT
export A = "x y"
B={{ key "b" }}
{{ range service "tf" }}
C=1
{{ end }}
TF_CONFIG={{ with service "tf" }}{}{{ end }}
EOT
        destination = "local/env"
        env         = true
      }
      env {
        D = 7
      }
    """
    converted = read(hcl(task_body=body))
    assert dict(converted.job.env) == {"A": "x y", "D": "7"}
    assert messages(converted) == [
        "is left out: Yurt writes TF_CONFIG for every task",
        "B is left out: Nomad fills it in, and Yurt does not",
        "C is left out: Nomad fills it in, and Yurt does not",
    ]


def test_placement_is_for_the_nomad_engine():
    spread = {"Operand": "distinct_hosts", "RTarget": "true"}
    converted = read(job(Datacenters=["a"], Region="global", Namespace="default", Priority=50, Constraints=[spread]))
    assert converted.job.as_file()["engines"] == {"nomad": {"datacenters": ["a"]}}
    assert converted.notes == ()
    assert read(job(group(count=1), Constraints=[spread])).notes == ()
    assert dict(read(job(group(count=1), Constraints=[spread])).job.engines) == {}
    some = [{"LTarget": "${node.class}", "RTarget": "gpu", "Operand": "="}]
    both = read(job(group("chief", 1, Constraints=some), group("worker", 1, Constraints=some)))
    assert both.job.as_file()["engines"]["nomad"]["constraints"] == [
        {"attribute": "${node.class}", "operator": "=", "value": "gpu"}
    ]
    one = read(job(group("chief", 1, Constraints=some), group("worker", 1)))
    assert "constraints" not in one.job.as_file()["engines"]["nomad"]
    assert [note.place for note in one.notes] == ["weather/chief: Constraints"]


def test_a_short_constraint_of_hcl():
    converted = read(hcl(group_body='constraint {\n attribute = "${attr.nomad.version}"\n version = ">= 1.6"\n }'))
    assert converted.job.as_file()["engines"]["nomad"]["constraints"] == [
        {"attribute": "${attr.nomad.version}", "operator": "version", "value": ">= 1.6"}
    ]


def mistake(*given, **options):
    with pytest.raises(UsageError) as caught:
        jobs.read(*given, **options)
    message = str(caught.value)
    assert "\n" not in message
    return message


def test_mistakes():
    assert mistake(job(group("a"), group("b"))) == "0.nomad has the groups a, b, and none is named for a role"
    assert mistake({"ID": "x", "TaskGroups": []}) == "0.nomad has no task groups, so nothing would run"
    two = group(tasks=[task("a"), task("b")])
    assert mistake(job(two)) == "0.nomad: the group worker must have one task that trains, and its tasks are a, b"
    assert (
        mistake(job(group(tasks=[task(driver="java")]))) == "0.nomad: the driver 'java' is not one that Yurt can carry"
    )
    own = task(driver="docker", Config={"image": "a"})
    assert mistake(job(group(tasks=[own]))) == (
        "0.nomad: the task does not say what it runs, and Yurt cannot look into its image"
    )
    assert mistake(job(group(count="many"))) == "0.nomad: count must be a whole number, not 'many'"
    assert mistake(job(group("worker", 1), group("ps", 1))).startswith("0.nomad makes no Yurt job: roles needs a chief")
    assert mistake(job(), name="A B") == (
        '0.nomad makes no Yurt job: name may only have small letters, digits and -, not "A", " ", "B"; did you mean a-b?'
    ).replace("letters, digits", "letters a to z, digits")
    assert mistake(job(), variables={"a": "1"}) == "--var a: 0.nomad is JSON, which has no variables"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "x is empty"),
        ("hello", "x is no job file that Yurt knows: neither a job block nor a kind is in it"),
        ("{", "x:1 is not JSON: expecting property name enclosed in double quotes"),
        ("[1]", "x is no job file that Yurt knows: neither a job block nor a kind is in it"),
        ('{"a": 1}', "x is no job: it has neither Job nor TaskGroups, nor a kind"),
        ('{"job": {"a": {}}}', "x is HCL written as JSON, which Yurt does not read"),
        ('{"Job": 3}', "x: Job must be a mapping, as `nomad job run -output` prints it"),
        ("kind: Deployment\n", "x holds no TFJob; it holds Deployment"),
        ("name: weather\ncommand: train.py\n", "x is a Yurt job file already"),
        ('{"Job": ' + '{"a": ' * 800 + "1" + "}" * 801, "x is nested too deeply"),
        ('job "a" { b = ' + "[" * 800 + "]" * 800 + "}", "x is nested too deeply"),
        ('job "a" {}', "x:1 has no task groups, so nothing would run"),
    ],
)  # fmt: skip
def test_what_is_no_nomad_job(text, message):
    with pytest.raises(UsageError) as caught:
        read_jobs([Source("x", text)])
    assert str(caught.value) == message
