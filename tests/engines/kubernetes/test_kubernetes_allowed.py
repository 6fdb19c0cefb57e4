"""Who may what: namespaces that hold pods to a standard, and accounts with the least rights, and with one fewer."""

from __future__ import annotations

import contextlib
import json

import pytest

from yurt.engines.kubernetes.prepare.rights import OF_USERS, USER

QUICK = "print('done', flush=True)\n"
NEEDED = [(verb, right.resource) for right in OF_USERS if right.always for verb in right.verbs]
#: But for the one without which a run's objects stay.
FOR_COMFORT = [
    (verb, right.resource) for right in OF_USERS if not right.always for verb in right.verbs if verb != "delete"
]


class Person:
    """An account of the namespace that `yurt kubernetes prepare` gives the least rights to."""

    def __init__(self, runs) -> None:
        self.runs = runs
        self._in = ("-n", runs.namespace)
        kubectl = runs.cluster.kubectl
        kubectl("create", "serviceaccount", "person", *self._in)
        prepare = ("kubernetes", "prepare", "--yes", "--operator", "none", "--service-account", "person", *self._in)
        done = runs.folder.yurt(*prepare)
        assert done.returncode == 0, done.stdout + done.stderr
        config = json.loads(kubectl("config", "view", "--raw", "-o", "json"))
        config["users"] = [{"name": "person", "user": {"token": kubectl("create", "token", "person", *self._in)}}]
        for each in config["contexts"]:
            each["context"]["user"] = "person"
        file = runs.folder.path / "kubeconfig"
        file.write_text(json.dumps(config))
        runs.folder.environment = {**runs.folder.environment, "KUBECONFIG": str(file)}

    @contextlib.contextmanager
    def without(self, *rights: tuple[str, str]):
        """For a while."""
        role = self.runs.cluster.get("role", USER, *self._in)
        self.may_not(*rights)
        yield
        role["metadata"].pop("resourceVersion")
        self.runs.cluster.kubectl("replace", *self._in, "-f", "-", content=role)

    def may_not(self, *rights: tuple[str, str]) -> None:
        role = self.runs.cluster.get("role", USER, *self._in)
        for verb, resource in rights:
            [rule] = [rule for rule in role["rules"] if rule["resources"] == [resource]]
            rule["verbs"].remove(verb)
        role["rules"] = [rule for rule in role["rules"] if rule["verbs"]]
        self.runs.cluster.kubectl("replace", *self._in, "-f", "-", content=role)


def test_the_least_rights_are_enough(runs):
    Person(runs)
    done = runs.to_its_end(script=QUICK)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("| done") == 2
    runs.assert_nothing_left()


@pytest.mark.parametrize("runs", ["none"], indirect=True)
def test_one_right_fewer_is_named_and_nothing_is_left(runs):
    """One after another: making an account takes longer than a run that is refused."""
    person = Person(runs)
    for verb, resource in NEEDED:
        with person.without((verb, resource)):
            done = runs.to_its_end(script=QUICK, start_deadline=10)
        assert done.returncode != 0, done.stdout + done.stderr
        assert f"may not {verb} {resource} in the namespace {runs.namespace}" in done.stdout + done.stderr
        runs.assert_nothing_left()


@pytest.mark.parametrize("runs", ["none"], indirect=True)
def test_a_run_succeeds_without_the_rights_that_are_for_comfort(runs):
    Person(runs).may_not(*FOR_COMFORT)
    done = runs.to_its_end(script=QUICK)
    assert done.returncode == 0, done.stdout + done.stderr
    for right in ("create nor get pods/portforward", "get pods/log"):
        assert f"may not {right} in the namespace {runs.namespace}" in done.stdout + done.stderr
    runs.assert_nothing_left()


def test_a_namespace_that_holds_pods_to_the_restricted_standard(runs):
    label = "pod-security.kubernetes.io/enforce=restricted"
    runs.cluster.kubectl("label", "namespace", runs.namespace, label)
    done = runs.to_its_end(
        script="import os\nprint('as', os.getuid(), flush=True)\n",
        options={"restricted": True, "pod_security_context": {"runAsUser": 1000}},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("| as 1000") == 2
