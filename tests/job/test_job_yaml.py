"""What YAML does to a file, and what of it reaches the job."""

import pytest


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("1.10", "1.10"),
        ("007", "007"),
        ("0x1F", "0x1F"),
        ("1e-4", "1e-4"),
        ("1.0e-4", "1.0e-4"),
        ("1_000", "1_000"),
        ("12:30", "12:30"),
        (".inf", ".inf"),
        ("2024-01-31", "2024-01-31"),
        ("2024-13-45", "2024-13-45"),
        ("-0", "-0"),
        ("=", "="),
        ('"yes"', "yes"),
        ("'null'", "null"),
        ("!!str no", "no"),
        ('""', ""),
    ],
)
def test_values_of_env_stay_as_written(load, written, value):
    assert load(f"env: {{A: {written}}}\n", small=True).env == {"A": value}
    assert load(f"roles: {{worker: {{env: {{A: {written}}}}}}}\n", small=True).roles["worker"].env == {"A": value}


def test_names_of_env_that_yaml_takes_for_booleans(load):
    assert load("env: {NO: a, on: b, Null: c}\n", small=True).env == {"NO": "a", "on": "b", "Null": "c"}


def test_words_of_a_command_stay_as_written(load):
    job = load("name: a\ncommand: [train.py, --lr, 1e-4, --beta, 0.90, --seed, 007]\n")
    assert job.command == ("python", "train.py", "--lr", "1e-4", "--beta", "0.90", "--seed", "007")


def test_anchors_aliases_and_merge_keys(load):
    job = load(
        "name: a\n"
        "command: x\n"
        "roles:\n"
        "  chief: &big {cpus: 2, memory: 2GiB, env: &env {A: 1.0}}\n"
        "  worker: {<<: *big, replicas: 3, memory: 1GiB}\n"
        "  evaluator: {<<: [{cpus: 1}, *big]}\n"
        "env: *env\n"
    )
    worker, evaluator = job.roles["worker"], job.roles["evaluator"]
    assert (worker.replicas, worker.cpus, worker.memory_bytes, worker.env) == (3, 2.0, 2**30, {"A": "1.0"})
    assert (evaluator.cpus, evaluator.memory_bytes) == (1.0, 2**31)
    assert job.env == {"A": "1.0"}


def test_a_mistake_in_a_merged_mapping_is_shown_where_it_stands(said):
    text = "roles:\n  chief: &big {cpu: 2}\n  worker: {<<: *big, replicas: 2}\n"
    assert said(text, small=True) == [
        "job.yaml:4:16: roles.chief.cpu: is not a known key (did you mean cpus?)",
        "job.yaml:4:16: roles.worker.cpu: is not a known key (did you mean cpus?)",
    ]


def test_a_byte_order_mark_and_other_line_ends_are_read(folder):
    from yurt.job import load_job

    (folder / "job.yaml").write_bytes("\ufeffname: a\r\ncommand: x\r\n".encode())
    assert load_job("job.yaml").job.name == "a"


@pytest.mark.parametrize(
    "text", ["{name: a, command: x}", '{"name": "a", "command": "x"}', "--- \nname: a\ncommand: x\n...\n"]
)
def test_other_ways_to_write_the_same(load, text):
    assert load(text).command == ("x",)


def test_a_block_is_one_command(load):
    assert load("name: a\ncommand: >\n  python t.py\n  --x 1\n").command == ("python", "t.py", "--x", "1")
    assert load("name: a\ncommand: |\n  python t.py \\\n    --x 1\n").command == ("python", "t.py", "--x", "1")


def test_null_leaves_a_field_out(load):
    text = "output:\nstrategy:\nsaves_to: ~\nimage: null\ndeadline:\nroles: {worker: {cpus: , memory: , gpus: , command: }}\n"
    assert load(text, small=True) == load("", small=True)
