"""Which roles each strategy takes, as a table."""

import pytest

from yurt.errors import JobError
from yurt.job import Job, Strategy


def strategy_of(roles, strategy=None):
    """The strategy of a job with these roles, or "refused"."""
    try:
        return str(Job(name="a", command="x", roles=roles, strategy=strategy).strategy)
    except JobError:
        return "refused"


#                                       default                  mwm   ps     mirrored one-device none
TABLE = [
    ({"worker": 1},                     "none",                  True, False, True),
    ({"chief": 1},                      "none",                  True, False, True),
    ({"worker": 2},                     "multi-worker-mirrored", True, False, False),
    ({"chief": 1, "worker": 1},         "multi-worker-mirrored", True, False, False),
    ({"chief": 1, "worker": 0},         "none",                  True, False, True),
    ({"worker": 1, "evaluator": 1},     "none",                  True, False, True),
    ({"chief": 1, "worker": 3, "evaluator": 1}, "multi-worker-mirrored", True, False, False),
    ({"chief": 1, "worker": 2, "ps": 1}, "parameter-server",     False, True, False),
    ({"chief": 1, "worker": 2, "ps": 2, "evaluator": 1}, "parameter-server", False, True, False),
    ({"chief": 1, "worker": 2, "ps": 0}, "multi-worker-mirrored", True, False, False),
    ({"worker": 2, "ps": 1},            "refused",               False, False, False),
    ({"chief": 1, "ps": 1},             "refused",               False, False, False),
    ({"chief": 2},                      "refused",               False, False, False),
    ({"worker": 1, "evaluator": 2},     "refused",               False, False, False),
    ({"evaluator": 1},                  "refused",               False, False, False),
    ({"worker": 0},                     "refused",               False, False, False),
    ({},                                "refused",               False, False, False),
]  # fmt: skip


@pytest.mark.parametrize(("roles", "default", "mirrored_workers", "servers", "one_task"), TABLE)
def test_roles_and_strategies(roles, default, mirrored_workers, servers, one_task):
    assert strategy_of(roles) == default
    takes = {
        Strategy.MULTI_WORKER_MIRRORED: mirrored_workers,
        Strategy.PARAMETER_SERVER: servers,
        Strategy.MIRRORED: one_task,
        Strategy.ONE_DEVICE: one_task,
        Strategy.NONE: one_task,
    }
    for strategy, taken in takes.items():
        assert strategy_of(roles, strategy) == (strategy if taken else "refused")


@pytest.mark.parametrize(
    ("roles", "taken"),
    [
        ({"chief": 1, "worker": 2, "ps": {"standard_server": True}}, True),
        ({"chief": 1, "worker": {"standard_server": True}, "ps": {"standard_server": True}}, True),
        ({"chief": 1, "worker": {"standard_server": True}}, False),
        ({"chief": {"standard_server": True}, "worker": 1, "ps": 1}, False),
        ({"worker": 1, "evaluator": {"standard_server": True}}, False),
        ({"worker": 1, "evaluator": {"standard_server": True, "replicas": 0}}, True),
        ({"chief": 1, "worker": 1, "ps": {"standard_server": True, "command": "x"}}, False),
    ],
)
def test_standard_servers(roles, taken):
    assert (strategy_of(roles) != "refused") is taken


@pytest.mark.parametrize(
    ("roles", "taken"),
    [
        ({"worker": 1}, False),
        ({"worker": {"command": "x"}}, True),
        ({"worker": {"command": "x"}, "evaluator": 1}, False),
        ({"worker": {"command": "x"}, "evaluator": 0}, True),
        ({"chief": {"command": "x"}, "worker": {"command": "x"}, "ps": {"standard_server": True}}, True),
    ],
)
def test_the_command_may_be_missing_only_if_nobody_needs_it(roles, taken):
    if taken:
        assert Job(name="a", roles=roles).command is None
    else:
        with pytest.raises(JobError, match="command: is missing"):
            Job(name="a", roles=roles)


@pytest.mark.parametrize(
    "wrong", ["name: A B\n", "wibble: 1\n", "env: {A: no}\n", "files: [nope]\n", "engines: 5\n", "name: a\n"]
)
@pytest.mark.parametrize(
    "misfit", ["roles: {chief: 2}\n", "roles: {ps: 1, worker: 1}\n", "strategy: mirrored\nroles: {worker: 2}\n"]
)
def test_neither_kind_of_mistake_hides_the_other(said, wrong, misfit):
    small = "" if wrong == "name: A B\n" else "name: a\n"
    alone = said(small + "command: x\n" + misfit) if small else said("name: a\ncommand: x\n" + misfit)
    together = said(small + "command: x\n" + misfit + wrong)
    assert len(together) == len(alone) + 1
    sentences = {problem.partition(" ")[2] for problem in together}
    assert {problem.partition(" ")[2] for problem in alone} < sentences


def test_what_cannot_be_read_is_not_said_to_be_absent(said):
    assert said("roles: {chief: 1, servers: 2, worker: 2}\nstrategy: parameter-server\n", small=True) == [
        "job.yaml:3:19: roles.servers: is not a role; the roles are chief, worker, ps, evaluator"
    ]
    assert said("roles: {chief: one, ps: 1, worker: 2}\n", small=True) == [
        ('job.yaml:3:9: roles.chief: must be a count such as 2, or a mapping such as {replicas: 2}, not the text "one"')
    ]
