"""A job written for Nomad and read back is the same job, in all that both can say, whatever its texts are."""

from __future__ import annotations

import json
import shutil
import subprocess

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from yurt.convert import Source, read_jobs, write_job
from yurt.job import Job
from yurt.job.names import mended

#: Pieces that HCL, Nomad's templates, consul-template, shells or YAML would like to read themselves.
PIECES = ["${HOME}", "$${x}", "${", "}", "%{if}", "%{", "%%{", "$$", "{{ key }}", '"', "'", "\\", "\\n", "\n", "\t", "\r",
          "#", "//", "EOT", "\nEOT\n", "<<EOT", "é", "😀", "\x7f", "\u2028", "=", " ", "  ", "~", "*", "1", "yes"]  # fmt: skip
TEXTS = st.lists(
    st.sampled_from(PIECES) | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8),
    max_size=6,
).map("".join)
ENVS = st.dictionaries(
    st.from_regex(r"[A-Z_][A-Z0-9_]{0,8}", fullmatch=True).filter(lambda name: not name.startswith("YURT_")),
    TEXTS,
    max_size=4,
)
# A script's own name first: `sh -c` around plain words and `env` would be taken away on the way back.
COMMANDS = st.lists(TEXTS, max_size=5).map(lambda words: ["python", "train.py", *words])
RULES = st.fixed_dictionaries(
    {"attribute": TEXTS.filter(bool), "operator": st.sampled_from(["=", "!=", "regexp"]), "value": TEXTS.filter(bool)}
)


@st.composite
def jobs(draw):
    def role(**more):
        return {
            "cpus": draw(st.none() | st.integers(1, 250).filter(lambda n: n != 1).map(lambda n: n / 25)),
            "memory": draw(st.none() | st.integers(301, 9000).map(lambda n: n * 2**20)),
            "gpus": draw(st.none() | st.integers(1, 8)),
            "env": draw(ENVS),
            "command": draw(st.none() | COMMANDS),
            **more,
        }

    roles = {"worker": role(replicas=draw(st.integers(1, 5)))}
    if draw(st.booleans()):
        roles["chief"] = role()
        if draw(st.booleans()):
            roles["ps"] = {**role(replicas=2), "standard_server": True, "command": None}
    if draw(st.booleans()):
        roles["evaluator"] = role()
    options = draw(
        st.fixed_dictionaries(
            {},
            optional={
                "datacenters": st.lists(st.sampled_from(["a", "b", "c d"]), min_size=1, max_size=2),
                "priority": st.integers(51, 100),
                "meta": st.dictionaries(TEXTS.filter(bool), TEXTS.filter(bool), min_size=1, max_size=2),
                "constraints": st.lists(RULES, min_size=1, max_size=2, unique_by=str),
                "volumes": st.just({"data": {"source": "d", "path": "/data", "read_only": True}}),
                "config": st.just({"priority": 3, "list": ["${attr.x}", "$${y}"]}),
            },
        )
    )
    if draw(st.booleans()) and sum(one.get("replicas", 1) for one in roles.values()) > 1:
        options["share"] = True
    image = draw(st.none() | st.just("registry:5000/trainer:1"))
    if image:
        options["driver"] = "docker"
    restart = draw(st.sampled_from(["never", "on-failure"]))
    return Job(
        name=mended(draw(st.from_regex(r"[a-z][a-z0-9-]{0,20}", fullmatch=True))) + "-x",
        command=draw(COMMANDS),
        roles=roles,
        env=draw(ENVS),
        image=image,
        restart=restart,
        max_restarts=draw(st.integers(1, 9)) if restart == "on-failure" else 3,
        grace_s=draw(st.sampled_from([1.5, 30, 61, 3600])),
        engines={"nomad": options} if options else {},
    )


def meaning(job):
    """The job as its tasks see it: a command or a variable may stand with the job or with each role."""
    written = job.as_file()
    return {
        **{key: value for key, value in written.items() if key not in ("command", "env", "roles")},
        "roles": {
            name: (
                role.replicas,
                role.cpus,
                role.memory_bytes,
                role.gpus,
                job.command_for(name),
                dict(job.env_for(name)),
            )
            for name, role in job.roles.items()
        },
    }


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)
@given(job=jobs(), syntax=st.sampled_from(["hcl", "json"]))
def test_there_and_back(job, syntax):
    text = write_job(job, "nomad", syntax=syntax).text
    back = read_jobs([Source("x.nomad", text)])
    assert meaning(back.job) == meaning(job)
    # and nothing of the text is told as what Nomad fills in
    assert not [note for note in back.notes if "fill" in note.message and "config.list" not in note.place]


@pytest.mark.skipif(not shutil.which("nomad"), reason="there is no nomad on PATH")
@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(job=jobs())
def test_nomad_reads_the_same_from_hcl_as_from_json(tmp_path_factory, job):
    folder = tmp_path_factory.mktemp("x")
    (folder / "x.nomad").write_text(write_job(job, "nomad").text)
    found = subprocess.run(
        ["nomad", "job", "run", "-output", "x.nomad"], cwd=folder, capture_output=True, text=True, check=False
    )
    assert found.returncode == 0, found.stderr
    as_json = json.loads(write_job(job, "nomad", syntax="json").text)["Job"]
    ours, theirs = as_json["TaskGroups"], json.loads(found.stdout)["Job"]["TaskGroups"]
    for mine, other in zip(ours, theirs, strict=True):
        task, seen = mine["Tasks"][0], other["Tasks"][0]
        assert seen["Config"]["args"] == task["Config"]["args"]
        assert (seen["Env"] or {}) == task["Env"]
        assert seen["Templates"][0]["EmbeddedTmpl"] == task["Templates"][0]["EmbeddedTmpl"]
        assert other["Services"][0]["Tags"] == mine["Services"][0]["Tags"]
