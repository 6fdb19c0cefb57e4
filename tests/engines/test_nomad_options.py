"""Ports, TLS, secrets and GPUs in the job that Nomad is sent, and what is refused before it."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from pydantic import ValidationError

from tests.engines.test_nomad_render import CLUSTER, PLACE, RUN, TASKS, node
from yurt.contract.config import AgentConfig
from yurt.contract.spec import TaskSpec
from yurt.engines.nomad import fit
from yurt.engines.nomad.nodes import Cluster, node_of
from yurt.engines.nomad.options import NomadOptions
from yurt.engines.nomad.render import render
from yurt.errors import UsageError
from yurt.kv.tls import TlsParams

#: ``NodeResources.Devices`` of ``GET /v1/node/:id``, as Nomad's API documentation shows it.
DEVICES = [
    {
        "Vendor": "nvidia",
        "Type": "gpu",
        "Name": "Tesla K80",
        "Attributes": {"memory": {"Int": 11441, "Unit": "MiB"}, "cuda_cores": {"Int": 2496}},
        "Instances": [
            {"ID": "GPU-1", "Healthy": True, "HealthDescription": "", "Locality": None},
            {"ID": "GPU-2", "Healthy": True, "HealthDescription": "", "Locality": None},
            {"ID": "GPU-3", "Healthy": False, "HealthDescription": "it is hot", "Locality": None},
        ],
    }
]


def first_group(run=RUN, place=PLACE, cluster=CLUSTER, **options):
    job = render(run, place, NomadOptions.model_validate(options), cluster)["job"]
    return job["TaskGroups"][0]


def config_of(group):
    return AgentConfig.from_json(json.loads(group["Tasks"][0]["Templates"][1]["EmbeddedTmpl"])["config"])


# Ports


def test_the_port_is_one_of_nomads_and_its_address_goes_with_it():
    group = first_group()
    assert group["Networks"] == [{"Mode": "host", "DynamicPorts": [{"Label": "tf"}]}]
    env = group["Tasks"][0]["Env"]
    assert (env["YURT_HOST"], env["YURT_PORT"]) == ("${NOMAD_HOST_IP_tf}", "${NOMAD_PORT_tf}")


def test_in_a_bridge_the_port_has_the_same_number_inside():
    run = replace(RUN, image="tf:1")
    group = first_group(run, driver="docker", network="bridge", consul="http://10.0.0.1:8500")
    assert group["Networks"] == [{"Mode": "bridge", "DynamicPorts": [{"Label": "tf", "To": -1}]}]
    assert "network_mode" not in group["Tasks"][0]["Config"]


def test_a_bridge_that_cannot_be_is_refused():
    with pytest.raises(UsageError, match="raw_exec runs on the node's own network"):
        first_group(network="bridge")
    with pytest.raises(UsageError, match="the task's own loopback, where no Consul is"):
        first_group(network="bridge", driver="exec")


def test_a_node_without_a_bridge_is_told_as_such():
    metric = {"NodesEvaluated": 3, "ConstraintFiltered": {"missing network": 3}}
    assert str(fit.hopeless({"worker": metric})[0]) == (
        "1 task of worker: the node has no CNI plugins for a bridge network (missing network) on 3 of 3 nodes"
    )


def test_ports_that_are_short_are_told_as_such():
    metric = {"NodesEvaluated": 2, "DimensionExhausted": {"network: dynamic port selection failed": 2}}
    assert fit.reason_of(metric) == "dynamic port selection failed on 2 of 2 nodes"


# Consul over TLS


@pytest.mark.parametrize(
    ("launchers", "option", "tasks"),
    [
        ("http://127.0.0.1:8500", None, "http://127.0.0.1:8500"),
        ("https://127.0.0.1:8501", None, "https://127.0.0.1:8501"),
        ("https://localhost:9501", None, "https://localhost:9501"),
        ("http://consul.example:8500", None, "http://127.0.0.1:8500"),
        ("https://consul.example:443", None, "https://127.0.0.1:8501"),
        ("http://127.0.0.1:8500", "https://10.0.0.1:8501", "https://10.0.0.1:8501"),
        ("https://127.0.0.1:8501", "http://10.0.0.1:8500", "http://10.0.0.1:8500"),
    ],
)
def test_tasks_speak_to_consul_as_the_launcher_does(launchers, option, tasks):
    tls = {"ca_file": "/etc/consul.d/ca.pem", "server_name": "server.dc1.consul"}
    config = config_of(first_group(place=replace(PLACE, store=launchers), consul=option, consul_tls=tls))
    assert config.store == tasks
    assert config.store_tls == (tls if tasks.startswith("https") else {})
    TlsParams(**config.store_tls)


def test_every_parameter_of_tls_can_be_said():
    every = {name: f"/{name}" for name in ("ca_file", "ca_path", "cert_file", "key_file", "server_name")}
    place = replace(PLACE, store="https://127.0.0.1:8501")
    config = config_of(first_group(place=place, consul_tls={**every, "verify": False}))
    assert TlsParams(**config.store_tls) == TlsParams(**every, verify=False)
    assert config_of(first_group(place=place)).store_tls == {}


# Secrets

SECRETS = {
    "WANDB_API_KEY": {"vault": "secret/data/wandb", "key": "api_key"},
    "DB_PASSWORD": {"variable": "nomad/jobs/train", "key": "password"},
}


def test_secrets_are_fetched_on_the_node():
    task = first_group(secrets=SECRETS, vault={"policies": ["train"]})["Tasks"][0]
    assert task["Vault"] == {"Policies": ["train"], "Env": False, "ChangeMode": "noop"}
    assert task["Templates"][-1] == {
        "EmbeddedTmpl": '{{ with nomadVar "nomad/jobs/train" }}{{ with (index . "password").Value }}'
        "DB_PASSWORD={{ . | toJSON }}{{ end }}{{ end }}\n"
        '{{ with secret "secret/data/wandb" }}{{ with .Data.data }}{{ with index . "api_key" }}'
        'WANDB_API_KEY={{ . | toJSON }}{{ end }}{{ else }}{{ with index .Data "api_key" }}'
        "WANDB_API_KEY={{ . | toJSON }}{{ end }}{{ end }}{{ end }}\n",
        "DestPath": "secrets/variables.env",
        "Perms": "0400",
        "Envvars": True,
        "ChangeMode": "noop",
    }
    assert json.loads(task["Templates"][1]["EmbeddedTmpl"])["secrets"] == ["DB_PASSWORD", "WANDB_API_KEY"]


def test_vault_is_asked_only_where_a_secret_is_in_it():
    assert "Vault" not in first_group(vault={"policies": ["train"]})["Tasks"][0]
    assert "Vault" not in first_group(secrets={"DB_PASSWORD": SECRETS["DB_PASSWORD"]})["Tasks"][0]
    vault = {"role": "train", "namespace": "ml"}
    task = first_group(cluster=replace(CLUSTER, version="1.7.0"), secrets=SECRETS, vault=vault)["Tasks"][0]
    assert (task["Vault"]["Role"], task["Vault"]["Namespace"], task["Vault"]["Policies"]) == ("train", "ml", [])


@pytest.mark.parametrize(
    ("secrets", "said"),
    [
        ({"A": {"key": "k"}}, "either vault or variable"),
        ({"A": {"key": "k", "vault": "v", "variable": "n"}}, "either vault or variable"),
        ({"A": {"vault": "v", "key": ""}}, "at least 1 character"),
        ({"A B": {"vault": "v", "key": "k"}}, "'A B' cannot be"),
        ({"YURT_TASK": {"vault": "v", "key": "k"}}, "'YURT_TASK' cannot be"),
    ],
)
def test_what_is_no_secret(secrets, said):
    with pytest.raises(ValidationError, match=said):
        NomadOptions.model_validate({"secrets": secrets})


def test_a_variable_is_not_both_a_secret_and_in_env():
    with pytest.raises(UsageError, match="EPOCHS: both in env and in"):
        first_group(secrets={"EPOCHS": SECRETS["DB_PASSWORD"]})


# GPUs

TWO_GPUS = replace(RUN, tasks=(replace(TASKS[0], gpus=2),))


def with_gpus(*counts: int) -> Cluster:
    nodes = []
    for number, count in enumerate(counts):
        devices = [{**DEVICES[0], "Instances": [{"Healthy": True}] * count}] if count else None
        value = {
            "ID": f"{number}", "Name": f"n{number}", "Datacenter": "dc1", "Status": "ready",
            "SchedulingEligibility": "eligible", "Drivers": {"raw_exec": {"Detected": True, "Healthy": True}},
            "NodeResources": {"Cpu": {"CpuShares": 4000}, "Memory": {"MemoryMB": 2000}, "Devices": devices},
        }  # fmt: skip
        nodes.append(node_of(value))
    return Cluster(tuple(nodes), "1.6.1")


def never(run, cluster, **options):
    asked = NomadOptions.model_validate(options)
    return fit.never(render(run, PLACE, asked, cluster)["job"], cluster, asked)


def test_which_gpus_are_said_in_nomads_words():
    gpu = {
        "device": "nvidia/gpu/Tesla K80",
        "memory": "8 GiB",
        "model": "A100|H100",
        "constraints": [{"attribute": "${device.attr.cuda_cores}", "operator": ">=", "value": "2000"}],
        "affinities": [{"attribute": "${device.model}", "value": "H100", "weight": 80}],
    }
    assert first_group(TWO_GPUS, gpu=gpu)["Tasks"][0]["Resources"]["Devices"] == [
        {
            "Name": "nvidia/gpu/Tesla K80",
            "Count": 2,
            "Constraints": [
                {"LTarget": "${device.attr.cuda_cores}", "Operand": ">=", "RTarget": "2000"},
                {"LTarget": "${device.attr.memory}", "Operand": ">=", "RTarget": "8 GiB"},
                {"LTarget": "${device.model}", "Operand": "regexp", "RTarget": "A100|H100"},
            ],
            "Affinities": [{"LTarget": "${device.model}", "Operand": "=", "RTarget": "H100", "Weight": 80}],
        }
    ]


@pytest.mark.parametrize("device", ["", "/gpu", "nvidia/", "nvidia//x"])
def test_what_is_no_device(device):
    with pytest.raises(ValidationError, match="must be TYPE, VENDOR/TYPE or"):
        NomadOptions.model_validate({"gpu": {"device": device}})


def test_a_sick_gpu_does_not_count():
    found = node_of(
        {"ID": "1", "Name": "n", "Datacenter": "d", "Status": "ready", "NodeResources": {"Devices": DEVICES}}
    )
    for name, count in (
        ("gpu", 2), ("nvidia/gpu", 2), ("nvidia/gpu/Tesla K80", 2), ("nvidia/gpu/H100", 0), ("amd/gpu", 0), ("fpga", 0),
    ):  # fmt: skip
        assert found.has(name) == count, name


def test_gpus_that_no_node_has_are_refused_with_that_reason():
    assert never(TWO_GPUS, Cluster((node("n0"), node("n1")), "1.0.18")) == [
        "each task of chief asks for 2 of nvidia/gpu, and none of the 2 nodes has one: their device plugin may be missing"
    ]
    assert never(TWO_GPUS, with_gpus(4), gpu={"device": "amd/gpu"}) == [
        "each task of chief asks for 2 of amd/gpu, and none of the 1 nodes has one; they have nvidia/gpu/Tesla K80"
    ]
    assert never(TWO_GPUS, with_gpus(0, 2)) == []


def test_gpus_that_too_few_nodes_have():
    run = replace(RUN, tasks=tuple(TaskSpec("worker", index, ("a",), gpus=2) for index in range(2)))
    [said] = never(run, with_gpus(1, 2))
    assert said == (
        "each task of worker asks for 2 of nvidia/gpu; 1 of 2 nodes have as much (the largest 2), and 2 are needed"
    )
