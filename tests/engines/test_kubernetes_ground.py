"""`yurt doctor` and `yurt kubernetes prepare` on a real cluster: what is good, what is bad, what is made, who may what."""

from __future__ import annotations

import json
import subprocess
from contextlib import contextmanager

import pytest

from tests.cli.conftest import folder  # noqa: F401 - a fixture
from tests.support.runs import wait_until
from yurt.engines.finding import Level
from yurt.engines.kubernetes import kinds
from yurt.engines.kubernetes.client import Client, KubernetesError
from yurt.engines.kubernetes.prepare import accounts, rights, webhook
from yurt.engines.kubernetes.prepare.reading import Reading
from yurt.engines.kubernetes.session import open_session

#: Every right that a user needs, with its verb.
EACH = [(right, verb) for right in (*rights.OF_USERS, *rights.OF_OPERATOR_USERS) for verb in right.verbs]


@pytest.fixture
def prepared(kubernetes_cluster, kubernetes_namespace, monkeypatch):
    """A namespace with what `yurt kubernetes prepare` makes in it, for an account called robot."""
    monkeypatch.setenv("KUBECONFIG", str(kubernetes_cluster.kubeconfig))
    kubernetes_cluster.kubectl("create", "serviceaccount", "robot", "-n", kubernetes_namespace)
    robot = accounts.subjects([], [], ["robot"], kubernetes_namespace)
    objects = [*accounts.keeper(kubernetes_namespace), *accounts.users(kubernetes_namespace, robot)]
    everything = {"apiVersion": "v1", "kind": "List", "items": objects}
    kubernetes_cluster.kubectl("create", "-f", "-", content=everything)
    return kubernetes_namespace


def prepare(folder, namespace, *words):  # noqa: F811
    return folder.yurt("kubernetes", "prepare", "--namespace", namespace, "--operator", "none", *words)


def doctor(folder, namespace, *words):  # noqa: F811
    """Its exit code, and what it has found by check."""
    done = folder.yurt("doctor", "--on", "kubernetes", "--namespace", namespace, "--json", *words)
    assert done.stderr == "", done.stderr
    found = json.loads(done.stdout)
    assert found["ok"] is (done.returncode == 0)
    return done.returncode, found["findings"]


def of(findings, check, level=None):
    return [each for each in findings if each["check"] == check and level in (None, each["level"])]


def reading(namespace):
    return Reading(Client(open_session(namespace=namespace), patience_s=2))


def as_account(cluster, namespace, name, file):
    """A kubeconfig of the cluster with a token of an account of the namespace."""
    config = json.loads(cluster.kubectl("config", "view", "--raw", "-o", "json"))
    token = cluster.kubectl("create", "token", name, "-n", namespace).strip()
    config["users"] = [{"name": each["name"], "user": {"token": token}} for each in config["users"]]
    file.write_text(json.dumps(config))
    return file


@contextmanager
def without(cluster, namespace, right, verb):
    """The role of users lacks one right as long as this lasts."""
    role = accounts.users(namespace, [])[0]
    lacking = json.loads(json.dumps(role))
    for rule in lacking["rules"]:
        if rule["resources"] == [right.resource] and rule["apiGroups"] == [right.kind.group]:
            rule["verbs"].remove(verb)
    lacking["rules"] = [each for each in lacking["rules"] if each["verbs"]]
    cluster.kubectl("replace", "-f", "-", content=lacking)
    try:
        yield
    finally:
        cluster.kubectl("replace", "-f", "-", content=role)


def test_a_prepared_namespace_is_good_and_two_pods_prove_it(kubernetes_cluster, prepared, folder):  # noqa: F811
    image = kubernetes_cluster.python_image
    code, found = doctor(folder, prepared, "--prove", "--image", image, "--within", "60")
    assert code == 0, found
    assert [each["level"] for each in of(found, "proof")][:3] == ["good"] * 3
    said = " / ".join(each["what"] for each in of(found, "proof"))
    for words in ("found each other by name", "a port of a pod is reached from here", "the log of a pod is read"):
        assert words in said
    if len(kubernetes_cluster.nodes) == 2:
        assert "on {} and {}".format(*kubernetes_cluster.nodes) in said
    for kind in ("jobs", "services", "persistentvolumeclaims"):
        assert kubernetes_cluster.get(kind, "-n", prepared)["items"] == []


@pytest.fixture
def unprepared(kubernetes_cluster, kubernetes_namespace, monkeypatch):
    monkeypatch.setenv("KUBECONFIG", str(kubernetes_cluster.kubeconfig))
    return kubernetes_namespace


def test_what_is_missing_is_made_and_what_is_there_is_not(kubernetes_cluster, unprepared, folder):  # noqa: F811
    words = ("--service-account", "robot", "--user", "ada")
    done = prepare(folder, unprepared, *words, "--yes")
    assert done.returncode == 0, done.stdout + done.stderr
    assert [line for line in done.stdout.splitlines() if line.startswith("made")] == [
        "made       the account yurt-keeper, which submits a lost TFJob again",
        "made       the role yurt-user, the least that running jobs needs, for ada, for robot",
    ]
    before = kubernetes_cluster.get("role", "-n", unprepared, "yurt-user")
    done = prepare(folder, unprepared, *words)
    assert "will make" not in done.stdout
    assert done.stdout.count("there is  ") == 3
    less = json.dumps({"rules": before["rules"][1:]})
    kubernetes_cluster.kubectl("patch", "role", "yurt-user", "-n", unprepared, "-p", less, "--type=merge")
    prepare(folder, unprepared, *words, "--yes")
    assert kubernetes_cluster.get("role", "-n", unprepared, "yurt-user")["rules"] == before["rules"]


def test_nothing_is_made_unless_somebody_says_so(kubernetes_cluster, folder, monkeypatch):  # noqa: F811
    monkeypatch.setenv("KUBECONFIG", str(kubernetes_cluster.kubeconfig))
    name = "yurt-test-never-made"
    done = prepare(folder, name)
    assert done.returncode == 2
    assert "add --yes" in done.stderr
    dry = prepare(folder, name, "--dry-run", "--user", "ada")
    objects = json.loads(dry.stdout)["items"]
    assert [each["kind"] for each in objects] == [
        "Namespace", "ServiceAccount", "Role", "RoleBinding", "Role", "RoleBinding",
    ]  # fmt: skip
    assert name not in kubernetes_cluster.kubectl("get", "namespaces", "-o", "name")
    code, found = doctor(folder, name)
    assert code == 1
    assert of(found, "namespace")[0]["mend"].startswith("yurt kubernetes prepare")


def test_an_account_with_the_least_rights_proves_the_ground(kubernetes_cluster, prepared, folder, tmp_path):  # noqa: F811
    folder.environment["KUBECONFIG"] = str(as_account(kubernetes_cluster, prepared, "robot", tmp_path / "robot"))
    code, found = doctor(folder, prepared, "--prove", "--image", kubernetes_cluster.python_image, "--within", "60")
    assert code == 0, found
    assert not of(found, "rights", "problem")
    assert of(found, "nodes", "unknown"), "a namespace's account sees no nodes"
    assert of(found, "proof", "good")
    done = prepare(folder, prepared, "--user", "eve", "--yes")
    assert done.returncode == 6
    assert "nothing was made: this account may not" in done.stderr
    assert "rolebindings" in done.stderr


def test_each_right_that_is_missing_is_named(kubernetes_cluster, prepared, tmp_path, monkeypatch):
    monkeypatch.setenv("KUBECONFIG", str(as_account(kubernetes_cluster, prepared, "robot", tmp_path / "robot")))
    by_robot = reading(prepared)
    served = by_robot.operator_served
    assert rights.lacking(by_robot, (*rights.OF_USERS, *rights.OF_OPERATOR_USERS)) == []
    for right, verb in EACH:
        with without(kubernetes_cluster, prepared, right, verb):
            missing = rights.lacking(by_robot, (*rights.OF_USERS, *rights.OF_OPERATOR_USERS))
            assert missing == [(right, verb)], f"{verb} {right.resource}"
            if right.kind is kinds.TFJOB and not served:
                continue
            found = [each for each in rights.check(by_robot) if f"may not {verb} {right.resource}" in each.what]
            assert [each.level for each in found] == [Level.PROBLEM if right.always else Level.WARNING]
            assert found[0].why
            assert "kubernetes prepare" in found[0].mend


def test_a_namespace_with_a_level_and_a_quota(kubernetes_cluster, prepared, folder):  # noqa: F811
    prepare(folder, prepared, "--pod-security", "restricted", "--yes")
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "small"},
        "spec": {"hard": {"pods": "4", "requests.cpu": "2", "limits.memory": "4Gi"}},
    }
    kubernetes_cluster.kubectl("create", "-n", prepared, "-f", "-", content=quota)
    code, found = doctor(folder, prepared, "--prove", "--image", kubernetes_cluster.python_image, "--within", "60")
    assert code == 0, found
    assert of(found, "proof", "good"), "the pods of the proof keep to the restricted level and the quota"
    assert "restricted: true" in of(found, "namespace", "warning")[0]["mend"]
    left = of(found, "quota", "good")[0]["what"]
    assert "4 of pods" in left
    assert "4Gi of limits.memory" in left
    assert "counts cpus and memory" in of(found, "quota", "warning")[0]["what"]
    kubernetes_cluster.kubectl("patch", "quota", "small", "-n", prepared, "-p", '{"spec":{"hard":{"pods":"0"}}}')

    def used_up():
        return of(doctor(folder, prepared)[1], "quota", "problem")

    assert "0 left of pods" in wait_until(used_up, 20)[0]["what"]


def test_a_proof_that_cannot_be_says_why_and_leaves_nothing(kubernetes_cluster, prepared, folder):  # noqa: F811
    code, found = doctor(folder, prepared, "--prove", "--image", "localhost/nothing:1", "--within", "25")
    assert code == 1
    (told,) = of(found, "proof")
    assert "localhost/nothing:1" in told["what"]
    assert "--image" in told["mend"]
    assert kubernetes_cluster.get("jobs", "-n", prepared)["items"] == []


@contextmanager
def a_default_class(cluster):
    """A class of the tests' own cluster whose provisioner is nowhere."""
    default = {"storageclass.kubernetes.io/is-default-class": "true"}
    content = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "yurt-test", "annotations": default},
        "provisioner": "example.com/nobody",
    }
    cluster.kubectl("create", "-f", "-", content=content)
    try:
        yield
    finally:
        cluster.kubectl("delete", "storageclass", "yurt-test")


def test_a_claim_that_is_not_bound_is_told(kubernetes_cluster, prepared, folder):  # noqa: F811
    assert kubernetes_cluster.own, "the default class is that of everybody"
    code, found = doctor(folder, prepared)
    assert "there is no StorageClass" in of(found, "storage", "warning")[0]["what"]
    with a_default_class(kubernetes_cluster):
        code, found = doctor(folder, prepared, "--prove", "--image", kubernetes_cluster.python_image, "--within", "30")
        assert code == 0, found
        assert "nothing that is seen here runs its example.com/nobody" in of(found, "storage", "unknown")[0]["what"]
        assert "the claim is Pending" in of(found, "proof", "warning")[0]["what"]


@contextmanager
def a_webhook_of_ours(cluster, namespace, config):
    """The API server asks it about TFJobs of one namespace, beside the operator's own."""
    name = f"yurt-test-{namespace}"
    hook = {
        "name": "validator.tfjob.yurt.test",
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "timeoutSeconds": 1,
        "failurePolicy": "Fail",
        "clientConfig": config,
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
        "rules": [
            {"apiGroups": ["kubeflow.org"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["tfjobs"]}
        ],
    }
    cluster.kubectl(
        "create", "-f", "-", content={
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": name},
            "webhooks": [hook],
        },
    )  # fmt: skip
    try:
        yield
    finally:
        cluster.kubectl("delete", "validatingwebhookconfiguration", name)


def test_the_operator_is_found_and_its_webhook_answers(training_operator, prepared, folder):  # noqa: F811
    code, found = doctor(folder, prepared)
    assert code == 0, found
    assert "is ready" in of(found, "operator", "good")[0]["what"]
    assert "reaches the operator's webhook" in of(found, "webhook", "good")[0]["what"]
    assert "port 9443" in of(found, "webhook", "good")[0]["what"]


@pytest.mark.parametrize(
    ("address", "reach"),
    [("10.255.255.1:9443", webhook.Reach.CUT_OFF), ("127.0.0.1:1", webhook.Reach.NOT_THERE)],
)
def test_a_webhook_that_is_cut_off_is_told_from_one_that_does_not_serve(training_operator, prepared, address, reach):
    client = Client(open_session(namespace=prepared), patience_s=0.1)
    containers = [{"name": "tensorflow", "image": "none"}]
    tfjob = {
        "apiVersion": "kubeflow.org/v1",
        "kind": "TFJob",
        "metadata": {"name": "right"},
        "spec": {"tfReplicaSpecs": {"Worker": {"replicas": 1, "template": {"spec": {"containers": containers}}}}},
    }

    def refusal():
        try:
            client.create(tfjob, dry_run=True)
        except KubernetesError as error:
            return str(error)
        return ""

    with a_webhook_of_ours(training_operator, prepared, {"url": f"https://{address}/"}):
        assert webhook.trouble(wait_until(refusal, 20)) is reach


def test_a_firewall_before_the_webhook(training_operator, prepared, folder):  # noqa: F811
    place = training_operator.own.control.place
    rule = ["iptables", "-w", "-I", "OUTPUT", "-p", "tcp", "--dport", "9443", "-j", "DROP"]
    enter = ["nsenter", "--net", "--target", str(place.first)]
    subprocess.run([*enter, *rule], check=True)
    try:
        code, found = doctor(folder, prepared)
    finally:
        subprocess.run([*enter, *(word.replace("-I", "-D") for word in rule)], check=True)
    assert code == 1
    (told,) = of(found, "webhook")
    assert "does not get through" in told["what"]
    assert "9443" in told["mend"]


def test_no_operator_is_no_problem_and_a_stopped_one_is(training_operator, prepared, folder):  # noqa: F811
    with training_operator.no_operator():
        code, found = doctor(folder, prepared)
    assert code == 1
    (told,) = of(found, "operator")
    assert told["mend"] == "kubectl scale deployment training-operator --namespace kubeflow --replicas=1"
    assert of(found, "webhook") == []
