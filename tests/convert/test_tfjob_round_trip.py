"""A job written as a TFJob and read back is the same job, in all that both can say, whatever its texts are."""

from __future__ import annotations

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from yurt.convert import Source, read_jobs, write_job
from yurt.convert.tfjob.expansion import expanded, kept
from yurt.engines import registry
from yurt.job import Job

OPTIONS = registry.all_options()
#: Pieces that the kubelet, a shell or YAML would like to read themselves.
PIECES = ["$(HOME)", "$$(X)", "$$", "$", "$(", ")", "${HOME}", "{{ x }}", "{0}", '"', "'", "\\", "\n", "\t", "é", "😀", "\x7f",
          "\u2028", "=", " ", "1e-4", "yes", "0x1f", "~", "null", "#", ": ", "- ", "| ", "/data", "<x>"]  # fmt: skip
TEXTS = st.lists(
    st.sampled_from(PIECES) | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=6),
    max_size=5,
).map("".join)
ENVS = st.dictionaries(
    st.from_regex(r"[A-Z_][A-Z0-9_]{0,8}", fullmatch=True).filter(lambda name: not name.startswith(("YURT_", "TASK_"))),
    TEXTS,
    max_size=3,
)
WORDS = TEXTS | st.sampled_from(["{role}", "--index={index}", "{address}/x"])
COMMANDS = st.lists(WORDS, max_size=4).map(lambda words: ["python", "/opt/train.py", *words]) | st.just(
    ["/bin/sh", "-c", "cd '/a b' && exec \"$@\"", "sh", "python", "train.py"]
)


@st.composite
def jobs(draw):
    def role(**more):
        return {
            "cpus": draw(st.none() | st.integers(1, 9000).map(lambda n: n / 1000)),
            "memory": draw(st.none() | st.integers(2**20, 2**40)),
            "gpus": draw(st.none() | st.integers(0, 8)),
            "env": draw(ENVS),
            **more,
        }

    roles = {"worker": role(replicas=draw(st.integers(1, 5)))}
    if draw(st.booleans()):
        roles["chief"] = role(command=draw(st.none() | COMMANDS))
        if draw(st.booleans()):
            roles["ps"] = {**role(replicas=2), "standard_server": draw(st.booleans())}
    if draw(st.booleans()):
        roles["evaluator"] = role()
    options = draw(
        st.fixed_dictionaries(
            {"clean_pod_policy": st.sampled_from(["None", "Running", "All"])},
            optional={
                "namespace": st.just("team"),
                "node_selector": st.dictionaries(st.sampled_from(["pool", "zone"]), st.sampled_from(["a", "yes", "1"]), min_size=1),
                "annotations": st.just({"sidecar.istio.io/inject": "false"}),
                "limits": st.just({"ephemeral-storage": "20Gi"}),
                "volumes": st.just([{"name": "d", "emptyDir": {}}]),
                "tolerations": st.just([{"key": "gpu", "operator": "Exists"}]),
                "keep_s": st.integers(0, 1000),
                "suspend": st.just(True),
                "run_labels": st.just({"team": "a"}),
                "scheduling": st.sampled_from([{"by": "kueue", "queue": "q"}, {"by": "volcano", "min_available": 2}]),
            },
        )
    )  # fmt: skip
    return Job(
        name="weather",
        command=draw(COMMANDS),
        roles=roles,
        env=draw(ENVS),
        files=[],
        restart=draw(st.sampled_from(["exit-code", "on-failure"])),
        max_restarts=draw(st.integers(0, 9)),
        deadline=draw(st.none() | st.integers(1, 9999)),
        grace=draw(st.integers(0, 99)),
        success="chief" if "chief" in roles else draw(st.sampled_from(["chief", "all-workers"])),
        image="registry.example/weather:1",
        engines={"kubernetes": options},
    )


@settings(
    max_examples=30,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(jobs(), st.sampled_from(["yaml", "json"]))
def test_out_and_in(job, syntax):
    written = write_job(job, "tfjob", syntax=syntax).text
    again = read_jobs([Source("x", written)], engine_options=OPTIONS).job
    for name in job.roles:
        words = job.command_for(name)  # which role it is, a pod's command says itself
        assert again.command_for(name) == (words and tuple(word.replace("{role}", name) for word in words))
        assert again.env_for(name) == job.env_for(name)
    # what all roles share may stand in the one or the other place
    assert _without_shared(again) == _without_shared(job)


def _without_shared(job):
    written = job.as_file()
    for key in ("command", "env"):
        written.pop(key, None)
    roles = {str(name): role.as_file() for name, role in job.roles.items()}
    written["roles"] = {
        name: {key: value for key, value in role.items() if key not in ("command", "env") and (key, value) != ("replicas", 1)}
        if isinstance(role, dict)
        else {} if role == 1 else {"replicas": role}
        for name, role in roles.items()
    }  # fmt: skip
    return written


@given(TEXTS)
def test_what_is_kept_is_not_filled_in(text):
    assert expanded(kept(text), {"HOME": "/root", "X": "1"}) == text


def test_the_kubelets_own_rules():
    values = {"A": "1", "B": "2"}
    cases = {
        "$(A)": "1",
        "$(A)$(B)": "12",
        "$$(A)": "$(A)",
        "$$$(A)": "$1",
        "$(C)": "$(C)",
        "$A": "$A",
        "$$": "$",
        "$": "$",
        "$(A": "$(A",
        "$()": "$()",
    }
    assert {text: expanded(text, values) for text in cases} == cases


def test_a_character_that_ends_lines_in_yaml_alone_survives_json():
    job = Job(name="a", command=("python", "a.py"), image="x:1", env={"F": "u|\x85next\u2028line"})
    written = write_job(job, "tfjob", syntax="json").text
    assert read_jobs([Source("x", written)], engine_options=OPTIONS).job.env == job.env
