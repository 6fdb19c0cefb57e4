"""What is refused before it is sent: what the cluster would refuse, and what it would take and never run."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from tests.engines.test_kubernetes_render import GROUND, POD, RUN, RUN_OPTIONS, TFJOB
from yurt.contract.spec import TaskSpec
from yurt.engines.kubernetes import names
from yurt.engines.kubernetes.checks import problems
from yurt.engines.kubernetes.options import KubernetesOptions


def found(options=None, run=RUN, ground=GROUND):
    return problems(run, KubernetesOptions.model_validate(options or {}), ground)


def mounted(source, **mount):
    return {"volumes": [{"name": "data", **source}], "volume_mounts": [{"name": "data", "mountPath": "/data", **mount}]}


@pytest.mark.parametrize("way", ["none", "tfjob"])
def test_what_is_right_is_taken(way):
    assert found({"operator": way}) == []
    options = {**POD, **RUN_OPTIONS, "operator": way, "restricted": False, "limits": {"memory": "3Gi"}}
    options["requests"] = {"cpu": 0.5, "memory": "512Mi"}
    assert found(options) == []
    assert found({"operator": way, "restricted": True, **mounted({"emptyDir": {"medium": "Memory"}})}) == []


# Each option in Kubernetes' words, wrong in one way; and what is said of it.
WRONG = {
    "misspelt": ({"tolerations": [{"keys": "gpu"}]}, "tolerations[0]: keys is no field of a Toleration: did you mean key?"),
    "snake case": ({"pod": {"host_network": True}}, "pod: host_network is no field of a PodSpec: did you mean hostNetwork?"),
    "not a word of it": ({"tolerations": [{"key": "a", "effect": "Never"}]}, "tolerations[0].effect must be one of NoSchedule"),
    "a number for text": (
        {"tolerations": [{"key": "a", "value": 1}]},
        "tolerations[0].value must be text, not 1: put it in quotes",
    ),
    "text for a number": (
        {"pod": {"activeDeadlineSeconds": "1"}},
        "pod.activeDeadlineSeconds must be a whole number, not '1'",
    ),
    "a toleration of nothing": ({"tolerations": [{"effect": "NoExecute"}]}, "then its operator must be Exists"),
    "a toleration for a while": (
        {"tolerations": [{"key": "a", "operator": "Exists", "tolerationSeconds": 3}]},
        "tolerationSeconds needs effect NoExecute",
    ),
    "a value that is not asked for": (
        {"tolerations": [{"key": "a", "operator": "Exists", "value": "b"}]},
        "with operator Exists there is no value",
    ),
    "no source of variables": ({"env_from": [{"prefix": "A_"}]}, "env_from[0] must be one of configMapRef, secretRef"),
    "no name": ({"env_from": [{"secretRef": {}}]}, "env_from[0].secretRef has no name"),
    "missing": ({"volumes": [{"name": "x", "persistentVolumeClaim": {}}]}, "volumes[0].persistentVolumeClaim has no claimName"),
    "two in one": ({"volumes": [{"name": "x", "emptyDir": {}, "secret": {}}]}, "volumes[0] is emptyDir and secret, and can be only one"),
    "no list": ({"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {}}}}, "must be a list, not {}"),
    "deep": (
        {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
            {"matchExpressions": [{"key": "a", "operator": "in", "values": ["b"]}]}]}}}},
        "nodeSelectorTerms[0].matchExpressions[0].operator must be one of In, NotIn",
    ),
    "a container's, in the pod": ({"pod": {"volumeMounts": []}}, "pod: volumeMounts: say it as volume_mounts"),
    "an option's": ({"pod": {"nodeSelector": {"a": "b"}}}, "pod: nodeSelector: say it as node_selector"),
    "a sidecar's": ({"pod": {"containers": []}}, "pod: containers: say it as sidecars"),
    "Yurt's": ({"container": {"command": ["x"]}}, "container: command: that is Yurt's to say"),
    "limits in the container": ({"container": {"resources": {"limits": {"cpu": 1}}}}, "container: resources.limits: say it as limits"),
    "a sidecar that ends": ({"sidecars": [{"name": "a", "image": "a", "restartPolicy": "Never"}]}, "sidecars[0]: restartPolicy"),
    "of one role": ({"roles": {"worker": {"volumes": [{"nam": "x"}]}}}, "roles: worker: volumes[0]: nam is no field"),
    "no such volume": ({"volume_mounts": [{"name": "x", "mountPath": "/x"}]}, "/x is to show x, and no volume is called so"),
    "in a sidecar": (
        {"sidecars": [{"name": "a", "image": "a", "volumeMounts": [{"name": "x", "mountPath": "/x"}]}]},
        "a: volume_mounts: /x is to show x",
    ),
    "volume twice": ({"volumes": [{"name": "x"}, {"name": "x"}]}, "volumes: x is there twice"),
    "Yurt's volume": ({"volumes": [{"name": "yurt-code"}]}, "volumes: yurt-code is there twice (names with yurt- are Yurt's)"),
    "name of a volume": ({"volumes": [{"name": "My_Data"}]}, "volumes: 'My_Data' cannot be the name of a volume"),
    "place twice": (
        {"volumes": [{"name": "x"}], "volume_mounts": [{"name": "x", "mountPath": "/x"}, {"name": "x", "mountPath": "/x/"}]},
        "volume_mounts: two are at /x",
    ),
    "over Yurt's files": ({**mounted({"emptyDir": {}}, mountPath="/yurt/run")}, "/yurt/run is where Yurt's own files are"),
    "port without a name": ({"container": {"ports": [{"containerPort": 6006}]}}, "port 6006 has no name"),
    "Yurt's port": ({"container": {"ports": [{"name": "x", "containerPort": 2222}]}}, "container: two of the ports are 2222"),
    "Yurt's port's name": ({"container": {"ports": [{"name": "tfjob-port", "containerPort": 2223}]}}, "two of the ports are tfjob-port"),
    "long name of a port": ({"container": {"ports": [{"name": "tensorboard-port", "containerPort": 1}]}}, "cannot be the name of a port"),
    "no port": ({"container": {"ports": [{"name": "a", "containerPort": 70000}]}}, "there is no port 70000"),
    "two containers": ({"sidecars": [{"name": "tensorflow", "image": "a"}]}, "two of a pod are called tensorflow"),
    "no image": ({"sidecars": [{"name": "a"}]}, "a: it names no image"),
    "not an image": ({"sidecars": [{"name": "a", "image": "Nginx: latest"}]}, "a: image: 'Nginx: latest' is no name of an image"),
    "variable twice": ({"env": [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]}, "env: A is there twice"),
    "variable in both": ({"env": [{"name": "TEXT", "value": "1"}]}, "env: TEXT: also in the job's own env"),
    "two sources of a variable": (
        {"env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "a"}, "secretKeyRef": {"name": "a", "key": "b"}}}]},
        "env[0].valueFrom is fieldRef and secretKeyRef",
    ),
    "no quantity": ({"limits": {"memory": "2GiB"}}, "limits: memory: '2GiB' is no quantity"),
    "negative": ({"limits": {"cpu": -1}}, "limits: cpu: -1 is negative"),
    "thousandths of a byte": ({"requests": {"memory": "512m"}}, "memory: 512m is a part of a byte: did you mean 512Mi?"),
    "half a GPU": ({"limits": {"nvidia.com/gpu": 0.5}}, "nvidia.com/gpu: 0.5 is not whole"),
    "more asked than allowed": ({"requests": {"cpu": 4}, "limits": {"cpu": 2}}, "requests: cpu is 4, more than its limit of 2"),
    "unequal GPUs": (
        {"requests": {"nvidia.com/gpu": 1}, "limits": {"nvidia.com/gpu": 2}},
        "nvidia.com/gpu must be the same in requests and limits, not 1 and 2",
    ),
    "no resource": ({"limits": {"my gpu": 1}}, "limits: my gpu: is no name of a resource"),
    "label's value": ({"labels": {"team": "my team"}}, "labels: team: 'my team' is no value of a label"),
    "label's key": ({"node_selector": {"my pool": "a"}}, "node_selector: 'my pool' is no key of a label"),
    "annotation's key": ({"annotations": {"my note": "a"}}, "annotations: 'my note' is no key of an annotation"),
    "host network": ({"pod": {"hostNetwork": True}}, "add dnsPolicy: ClusterFirstWithHostNet"),
    "Kueue without a queue": ({"scheduling": {"by": "kueue"}}, "scheduling: queue: Kueue needs one"),
    "Kueue in parts": ({"scheduling": {"by": "kueue", "queue": "q", "min_available": 1}}, "scheduling: min_available: Kueue admits"),
    "more than all": ({"scheduling": {"by": "volcano", "min_available": 9}}, "9 of 4 tasks never come together"),
    "Volcano's time": ({"scheduling": {"by": "volcano", "timeout_s": 9}}, "scheduling: timeout_s: Volcano's groups have no such thing"),
    "gang's resources": ({"scheduling": {"by": "volcano", "min_resources": {"cpu": "x"}}}, "min_resources: cpu: 'x' is no quantity"),
    "unknown manager": ({**TFJOB, "managed_by": "me"}, "managed_by: me is none that the operator takes"),
    "namespace": ({"namespace": "My"}, "namespace: My is no DNS label"),
    "keeper's account twice": ({"roles": {"keeper": {"service_account": "a"}}}, "roles: keeper: service_account: say it as keeper_account"),
}  # fmt: skip


@pytest.mark.parametrize(("options", "words"), WRONG.values(), ids=WRONG)
def test_each_mistake_is_said_with_its_key(options, words):
    sentences = found(options)
    assert any(words in each for each in sentences), sentences
    assert all(each.startswith("engines: kubernetes: ") for each in sentences)
    assert len(sentences) == len(set(sentences)) <= 2, "once, not for each role"


def test_it_is_said_in_whose_pods_it_is():
    (sentence,) = found({"roles": {"ps": {"requests": {"memory": "2Gi"}}}})
    assert sentence.endswith("(in the pods of ps)")


RESTRICTED = {
    "host's network": ({"pod": {"hostNetwork": True, "dnsPolicy": "ClusterFirstWithHostNet"}}, "pod: hostNetwork"),
    "host's folder": (mounted({"hostPath": {"path": "/data"}}), "volumes: data is a hostPath"),
    "privileged": ({"security_context": {"privileged": True}}, "security_context: privileged"),
    "escalation": ({"security_context": {"allowPrivilegeEscalation": True}}, "allowPrivilegeEscalation"),
    "root": ({"pod_security_context": {"runAsUser": 0}}, "pod_security_context: runAsUser 0 is root"),
    "root allowed": ({"security_context": {"runAsNonRoot": False}}, "security_context: runAsNonRoot"),
    "capability": ({"security_context": {"capabilities": {"add": ["SYS_PTRACE"]}}}, "the capability SYS_PTRACE"),
    "not all dropped": ({"security_context": {"capabilities": {"drop": ["NET_RAW"]}}}, "drop ALL"),
    "seccomp": ({"pod_security_context": {"seccompProfile": {"type": "Unconfined"}}}, "seccompProfile Unconfined"),
    "sysctl": ({"pod_security_context": {"sysctls": [{"name": "kernel.msgmax", "value": "1"}]}}, "kernel.msgmax"),
    "host's port": ({"container": {"ports": [{"name": "a", "containerPort": 80, "hostPort": 80}]}}, "hostPort 80"),
    "sidecar": ({"sidecars": [{"name": "a", "image": "a", "securityContext": {"privileged": True}}]}, "a: security_context"),
}  # fmt: skip


@pytest.mark.parametrize(("options", "words"), RESTRICTED.values(), ids=RESTRICTED)
def test_what_restricted_pods_may_not_have_is_said(options, words):
    assert found(options) == [], "it is a matter of the namespace"
    sentences = found({**options, "restricted": True})
    assert any(words in each for each in sentences), sentences


# The run itself.


def test_an_image_is_needed_for_each_pod():
    run = replace(RUN, image=None)
    assert found(run=run) == ["image: the job names none, and Kubernetes needs one"]
    own = {role: {"container": {"image": "tf:1"}} for role in ("chief", "worker", "ps")}
    assert found({"roles": own, "keeper_image": "python:3.12"}, run=run) == []
    assert "'Tf :1' is no name of an image" in found(run=replace(RUN, image="Tf :1"))[0]


@pytest.mark.parametrize(
    "image",
    ["tf", "tf:2.21", "a/b/c:1", "localhost:5000/tf", "Registry.example.com/a-b__c/d.e:X_1", f"tf@sha256:{'a' * 64}"],
)
def test_names_of_images_that_are_right(image):
    assert found(run=replace(RUN, image=image)) == []


def test_one_chief():
    tasks = (*RUN.tasks, TaskSpec("chief", 1, ("a",)))
    assert "roles: chief: there can be one, not 2" in found(run=replace(RUN, tasks=tasks))


def test_names_that_are_made_are_at_most_63():
    longest = "w" * (63 - len("-worker-1"))
    assert found(run=replace(RUN, run_id=longest)) == []
    (sentence,) = found(run=replace(RUN, run_id=f"{longest}w"))
    assert "has 64 characters, and Kubernetes takes 63" in sentence
    again = found(TFJOB, run=replace(RUN, run_id=longest))
    assert any(f"{longest}-3-worker-1" in each for each in again), "room for a TFJob that is submitted again"


@pytest.mark.parametrize("run_id", ["9lives", "my_job", "my.job", "Job", "job-"])
def test_names_are_dns_labels(run_id):
    assert any("is no DNS label" in each for each in found(run=replace(RUN, run_id=run_id)))


def test_the_longest_job_name_fits():
    assert names.broken_rule(f"{'a' * 36}-abcdef-999-worker-9999") is None


def test_a_run_that_is_larger_than_a_secret_is_refused():
    tasks = tuple(TaskSpec("worker", index, ("python", "x" * 1000)) for index in range(1000))
    (sentence,) = found(run=replace(RUN, tasks=tasks))
    assert "1000 tasks are 1.1 MiB" in sentence
    assert len(json.dumps(replace(RUN, tasks=tasks[:800]).to_json())) < 1_000_000
    assert found(run=replace(RUN, tasks=tasks[:800])) == []


# The cluster.


def test_a_tfjob_needs_a_cluster_that_serves_them():
    (sentence,) = found(TFJOB, ground=replace(GROUND, tfjobs=False))
    assert "the cluster serves no TFJob" in sentence
    assert "operator: none" in sentence
    assert found(TFJOB, ground=replace(GROUND, tfjobs=None)) == []


@pytest.mark.parametrize(
    ("version", "right"), [("v1.27.9", False), ("v1.28.0", True), ("v1.36.3+k3s1", True), ("", True)]
)
def test_the_oldest_cluster(version, right):
    assert (found(ground=replace(GROUND, version=version)) == []) is right


def test_sidecars_need_a_cluster_that_has_them():
    assert "they came with 1.29" in found({"sidecars": POD["sidecars"]}, ground=replace(GROUND, version="v1.28.3"))[0]


def test_a_run_that_is_only_shown_has_no_id_yet():
    assert found(run=replace(RUN, run_id="weather-RUN")) == []
