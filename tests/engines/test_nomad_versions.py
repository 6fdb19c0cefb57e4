"""Since when Nomad knows what, as a table; and what an older cluster is told."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.engines.test_nomad_render import CLUSTER, PLACE, RUN
from yurt.contract.spec import TaskSpec
from yurt.engines.nomad import versions
from yurt.engines.nomad.options import NomadOptions
from yurt.engines.nomad.render import render
from yurt.engines.nomad.versions import Otherwise
from yurt.errors import EngineError

SECRET = {"KEY": {"variable": "nomad/jobs/train", "key": "k"}}
#: An option, the last version without it, the first with it.
TABLE = [
    ({"cores": True}, versions.CORES, "1.0.18", "1.1.0"),
    ({"network": "bridge", "driver": "exec", "consul": "http://c:8500"}, versions.BRIDGE_EXEC, "1.3.1", "1.3.2"),
    ({"secrets": SECRET}, versions.NOMAD_VARIABLES, "1.3.14", "1.4.0"),
    ({"datacenters": ["*"]}, versions.ALL_DATACENTERS, "1.4.9", "1.5.0"),
    ({"node_pool": "gpu"}, versions.NODE_POOL, "1.5.9", "1.6.0"),
    ({"vault": {"role": "r"}}, versions.VAULT_ROLE, "1.6.9", "1.7.0"),
]


def rendered(options, version):
    run = replace(RUN, tasks=(TaskSpec("worker", 0, ("a",), cpus=1.5),))
    return render(run, PLACE, NomadOptions.model_validate(options), replace(CLUSTER, version=version))


def test_the_table_is_whole():
    assert {feature for _, feature, _, _ in TABLE} == set(versions.FEATURES)


@pytest.mark.parametrize(("options", "feature", "before", "since"), TABLE)
def test_what_a_version_does_not_know_is_refused_or_left_out_with_a_sentence(options, feature, before, since):
    if feature.otherwise is Otherwise.REFUSED:
        with pytest.raises(EngineError) as refused:
            rendered(options, before)
        said = str(refused.value)
        assert refused.value.hint == feature.instead
    else:
        [said] = [note for note in rendered(options, before)["notes"] if "needs Nomad" in note]
        assert feature.instead in said
    assert f"needs Nomad {since.removesuffix('.0')} or later, and this cluster has {before}" in said
    for version in (since, f"{since}-beta.1+ent", "2.0.4", ""):  # of an unknown one nothing is refused
        assert not any("needs Nomad" in note for note in rendered(options, version)["notes"])


def test_cores_are_asked_for_where_there_are_any():
    def resources(version):
        return rendered({"cores": True}, version)["job"]["TaskGroups"][0]["Tasks"][0]["Resources"]

    assert resources("1.1.0") == {"Cores": 2, "MemoryMB": 16000}
    assert resources("1.0.18") == {"CPU": 3000, "MemoryMB": 16000}


def test_older_than_all_that_is_known_to_work():
    with pytest.raises(EngineError, match=r"has Nomad 0\.12\.1; Yurt needs 1\.0 or later"):
        rendered({}, "0.12.1")


@pytest.mark.parametrize(
    ("text", "numbers"),
    [("1.0.18", (1, 0, 18)), ("v1.8.0-beta.1+ent", (1, 8, 0)), ("2.1", (2, 1, 0)), ("", None), ("dev", None)],
)
def test_versions_as_nomad_writes_them(text, numbers):
    assert versions.parsed(text) == numbers


def test_where_the_agent_does_not_tell_its_version_the_nodes_do():
    nodes = [replace(CLUSTER.nodes[0], attributes={"nomad.version": text}) for text in ("1.10.0", "1.9.2", "")]
    assert replace(CLUSTER, nodes=tuple(nodes), version="").nomad == "1.9.2"
    assert replace(CLUSTER, nodes=tuple(nodes)).nomad == CLUSTER.version
