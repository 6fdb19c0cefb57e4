"""What the Kubernetes engine sends, both ways: files that a person can read, and text that arrives letter for letter."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from pathlib import Path

import pytest

from tests.engines import test_nomad_render
from tests.engines.test_nomad_render import NASTY, TASKS
from yurt.contract.config import AgentConfig
from yurt.contract.spec import TaskSpec
from yurt.engines.base import Place
from yurt.engines.kubernetes.ground import Ground, Node
from yurt.engines.kubernetes.options import KubernetesOptions, PodOptions, Scheduling
from yurt.engines.kubernetes.render import PAYLOAD, owned, render, with_payload
from yurt.engines.kubernetes.resources import resources
from yurt.engines.kubernetes.room import PIECE_BYTES
from yurt.engines.kubernetes.trial import pods

GOLDEN = Path(__file__).parent / "golden"
#: What this engine decides in an agent's configuration.
SHOWN = ("store", "token", "port", "beat_s", "silent_after_s", "store_lost_s", "python_path_first", "threads")
NASTY = NASTY + " $(HOME) $$(HOME) $(YURT_POD) `id`"
RUN = replace(
    test_nomad_render.RUN,
    image="registry.example.com/tf:2.21",
    tasks=(replace(TASKS[0], command=("python", "train.py", "--text", NASTY), env={"TEXT": NASTY}), *TASKS[1:]),
)
PLACE = Place(Path("/runs/weather-abc123"), Path("/agents/agent.pyz"), "", "token")
GROUND = Ground("v1.36.3", "training", tfjobs=True)
TFJOB = {"operator": "tfjob"}


def objects(options=None, run=RUN, ground=GROUND):
    """By kind and name: ``Job/weather-abc123-chief``."""
    request = render(run, PLACE, KubernetesOptions.model_validate(options or {}), ground)
    return {f"{each['kind']}/{each['metadata']['name']}": each for each in request["objects"]}


def order_of(rendered):
    return json.loads(rendered["Secret/weather-abc123"]["stringData"]["run.json"])


def templates(rendered):
    """By role, and ``keeper``."""
    found = {}
    for each in rendered.values():
        if each["kind"] == "Job":
            found[each["metadata"]["name"].removeprefix("weather-abc123-")] = each["spec"]["template"]
        elif each["kind"] == "TFJob":
            found |= {role.lower(): replica["template"] for role, replica in each["spec"]["tfReplicaSpecs"].items()}
    return found


def task_container(template):
    (container,) = template["spec"]["containers"]
    return container


def shown(options):
    """A request as its golden file has it."""
    request = json.loads(json.dumps(render(RUN, PLACE, KubernetesOptions(**options), GROUND)))
    for each in request["objects"]:
        if each["kind"] == "Secret":
            order = json.loads(each["stringData"]["run.json"])
            order["config"] = {key: order["config"][key] for key in SHOWN}
            if order["keeper"]["tfjob"] is not None:
                assert order["keeper"]["tfjob"] == request["objects"][-1], "what may be submitted again"
                order["keeper"]["tfjob"] = "as below"
            each["stringData"]["run.json"] = order
        if each["kind"] == "ConfigMap":
            each["data"]["start.py"] = each["data"]["start.py"].splitlines()[0]  # the script is a file of its own
            assert each["binaryData"] == {"payload.0": PAYLOAD}
    return json.dumps(request, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


@pytest.mark.parametrize(("file", "options"), [("kubernetes.json", {}), ("kubernetes-tfjob.json", TFJOB)])
def test_what_is_rendered_is_a_file_that_a_person_can_read(file, options):
    """After a wanted change: write what `shown` gives into the file, and read it."""
    assert shown(options) == (GOLDEN / file).read_text()
    assert shown(options) == shown(options), "render is pure"


@pytest.mark.parametrize("options", [{}, TFJOB])
def test_text_of_users_is_in_no_place_that_kubernetes_expands(options):
    rendered = objects(options)
    config = AgentConfig.from_json(order_of(rendered)["config"])
    assert config.run.tasks[0].command == ("python", "train.py", "--text", NASTY), "letter for letter"
    assert config.run.tasks[0].env == {"TEXT": NASTY}
    del rendered["Secret/weather-abc123"]
    assert "HOME" not in json.dumps({key: each for key, each in rendered.items() if not key.startswith("ConfigMap")})


def test_what_is_a_users_in_a_command_is_not_expanded():
    rendered = objects({"python": "/opt/$(HOME) 'x'/$py/python3"})
    script = task_container(templates(rendered)["chief"])["command"][2]
    assert "$$(HOME)" in script
    assert "/$$py/" in script
    assert (
        expanded(script)
        .splitlines()[0]
        .startswith(
            "python=$(command -v '/opt/$(HOME) '\"'\"'x'\"'\"'/$py/python3') || { echo 'yurt: the image has no "
        )
    )


def expanded(text):
    """As the kubelet does it with no variable known (k8s.io/kubernetes third_party/forked/golang/expansion 1.36)."""
    found, at = "", 0
    while at < len(text):
        if text[at : at + 2] == "$$":
            found, at = found + "$", at + 2
        else:
            assert text[at : at + 2] != "$(", "a variable of Kubernetes'"
            found, at = found + text[at], at + 1
    return found


# The options, each of which has its place.

POD = {
    "requests": {"cpu": 1.5, "memory": "2Gi"},
    "limits": {"memory": "3Gi", "ephemeral-storage": "4Gi", "example.com/tpu": 2},
    "node_selector": {"pool": "training"},
    "tolerations": [{"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}],
    "affinity": {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}]
            }
        }
    },
    "priority_class": "batch-low",
    "scheduler": "own-scheduler",
    "runtime_class": "nvidia",
    "service_account": "trainer",
    "image_pull_secrets": ["registry"],
    "image_pull_policy": "Never",
    "labels": {"team": "weather", "yurt/run": "another"},
    "annotations": {"sidecar.istio.io/inject": "false"},
    "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "records"}}],
    "volume_mounts": [{"name": "data", "mountPath": "/data", "readOnly": True}],
    "env": [{"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "keys", "key": "key"}}}],
    "env_from": [{"secretRef": {"name": "bucket"}}],
    "security_context": {"readOnlyRootFilesystem": True},
    "pod_security_context": {"runAsUser": 1000, "fsGroup": 1000},
    "init_containers": [{"name": "fetch", "image": "busybox:1", "command": ["true"]}],
    "sidecars": [{"name": "proxy", "image": "proxy:1"}],
    "container": {"workingDir": "/data", "ports": [{"name": "board", "containerPort": 6006}]},
    "pod": {"hostAliases": [{"ip": "10.0.0.1", "hostnames": ["db"]}]},
}
RUN_OPTIONS = {
    "context": "cluster-1",  # whose session it is
    "namespace": "ml",
    "operator": "none",
    "python": "/venv/bin/python",
    "spread": "required",
    "node_lost_after_s": 7,
    "restricted": True,
    "checkpoint_claim": "checkpoints",
    "scheduling": {
        "by": "volcano",
        "queue": "ml",
        "min_available": 3,
        "min_resources": {"cpu": 3},
        "priority_class": "p",
    },
    "keep_s": 600,
    "keep": True,  # the launcher's
    "keep_model_s": 120,
    "suspend": True,
    "clean_pod_policy": "All",
    "managed_by": "kueue.x-k8s.io/multikueue",
    "prefer_tfjob": True,
    "run_labels": {"cost": "42"},
    "run_annotations": {"owner": "weather team"},
    "keeper_image": "python:3.12",
    "keeper_account": "keeper",
    "roles": {"worker": {"limits": {"memory": "5Gi"}}},
    # how files travel: `yurt.engines.travel`
    "files_through": "s3://files/x",
    "git": {"url": "https://example.com/x.git", "ref": "main"},
    "requirements": "requirements.txt",
    "requirements_on_top": True,
    "cache_folder": "/data/cache",
}


def test_no_option_is_forgotten_here():
    assert set(POD) == set(PodOptions.model_fields)
    assert set(RUN_OPTIONS) | set(POD) == set(KubernetesOptions.model_fields)
    assert {"timeout_s", *RUN_OPTIONS["scheduling"]} == set(Scheduling.model_fields)


@pytest.mark.parametrize("way", ["none", "tfjob"])
def test_every_option_of_a_pod_has_its_place(way):
    for template in [templates(objects({**POD, "operator": way}))["worker"]]:
        spec, container = template["spec"], task_container(template)
        limits, requests = container["resources"]["limits"], container["resources"]["requests"]
        assert requests == {"cpu": "1.5", "memory": "2Gi", "example.com/tpu": "2"}
        assert limits == {"cpu": "1", "memory": "3Gi", "ephemeral-storage": "4Gi", "example.com/tpu": "2"}
        assert spec["nodeSelector"] == POD["node_selector"]
        assert spec["tolerations"][0] == POD["tolerations"][0]
        assert spec["affinity"]["nodeAffinity"] == POD["affinity"]["nodeAffinity"]
        assert "podAntiAffinity" in spec["affinity"], "beside the user's own"
        assert spec["priorityClassName"] == "batch-low"
        assert spec["schedulerName"] == "own-scheduler"
        assert spec["runtimeClassName"] == "nvidia"
        assert spec["serviceAccountName"] == "trainer"
        assert spec["automountServiceAccountToken"] is True
        assert spec["imagePullSecrets"] == [{"name": "registry"}]
        assert container["imagePullPolicy"] == "Never"
        assert template["metadata"]["labels"]["team"] == "weather"
        assert template["metadata"]["labels"]["yurt/run"] == "weather-abc123", "Yurt's own stay"
        assert template["metadata"]["annotations"] == POD["annotations"]
        assert spec["volumes"][-1] == POD["volumes"][0]
        assert container["volumeMounts"][-1] == POD["volume_mounts"][0]
        assert container["env"][-1] == POD["env"][0]
        assert container["envFrom"] == POD["env_from"]
        assert container["securityContext"] == POD["security_context"]
        assert spec["securityContext"] == POD["pod_security_context"]
        fetch, proxy = spec["initContainers"]
        assert fetch == POD["init_containers"][0]
        assert proxy == {**POD["sidecars"][0], "restartPolicy": "Always"}, "ended with its task"
        assert container["workingDir"] == "/data"
        assert [port["name"] for port in container["ports"]] == ["tfjob-port", "board"]
        assert spec["hostAliases"] == POD["pod"]["hostAliases"]


def test_every_option_of_a_run_has_its_place():
    options = {**POD, **RUN_OPTIONS}
    request = render(RUN, PLACE, KubernetesOptions.model_validate(options), GROUND)
    assert request["namespace"] == "ml"
    rendered = objects(options)
    worker, keeper = templates(rendered)["worker"], templates(rendered)["keeper"]
    assert "/venv/bin/python" in task_container(worker)["command"][2]
    (term,) = worker["spec"]["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert term["labelSelector"]["matchLabels"] == {"yurt/run": "weather-abc123"}
    assert [each["tolerationSeconds"] for each in worker["spec"]["tolerations"][1:]] == [7, 7]
    mount = next(each for each in task_container(worker)["volumeMounts"] if each["mountPath"] == "/yurt/checkpoints")
    assert mount["subPath"] == "weather-abc123"
    claim = next(each for each in worker["spec"]["volumes"] if each["name"] == mount["name"])
    assert claim["persistentVolumeClaim"] == {"claimName": "checkpoints"}
    group = rendered["PodGroup/weather-abc123"]["spec"]
    assert group == {"minMember": 3, "queue": "ml", "minResources": {"cpu": "3"}, "priorityClassName": "p"}
    assert worker["metadata"]["annotations"]["scheduling.k8s.io/group-name"] == "weather-abc123"
    assert rendered["Job/weather-abc123-keeper"]["spec"]["ttlSecondsAfterFinished"] == 600
    assert rendered["Job/weather-abc123-worker"]["spec"]["suspend"] is True
    assert "suspend" not in rendered["Job/weather-abc123-keeper"]["spec"]
    assert task_container(keeper)["image"] == "python:3.12"
    assert keeper["spec"]["serviceAccountName"] == "keeper"
    assert task_container(worker)["resources"]["limits"]["memory"] == "5Gi"
    assert task_container(templates(rendered)["ps"])["resources"]["limits"]["memory"] == "3Gi"
    for made in (rendered["Job/weather-abc123-worker"], objects({**options, **TFJOB})["TFJob/weather-abc123"]):
        assert made["metadata"]["labels"]["cost"] == "42"
        assert made["metadata"]["annotations"] == {"owner": "weather team"}
    order = order_of(rendered)
    assert order["checkpoints"] == "/yurt/checkpoints"
    assert order["config"]["python_path_first"] == "/venv/bin"
    assert order["keeper"]["node_lost_after_s"] == 7
    assert order["keeper"]["cleans"] is True
    assert order["keep_model_s"] == 120


@pytest.mark.parametrize(
    ("options", "served", "way"),
    [
        ({}, True, "none"),
        ({"prefer_tfjob": True}, True, "tfjob"),
        ({"prefer_tfjob": True}, None, "tfjob"),
        ({"prefer_tfjob": True}, False, "none"),
        ({"prefer_tfjob": True, "operator": "none"}, True, "none"),
        (TFJOB, False, "tfjob"),
    ],
)
def test_the_way_that_a_run_goes(options, served, way):
    request = render(RUN, PLACE, KubernetesOptions(**options), replace(GROUND, tfjobs=served))
    assert request["way"] == way
    assert [each["kind"] for each in request["objects"]].count("TFJob") == (way == "tfjob")
    assert request["objects"][0]["metadata"]["annotations"]["yurt/way"] == way


def test_a_tfjobs_policy_is_whole():
    scheduling = {**RUN_OPTIONS["scheduling"], "timeout_s": 90}
    options = {**RUN_OPTIONS, **TFJOB, "scheduling": scheduling, "cache_folder": None}
    spec = objects(options, run=replace(RUN, deadline_s=100.5))["TFJob/weather-abc123"]["spec"]
    assert spec["runPolicy"] == {
        "cleanPodPolicy": "All",
        "ttlSecondsAfterFinished": 600,
        "activeDeadlineSeconds": 251,
        "backoffLimit": 22,
        "suspend": True,
        "managedBy": "kueue.x-k8s.io/multikueue",
        "schedulingPolicy": {
            "minAvailable": 3, "queue": "ml", "minResources": {"cpu": "3"}, "priorityClass": "p",
            "scheduleTimeoutSeconds": 90,
        },
    }  # fmt: skip


@pytest.mark.parametrize(
    ("success", "chief", "said"),
    [("all-workers", False, "AllWorkers"), ("all-workers", True, None), ("chief", False, None)],
)
def test_the_success_policy_is_said_where_the_operator_heeds_it(success, chief, said):
    tasks = tuple(TaskSpec("worker", index, ("a",)) for index in range(2))
    run = replace(RUN, success=success, tasks=(*RUN.tasks[: int(chief)], *tasks))
    assert objects(TFJOB, run=run)["TFJob/weather-abc123"]["spec"].get("successPolicy") == said


def test_kueue_gets_what_it_admits_suspended():
    scheduling = {"by": "kueue", "queue": "team", "priority_class": "high"}
    wanted = {"kueue.x-k8s.io/queue-name": "team", "kueue.x-k8s.io/priority-class": "high"}
    tfjob = objects({"scheduling": scheduling, **TFJOB})["TFJob/weather-abc123"]
    assert wanted.items() <= tfjob["metadata"]["labels"].items()
    assert tfjob["spec"]["runPolicy"]["suspend"] is True
    rendered = objects({"scheduling": scheduling})
    for name in ("chief", "worker", "ps"):
        job = rendered[f"Job/weather-abc123-{name}"]
        assert wanted.items() <= job["metadata"]["labels"].items()
        assert job["spec"]["suspend"] is True
    assert "suspend" not in rendered["Job/weather-abc123-keeper"]["spec"], "it waits with the run"


def test_volcano_has_the_gangs_pods_without_an_operator():
    rendered = objects({"scheduling": {"by": "volcano"}})
    assert list(rendered).index("PodGroup/weather-abc123") < list(rendered).index("Job/weather-abc123-chief")
    assert rendered["PodGroup/weather-abc123"]["spec"] == {"minMember": 4}
    assert templates(rendered)["ps"]["spec"]["schedulerName"] == "volcano"
    assert "schedulerName" not in templates(rendered)["keeper"]["spec"], "it has to run while the gang waits"


def test_the_keeper_has_of_the_options_what_decides_where_and_as_whom():
    mine = {"limits": {"memory": "1Gi"}, "runtime_class": "gvisor", "labels": {"part": "keeper"}}
    template = templates(objects({**POD, "roles": {"keeper": mine}, "restricted": True}))["keeper"]
    spec, container = template["spec"], task_container(template)
    assert container["name"] == "keeper"
    assert container["resources"] == {
        "requests": {"cpu": "50m", "memory": "64Mi"},
        "limits": {"cpu": "1", "memory": "1Gi"},
    }
    assert spec["runtimeClassName"] == "gvisor"
    assert spec["nodeSelector"] == POD["node_selector"]
    assert spec["priorityClassName"] == "batch-low"
    assert template["metadata"]["labels"]["team"] == "weather"
    assert template["metadata"]["labels"]["part"] == "keeper"
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert not {"initContainers", "schedulerName", "serviceAccountName"} & spec.keys()
    assert not any(volume["name"] == "data" for volume in spec["volumes"])
    assert not any(each["name"] == "KEY" for each in container["env"])


@pytest.mark.parametrize("way", ["none", "tfjob"])
def test_restricted_pods_are_restricted_whole(way):
    options = {
        "operator": way, "restricted": True, "sidecars": POD["sidecars"], "init_containers": POD["init_containers"],
        "pod_security_context": {"runAsUser": 1000},
    }  # fmt: skip
    for template in templates(objects(options)).values():
        spec = template["spec"]
        assert spec["securityContext"] == {
            "runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}, "runAsUser": 1000,
        }  # fmt: skip
        for container in (*spec["containers"], *spec.get("initContainers", ())):
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]},
            }  # fmt: skip


def test_the_keeper_acts_by_an_account_only_where_there_is_one():
    spec = templates(objects())["keeper"]["spec"]
    assert spec["automountServiceAccountToken"] is False
    assert "serviceAccountName" not in spec
    ground = replace(GROUND, keeper_account=True)
    rendered = objects(ground=ground)
    assert templates(rendered)["keeper"]["spec"]["serviceAccountName"] == "yurt-keeper"
    assert order_of(rendered)["keeper"]["cleans"] is True


def test_numbers_of_a_role_are_requests_and_limits():
    task = TaskSpec("worker", 0, ("a",), cpus=1.5, memory_bytes=3 << 29, gpus=2)
    amounts = {"cpu": "1500m", "memory": "1536Mi", "nvidia.com/gpu": "2"}
    assert resources(task, PodOptions()) == {"requests": amounts, "limits": amounts}
    assert resources(TaskSpec("worker", 0, ("a",), memory_bytes=1_000_000_001), PodOptions())["limits"] == {
        "memory": "1000000001"
    }
    assert resources(TaskSpec("worker", 0, ("a",), gpus=0), PodOptions()) == {}


def test_a_resource_that_is_not_shared_out_is_the_same_in_both():
    only_asked = resources(TaskSpec("worker", 0, ("a",)), PodOptions(requests={"amd.com/gpu": 1}))
    assert only_asked == {"requests": {"amd.com/gpu": "1"}, "limits": {"amd.com/gpu": "1"}}
    more = resources(TaskSpec("worker", 0, ("a",), gpus=1), PodOptions(limits={"nvidia.com/gpu": 4}))
    assert more == {"requests": {"nvidia.com/gpu": "4"}, "limits": {"nvidia.com/gpu": "4"}}
    burst = resources(TaskSpec("worker", 0, ("a",), cpus=1), PodOptions(limits={"cpu": 4}))
    assert burst == {"requests": {"cpu": "1"}, "limits": {"cpu": "4"}}


def test_threads_and_gpus_are_told_by_role():
    tasks = (
        TaskSpec("worker", 0, ("a",), cpus=1.5, gpus=1),
        TaskSpec("ps", 0, None),
    )
    order = order_of(objects({"roles": {"ps": {"limits": {"cpu": "2500m"}}}}, run=replace(RUN, tasks=tasks)))
    assert order["roles"] == {
        "worker": {"count": 1, "threads": 2, "visible_gpus": None},
        "ps": {"count": 1, "threads": 3, "visible_gpus": "-1"},
    }
    nobody = order_of(objects())["roles"]
    assert all(each["visible_gpus"] is None for each in nobody.values()), "where none asks, the images decide"


def test_jobs_hold_their_limits_behind_the_agents_own():
    rendered = objects(run=replace(RUN, deadline_s=100.5))
    job = rendered["Job/weather-abc123-worker"]["spec"]
    assert job["backoffLimit"] >= RUN.max_restarts * len(RUN.tasks)
    assert job["activeDeadlineSeconds"] == 251
    assert (job["completions"], job["parallelism"], job["completionMode"]) == (2, 2, "Indexed")
    assert "podFailurePolicy" not in job
    assert "activeDeadlineSeconds" not in objects()["Job/weather-abc123-worker"]["spec"]


def test_what_travels_is_in_as_many_config_maps_as_it_takes():
    packed = bytes(range(256)) * (PIECE_BYTES * 2 // 256 + 1)
    request = render(RUN, PLACE, KubernetesOptions(), GROUND)
    filled = with_payload(request["objects"], base64.b64encode(packed).decode())
    maps = [each for each in filled if each["kind"] == "ConfigMap"]
    assert [each["metadata"]["name"] for each in maps] == [
        "weather-abc123-code", "weather-abc123-code-1", "weather-abc123-code-2",
    ]  # fmt: skip
    pieces = [base64.b64decode(each["binaryData"][f"payload.{number}"]) for number, each in enumerate(maps)]
    assert b"".join(pieces) == packed
    assert max(map(len, pieces)) == PIECE_BYTES
    assert "start.py" in maps[0]["data"]
    assert [each["kind"] for each in filled if each not in maps] == [
        each["kind"] for each in request["objects"] if each["kind"] != "ConfigMap"
    ]
    sources = filled[0]["spec"]["template"]["spec"]["volumes"][0]["projected"]["sources"]
    assert {each["metadata"]["name"] for each in maps} <= {each["configMap"]["name"] for each in sources}


@pytest.mark.parametrize("options", [{}, TFJOB])
def test_everything_goes_with_the_owner(options):
    request = render(RUN, PLACE, KubernetesOptions(**options), GROUND)
    owner, *others = owned(request["objects"], "uid-1")
    wanted = [{"apiVersion": "batch/v1", "kind": "Job", "name": "weather-abc123-keeper", "uid": "uid-1"}]
    assert "ownerReferences" not in owner["metadata"]
    assert all(each["metadata"]["ownerReferences"] == wanted for each in others)
    again = json.loads(others[0]["stringData"]["run.json"])["keeper"]["tfjob"]
    assert again == (others[-1] if options else None), "also one that is submitted again"
    assert "ownerReferences" not in json.dumps(request), "the request is as it was"


def test_labels_find_everything_of_a_run():
    for each in (*objects().values(), *objects(TFJOB).values()):
        assert each["metadata"]["labels"]["yurt/run"] == "weather-abc123"
    for role, template in templates(objects()).items():
        assert template["metadata"]["labels"]["yurt/role"] == role


def test_a_trial_has_a_pod_of_each_role_and_the_keepers():
    for options in ({}, TFJOB):
        found = pods(list(objects(options).values()))
        assert [each["metadata"]["name"] for each in found] == [
            f"weather-abc123-{role}-0" for role in ("keeper", "chief", "worker", "ps")
        ]


@pytest.mark.parametrize(
    ("options", "ground", "words"),
    [
        ({}, Ground(unknown="nothing is known of the cluster: it is away"), "nothing is known of the cluster"),
        ({"scheduling": {"by": "kueue", "queue": "q"}}, GROUND, "Kueue admits the job of each role by itself"),
        ({"scheduling": {"by": "volcano"}, **TFJOB}, GROUND, "--gang-scheduler-name=volcano"),
        ({"suspend": True}, GROUND, "nothing of it starts until somebody resumes it"),
        ({"init_containers": POD["init_containers"], **TFJOB}, GROUND, "init container that fails again without end"),
        ({"managed_by": "x"}, GROUND, "managed_by is of a TFJob"),
        ({"spread": "required"}, "small", "4 tasks are to have a node each, and 1 are ready"),
        ({"node_selector": {"pool": "gpu"}}, "small", "no node that is ready has the labels that chief asks for: pool=gpu"),
        ({"limits": {"cpu": 8}}, "small", "worker asks for 1 of cpu"),
        ({"requests": {"memory": "64Gi"}}, "small", "ps asks for 64Gi of memory, and the largest ready node has 4Gi"),
        ({"limits": {"nvidia.com/gpu": 1}}, "small", "chief asks for 1 of nvidia.com/gpu, and the largest ready node has none"),
    ],
)  # fmt: skip
def test_what_a_person_should_know_before(options, ground, words):
    if ground == "small":
        ground = replace(GROUND, nodes=(Node("n1", {"cpu": "500m", "memory": "4Gi"}),))
    notes = render(RUN, PLACE, KubernetesOptions.model_validate(options), ground)["notes"]
    assert any(words in note for note in notes), notes


def test_a_users_word_on_lost_nodes_wins():
    own = {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5}
    found = templates(objects({"tolerations": [own]}))["worker"]["spec"]["tolerations"]
    assert [(each["key"], each["tolerationSeconds"]) for each in found] == [
        ("node.kubernetes.io/unreachable", 5),
        ("node.kubernetes.io/not-ready", 30),
    ]
