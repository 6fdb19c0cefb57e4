"""The parts of `yurt doctor --on kubernetes` and `yurt kubernetes prepare` that need no cluster."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import pytest

from yurt.cli import findings as told
from yurt.cli.on_kubernetes import pool_of
from yurt.engines.finding import Level, good, problem, warning, worst
from yurt.engines.kubernetes.client import KubernetesError
from yurt.engines.kubernetes.prepare import accounts, gpus, manifests, nodes, proof_objects, rights, server
from yurt.engines.kubernetes.prepare.cloud import Cloud, cloud_of
from yurt.engines.kubernetes.prepare.operator_install import adapted
from yurt.engines.kubernetes.prepare.webhook import Asked, Reach, Served, finding
from yurt.errors import UsageError

CRD = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "tfjobs.kubeflow.org"},
}
HOOK = {
    "apiVersion": "admissionregistration.k8s.io/v1",
    "kind": "ValidatingWebhookConfiguration",
    "metadata": {"name": "v"},
}
SPACE = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kubeflow"}}
OPERATOR = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "training-operator", "namespace": "kubeflow"},
    "spec": {"template": {"spec": {"containers": [{"name": "training-operator", "image": "upstream:1"}]}}},
}


def node(name, *, ready=True, labels=None, taints=(), cordoned=False, provider="", **allocatable):
    return {
        "metadata": {"name": name, "labels": labels or {}},
        "spec": {"taints": list(taints), "unschedulable": cordoned, "providerID": provider},
        "status": {
            "allocatable": {key.replace("gpu", "nvidia.com/gpu"): value for key, value in allocatable.items()},
            "conditions": [{"type": "Ready", "status": str(ready)}],
        },
    }


def pod(where, phase="Running", **requests):
    return {
        "metadata": {"name": "p", "labels": {}},
        "spec": {"nodeName": where, "containers": [{"resources": {"requests": requests}}]},
        "status": {"phase": phase},
    }


@dataclass
class Seen:
    """As much of a reading as checks of nodes want."""

    pool_nodes: list[Any]
    pods: list[Any] = field(default_factory=list)
    pool: tuple[str, str] | None = None
    cloud: Cloud = field(default_factory=Cloud)
    version: str = "v1.36.3"

    @property
    def nodes(self):
        return self.pool_nodes

    def command(self, *words):
        return " ".join(["yurt kubernetes prepare", *words])


def levels(findings):
    return [(each.level, each.what) for each in findings]


# Nodes and GPUs.


def test_the_most_that_is_free_on_one_node_counts_pods_and_prefers_gpus():
    seen = Seen(
        [node("big", cpu="8", memory="32Gi"), node("gpu", cpu="4", memory="16Gi", gpu="2")],
        [pod("big", cpu="500m", memory="2Gi"), pod("gpu", cpu="1500m", **{"nvidia.com/gpu": "1"}), pod("", cpu="9")],
    )
    ((level, what),) = levels(nodes.check(seen))
    assert level is Level.GOOD
    assert what == "2 nodes take pods; the most free on one: gpu: 2500m CPUs, 16Gi memory, 1 GPUs"


def test_init_containers_and_sidecars_are_counted_as_the_scheduler_does():
    asks = lambda cpu, **more: {"resources": {"requests": {"cpu": cpu}}, **more}  # noqa: E731
    one = {
        "metadata": {"name": "p"},
        "spec": {
            "nodeName": "a",
            "containers": [asks("1"), asks("500m")],
            "initContainers": [asks("3"), asks("250m", restartPolicy="Always")],
            "overhead": {"cpu": "100m"},
        },
    }
    (room,) = nodes.rooms([node("a", cpu="4")], [one])
    assert room.free["cpu"] == Decimal("0.9")


@pytest.mark.parametrize(
    ("found", "level", "words", "mend"),
    [
        ([], Level.PROBLEM, "has no node", "kubectl describe nodes"),
        ([node("a", ready=False, cpu="1")], Level.PROBLEM, "no node is ready", "kubectl describe nodes"),
        ([node("a", cordoned=True, cpu="1")], Level.PROBLEM, "no node is ready", "kubectl describe nodes"),
        (
            [node("a", taints=[{"key": "gpu", "value": "yes", "effect": "NoSchedule"}], cpu="1")],
            Level.WARNING,
            "by a taint (gpu)",
            "tolerations: [{key: gpu, value: yes, effect: NoSchedule}]",
        ),
        ([node("a", cpu="1"), node("b", ready=False)], Level.WARNING, "node b is not ready", "kubectl describe node b"),
        ([node("a", cpu="1"), node("b", cordoned=True)], Level.WARNING, "node b is cordoned", "kubectl uncordon b"),
    ],
)
def test_nodes_that_take_no_pods(found, level, words, mend):
    first = next(each for each in nodes.check(Seen(found)) if each.level is not Level.GOOD)
    assert first.level is level
    assert words in first.what
    assert mend in first.mend
    assert first.why


def test_a_pool_without_nodes_says_how_to_label_some():
    (found,) = nodes.check(Seen([], pool=("pool", "training")))
    assert found.level is Level.PROBLEM
    assert found.mend == "yurt kubernetes prepare --node-pool-label pool=training --nodes NODE,NODE"


@pytest.mark.parametrize(
    "sign", [{"nvidia.com/gpu.present": "true"}, {"cloud.google.com/gke-accelerator": "nvidia-l4"}]
)
def test_gpus_that_nobody_can_ask_for(sign):
    (found,) = gpus.check(Seen([node("a", labels=sign, cpu="4"), node("b", cpu="4")]))
    assert found.level is Level.WARNING
    assert "node a has GPUs" in found.what
    assert "nvidia-device-plugin" in found.mend
    on_gke = Seen([node("a", labels=sign)], cloud=Cloud("gke"))
    assert "driver" in next(gpus.check(on_gke)).mend
    served = Seen([node("a", labels=sign, gpu="4"), node("b", labels={"nvidia.com/gpu.present": "false"})])
    ((level, what),) = levels(gpus.check(served))
    assert (level, what) == (Level.GOOD, "4 of nvidia.com/gpu on 1 node")


@pytest.mark.parametrize(
    ("version", "level"),
    [("v1.27.9", Level.PROBLEM), ("v1.28.0", Level.GOOD), ("v1.30.5-gke.10", Level.GOOD), ("?", Level.UNKNOWN)],
)
def test_servers_that_are_too_old(version, level):
    (found,) = server.check(Seen([], version=version))
    assert found.level is level


# Whose cluster it is.


@pytest.mark.parametrize(
    ("provider", "version", "context", "wanted"),
    [
        ("gce://proj/europe-west1-b/n1", "v1.30.5-gke.1", "gke_proj_europe-west1_train", ("gke", "train", "europe-west1", "proj")),
        ("gce://proj/europe-west1-b/n1", "v1.30.5-gke.1", "mine", ("gke", "CLUSTER", "europe-west1-b", "proj")),
        ("", "v1.30.5-gke.1", "gke_proj_europe-west1_train", ("gke", "train", "europe-west1", "proj")),
        ("aws:///eu-west-1a/i-0", "v1.31.0-eks-1", "arn:aws:eks:eu-central-1:123:cluster/t", ("eks", "t", "eu-central-1", "PROJECT")),
        ("aws:///eu-west-1a/i-0", "v1.31.0", "mine", ("eks", "CLUSTER", "eu-west-1", "PROJECT")),
        ("azure:///subscriptions/s/resourceGroups/mc_g/providers/x", "v1.31.0", "aks", ("aks", "aks", "LOCATION", "PROJECT")),
        ("kind://docker/kind/kind-control-plane", "v1.31.0", "kind-kind", ("other", "CLUSTER", "LOCATION", "PROJECT")),
    ],
)  # fmt: skip
def test_clouds_are_recognised(provider, version, context, wanted):
    found = cloud_of([node("a", provider=provider)], version, context)
    assert (found.name, found.cluster, found.location, found.project) == wanted


@pytest.mark.parametrize(
    ("cloud", "words"),
    [
        (
            Cloud("gke", "t", "europe-west1", "proj"),
            ["gcloud compute firewall-rules create", "masterIpv4CidrBlock", "tcp:9443"],
        ),
        (Cloud("eks", "t", "eu-west-1"), ["authorize-security-group-ingress", "clusterSecurityGroupId", "--port 9443"]),
        (Cloud("aks", group="mc_g"), ["az network nsg rule create", "mc_g", "--destination-port-ranges 9443"]),
        (Cloud(), ["allow TCP 9443"]),
    ],
)
def test_a_webhook_that_is_cut_off_names_the_rule_of_each_cloud(cloud, words):
    asked = Asked(Reach.CUT_OFF, "failed calling webhook: context deadline exceeded")
    found = finding(Seen([], cloud=cloud), asked, Served("kubeflow", "training-operator", 9443, {}))
    assert found.level is Level.PROBLEM
    for word in words:
        assert word in found.mend
    for port in ("443", "6443", "9443"):
        assert port in found.why


# Manifests of others.


def write(folder, *objects):
    (folder / "all.yaml").write_text("---\n".join(json.dumps(each) + "\n" for each in objects))
    return str(folder)


def test_what_others_lean_on_comes_first_and_webhooks_last(tmp_path):
    (tmp_path / "b.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [HOOK, OPERATOR]}))
    source = manifests.source_of(write(tmp_path, CRD, SPACE))
    kinds = [each["kind"] for each in manifests.read(source)]
    assert kinds == ["Namespace", "CustomResourceDefinition", "Deployment", "ValidatingWebhookConfiguration"]


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="no kubectl on PATH")
def test_a_folder_with_a_kustomization_is_read_by_kubectl(tmp_path):
    write(tmp_path, OPERATOR)
    (tmp_path / "kustomization.yaml").write_text("resources: [all.yaml]\nnamespace: elsewhere\n")
    (found,) = manifests.read(manifests.source_of(str(tmp_path)))
    assert found["metadata"]["namespace"] == "elsewhere"


def test_the_operator_says_its_release_and_gets_the_image_that_is_wanted():
    source = manifests.source_of("v1.9.3")
    assert "manifests/overlays/standalone?ref=v1.9.3" in source.in_words()
    (found,) = adapted([OPERATOR], source, "mirror/operator:1")
    assert found["metadata"]["annotations"] == {"yurt/operator-release": "1.9.3"}
    assert found["spec"]["template"]["spec"]["containers"][0]["image"] == "mirror/operator:1"
    assert "annotations" not in OPERATOR["metadata"]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("a: [", "is no YAML"),
        ("hello: world\n", "no kind or apiVersion"),
        ("", "holds no objects"),
    ],
)
def test_manifests_that_are_none(tmp_path, content, words):
    (tmp_path / "x.yaml").write_text(content)
    with pytest.raises(UsageError, match=words):
        manifests.read(manifests.source_of(str(tmp_path / "x.yaml")))


@pytest.mark.parametrize("text", ["nowhere", "latest", "1.9"])
def test_a_source_that_is_none(text, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match="no such folder or file") as told:
        manifests.source_of(text)
    assert "1.9.3" in told.value.hint


# Accounts.


def test_roles_have_the_rights_of_the_tables_and_no_more():
    for name, objects, table in (
        ("yurt-keeper", accounts.keeper("train"), rights.OF_KEEPERS),
        ("yurt-user", accounts.users("train", []), (*rights.OF_USERS, *rights.OF_OPERATOR_USERS)),
    ):
        (role,) = [each for each in objects if each["kind"] == "Role"]
        assert role["metadata"]["name"] == name
        given = {(rule["apiGroups"][0], rule["resources"][0], verb) for rule in role["rules"] for verb in rule["verbs"]}
        assert given == {(right.kind.group, right.resource, verb) for right in table for verb in right.verbs}
        assert "*" not in json.dumps(role["rules"])


def test_who_may_run_jobs():
    found = accounts.subjects(["ada"], ["team"], ["robot", "ci:runner"], "train")
    assert [(each["kind"], each["name"], each.get("namespace")) for each in found] == [
        ("User", "ada", None), ("Group", "team", None), ("ServiceAccount", "robot", "train"), ("ServiceAccount", "runner", "ci"),
    ]  # fmt: skip
    for wrong in ("", ":", "ci:", ":x"):
        with pytest.raises(UsageError, match="is no account"):
            accounts.subjects([], [], [wrong], "train")


@pytest.mark.parametrize("text", ["training", "=x", "a=b=c", "a b=c", "pool=-x"])
def test_labels_that_are_none(text):
    with pytest.raises(UsageError, match="is no label"):
        pool_of(text)
    assert pool_of("cloud.google.com/gke-nodepool=train") == ("cloud.google.com/gke-nodepool", "train")


@pytest.mark.parametrize("name", ["Train", "a_b", "../kube-system", "-a", "a" * 64, ""])
def test_namespaces_that_are_none(name):
    from click.testing import CliRunner

    from yurt.cli.doctor import doctor

    ended = CliRunner().invoke(doctor, ["--on", "kubernetes", "--namespace", name])
    assert isinstance(ended.exception, UsageError)
    assert "can be no namespace" in str(ended.exception)


# How it is told.


def test_the_pods_of_a_proof_keep_to_the_restricted_level_and_say_what_they_want():
    proof = proof_objects.Proof("p", "train", "python:3.11-slim")
    for job in (proof_objects.job(proof), proof_objects.claiming_job(proof)):
        spec = job["spec"]["template"]["spec"]
        assert spec["securityContext"]["runAsNonRoot"]
        assert spec["containers"][0]["securityContext"]["capabilities"] == {"drop": ["ALL"]}
        assert spec["containers"][0]["resources"]["limits"] == spec["containers"][0]["resources"]["requests"]
        assert job["spec"]["backoffLimit"] == 0
        assert job["spec"]["ttlSecondsAfterFinished"]


def test_findings_for_people_and_machines():
    found = [good("a", "fine"), warning("b", "so so", "it may", "do this\nand that"), problem("c", "bad", "it does")]
    assert worst(found) is Level.PROBLEM
    assert told.summary(found) == "1 problem hinders runs; 1 warning"
    assert told.summary(found[:1]) == "nothing hinders a run"
    lines = list(told.lines(found[1], colour=False))
    assert [line.split(maxsplit=1)[0] for line in lines] == ["warning", "why:", "mend:", "and"]
    assert told.as_value(found[0]) == {"check": "a", "level": "good", "what": "fine", "why": None, "mend": None}


def test_what_may_not_be_seen_is_a_finding_and_the_rest_is_looked_at():
    from yurt.engines.kubernetes.prepare.doctor import seen

    def check():
        yield good("nodes", "one")
        raise KubernetesError("ada may not list nodes", status=403)

    found = list(seen("nodes", check()))
    assert [each.level for each in found] == [Level.GOOD, Level.UNKNOWN]
    assert "ada may not list nodes" in found[1].what
