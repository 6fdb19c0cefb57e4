"""What to do next, as a table: the stored state in, the state that must follow out."""

from __future__ import annotations

from dataclasses import replace

import pytest

from yurt.contract.decide import LEAVE_S, REPORT_S, decide, leave_s, next_generation, stop
from yurt.contract.spec import RunSpec, TaskSpec
from yurt.contract.state import (
    BROKEN,
    CANCELLED,
    CHECKING,
    CLOSING,
    DEADLINE,
    ENDED,
    EXITED,
    FAILED,
    JOINED,
    JOINING,
    LOST,
    PUBLISH_FAILED,
    REACHABLE,
    RUNNING,
    STARTED,
    SUCCEEDED,
    Cause,
    Exit,
    Member,
    RunState,
)

NOW = 1000.0


def run(roles=None, **changes) -> RunSpec:
    roles = roles or {"worker": 2}
    tasks = tuple(TaskSpec(role, i, ("python", "train.py")) for role, n in roles.items() for i in range(n))
    strategy = "parameter-server" if "ps" in roles else "multi-worker-mirrored"
    values = {
        "run_id": "r",
        "job_name": "j",
        "strategy": strategy,
        "tasks": tasks,
        "restart": "exit-code",
        "max_restarts": 3,
        "success": "chief",
        "start_deadline_s": 60.0,
        "deadline_s": None,
        "grace_s": 30.0,
        "output": None,
        "saves_to": None,
        "submitted_at": NOW - 100,
    }
    return RunSpec(**{**values, **changes})


def state(phase=RUNNING, **changes) -> RunState:
    return replace(RunState(generation=0, phase=phase, since=NOW - 1, created_at=NOW - 100), **changes)


def member(task, status=STARTED, *, code=None, order=0, attempt=0, reason="exit", **changes) -> Member:
    end = None if code is None else Exit(code=code, reason=reason, at=NOW, attempt=attempt)
    return Member(
        task=task,
        allocation=task,
        address=f"10.0.0.1:{hash(task) % 1000}",
        status=EXITED if code is not None and status == STARTED else status,
        attempt=attempt,
        placed_on="m1",
        exit=end,
        order=order,
        **changes,
    )


def members(*found) -> dict[str, Member]:
    return {each.task: each for each in found}


def test_all_joined_makes_one_cluster_spec_without_evaluators():
    spec = run({"chief": 1, "worker": 2, "evaluator": 1})
    found = members(*(member(task.name, JOINED) for task in spec.tasks))
    new = decide(spec, state(JOINING), found, NOW)
    assert new.phase == CHECKING
    assert set(new.cluster) == {"chief", "worker"}
    assert new.cluster["worker"] == [found["worker/0"].address, found["worker/1"].address]


def test_a_missing_task_is_waited_for_until_the_start_deadline_then_named():
    spec = run()
    found = members(member("worker/0", JOINED))
    assert decide(spec, state(JOINING, since=NOW - 60), found, NOW) is None
    late = decide(spec, state(JOINING, since=NOW - 61), found, NOW)
    assert late.verdict.outcome == DEADLINE
    assert late.verdict.message == "the start deadline of 60 s passed: worker/1 never came; worker/0 on m1 waited"
    assert late.verdict.exit_code == 3


def test_nobody_trains_before_everybody_has_reached_everybody():
    spec = run()
    one = members(member("worker/0", REACHABLE), member("worker/1", JOINED))
    both = members(member("worker/0", REACHABLE), member("worker/1", REACHABLE))
    assert decide(spec, state(CHECKING), one, NOW) is None
    assert decide(spec, state(CHECKING), both, NOW).phase == RUNNING


def test_a_pair_that_cannot_meet_is_named_and_is_no_training_error():
    row = (("worker/1", "10.0.0.2:4000", "no answer (a firewall?)"),)
    found = members(member("worker/0", JOINED, unreachable=row), member("worker/1", REACHABLE))
    new = decide(run(), state(CHECKING), found, NOW)
    assert new.verdict.outcome == BROKEN
    assert "worker/0 on m1 cannot reach worker/1 at 10.0.0.2:4000: no answer (a firewall?)" in new.verdict.message
    assert "open the port" in new.verdict.hint
    row = (("worker/1", "pod.svc:4000", "its name does not resolve (Name or service not known)"),)
    found = members(member("worker/0", JOINED, unreachable=row), member("worker/1", REACHABLE))
    assert "DNS" in decide(run(), state(CHECKING), found, NOW).verdict.hint, "no port helps there"


# (roles, restart policy, who failed, exit code, reason) -> what follows
FAILURES = [
    ({"worker": 2}, "never", "worker/1", 1, "exit", "fails"),
    ({"worker": 2}, "never", "worker/1", 137, "signal", "fails"),
    ({"worker": 2}, "never", "worker/1", 137, "lost", "fails"),
    ({"worker": 2}, "never", "worker/1", 1, "port-taken", "gang"),
    ({"worker": 2}, "on-failure", "worker/1", 1, "exit", "gang"),
    ({"worker": 2}, "on-failure", "worker/0", 1, "exit", "gang"),
    ({"worker": 2}, "always", "worker/1", 1, "exit", "gang"),
    ({"worker": 2}, "exit-code", "worker/1", 1, "exit", "fails"),
    ({"worker": 2}, "exit-code", "worker/1", 127, "exit", "fails"),
    ({"worker": 2}, "exit-code", "worker/1", 128, "exit", "gang"),
    ({"worker": 2}, "exit-code", "worker/1", 137, "out-of-memory", "gang"),
    ({"worker": 2}, "on-failure", "worker/1", 127, "preflight", "fails"),
    ({"worker": 2}, "never", "worker/1", 1, "wants-legacy-keras", "gang"),
    ({"worker": 2}, "exit-code", "worker/0", 1, "wants-legacy-keras", "gang"),
    ({"chief": 1, "worker": 2, "ps": 1}, "never", "worker/1", 1, "wants-legacy-keras", "gang"),
    ({"worker": 2}, "on-failure", "worker/1", 127, "start", "fails"),
    ({"chief": 1, "worker": 1}, "on-failure", "worker/0", 1, "exit", "gang"),
    ({"chief": 1, "worker": 2, "ps": 1}, "on-failure", "worker/1", 1, "exit", "alone"),
    ({"chief": 1, "worker": 2, "ps": 1}, "exit-code", "worker/1", 137, "lost", "alone"),
    ({"chief": 1, "worker": 2, "ps": 1}, "exit-code", "worker/1", 1, "exit", "fails"),
    ({"chief": 1, "worker": 2, "ps": 1}, "on-failure", "ps/0", 1, "exit", "gang"),
    ({"chief": 1, "worker": 2, "ps": 1}, "on-failure", "chief/0", 1, "exit", "gang"),
    ({"worker": 2, "evaluator": 1}, "on-failure", "evaluator/0", 1, "exit", "alone"),
    ({"worker": 2, "evaluator": 1}, "never", "evaluator/0", 1, "exit", "nothing"),
    ({"worker": 2, "evaluator": 1}, "exit-code", "evaluator/0", 137, "lost", "alone"),
]


@pytest.mark.parametrize(("roles", "restart", "task", "code", "reason", "follows"), FAILURES)
def test_a_failure_is_answered_by_the_rules_of_strategy_and_policy(roles, restart, task, code, reason, follows):
    spec = run(roles, restart=restart)
    found = members(
        *(member(each.name) for each in spec.tasks if each.name != task), member(task, code=code, reason=reason)
    )
    new = decide(spec, state(), found, NOW)
    if follows == "nothing":
        assert new is None
    elif follows == "fails":
        assert (new.phase, new.verdict.outcome, new.verdict.task) == (ENDED, FAILED, task)
        assert new.verdict.exit.code == code
    elif follows == "gang":
        assert (new.generation, new.phase, new.restarts, new.cluster) == (1, JOINING, 1, None)
        assert all(new.attempts[each.name] == 1 for each in spec.tasks)
        assert new.causes[0].task == task
    else:
        assert (new.generation, new.phase, new.restarts) == (0, RUNNING, 1)
        assert new.attempts == {task: 1}


@pytest.mark.parametrize("roles", [{"worker": 2}, {"chief": 1, "worker": 1, "ps": 1}])
def test_a_script_that_wants_legacy_keras_turns_the_whole_gang_and_it_stays_so(roles):
    spec = run(roles, restart="on-failure")
    end = {"code": 1, "reason": "wants-legacy-keras"}
    others = [member(each.name) for each in spec.tasks if each.name != "worker/0"]
    new = decide(spec, state(), members(*others, member("worker/0", **end)), NOW)
    assert (new.generation, new.restarts, new.keras) == (1, 1, "legacy")
    assert RunState.loads(new.dumps()).keras == "legacy"
    later = next_generation(spec, new, Cause("worker/0", 1, "lost", NOW), NOW)
    assert later.keras == "legacy"
    assert next_generation(spec, state(), Cause("worker/0", 0, "lost", NOW), NOW).keras is None


@pytest.mark.parametrize("policy", ["never", "on-failure", "exit-code", "always"])
def test_every_restart_of_every_policy_counts_against_one_limit(policy):
    found = members(
        member("worker/0"), member("worker/1", code=137, reason="port-taken" if policy == "never" else "signal")
    )
    new = decide(run(restart=policy), state(restarts=3), found, NOW)
    assert new.verdict.outcome == FAILED
    assert "the limit of 3 restarts is used up" in new.verdict.message


def test_a_loss_before_training_starts_the_gang_again_also_under_parameter_server():
    spec = run({"chief": 1, "worker": 1, "ps": 1})
    found = members(member("chief/0", JOINED), member("worker/0", LOST, code=137, reason="lost"))
    assert decide(spec, state(JOINING), found, NOW).generation == 1


def test_the_first_failure_is_named_by_the_stores_order_not_by_clocks():
    early, late = member("worker/0", code=1, order=9), member("worker/1", code=2, order=5)
    new = decide(run(), state(), members(early, late), NOW)
    assert new.verdict.task == "worker/1"
    assert new.verdict.message == "worker/1 failed with exit code 2"


def test_those_stopped_by_us_are_not_failures():
    found = members(member("worker/0"), member("worker/1", code=143, reason="stopped"))
    assert decide(run(), state(), found, NOW) is None


def test_an_exit_that_a_restart_has_answered_is_not_answered_again():
    spec = run({"chief": 1, "worker": 1, "ps": 1}, restart="on-failure")
    found = members(member("chief/0"), member("ps/0"), member("worker/0", code=1, attempt=0))
    assert decide(spec, state(attempts={"worker/0": 1}), found, NOW) is None


def test_what_has_finished_is_not_run_again():
    found = members(member("worker/0", code=1), member("worker/1", code=0))
    new = decide(run(restart="on-failure"), state(), found, NOW)
    assert new.verdict.outcome == FAILED
    assert "after worker/1 had finished; what has finished is not run again" in new.verdict.message


def test_success_is_the_deciding_task_whatever_the_others_do():
    found = members(member("worker/0", code=0), member("worker/1", code=1))
    assert decide(run(), state(), found, NOW).phase == CLOSING


def test_all_workers_success_waits_for_all_training_tasks():
    spec = run({"chief": 1, "worker": 1, "evaluator": 1}, success="all-workers")
    part = members(member("chief/0", code=0), member("worker/0"), member("evaluator/0"))
    assert decide(spec, state(), part, NOW) is None
    assert decide(spec, state(), {**part, "worker/0": member("worker/0", code=0)}, NOW).phase == CLOSING


def test_closing_waits_for_the_rest_then_succeeds():
    spec = run({"chief": 1, "worker": 1, "ps": 1})
    found = members(member("chief/0", code=0), member("worker/0"), member("ps/0", code=143, reason="stopped"))
    assert decide(spec, state(CLOSING), found, NOW) is None
    over = {**found, "worker/0": member("worker/0", code=1)}  # after the verdict its error is a note
    assert decide(spec, state(CLOSING), over, NOW).verdict.outcome == SUCCEEDED
    assert decide(spec, state(CLOSING, since=NOW - REPORT_S - LEAVE_S - 1), found, NOW).verdict.outcome == SUCCEEDED


def test_closing_waits_for_the_publisher_without_limit():
    spec = run(output="file:///m")
    found = members(member("worker/0", code=0), member("worker/1", code=0))
    assert decide(spec, state(CLOSING, since=0), found, NOW) is None
    answer = {"ok": True, "url": "file:///m/r"}
    done = decide(spec, state(CLOSING), {**found, "worker/0": replace(found["worker/0"], published=answer)}, NOW)
    assert (done.verdict.outcome, done.published) == (SUCCEEDED, answer)


@pytest.mark.parametrize("how", ["answer", "lost"])
def test_a_model_that_was_not_published_has_its_own_verdict(how):
    spec = run(output="file:///m")
    deciding = member("worker/0", code=0)
    if how == "answer":
        deciding = replace(deciding, published={"ok": False, "message": "no room", "hint": "make room"})
    else:
        deciding = replace(deciding, status=LOST)
    new = decide(spec, state(CLOSING), members(deciding, member("worker/1", code=0)), NOW)
    assert (new.verdict.outcome, new.verdict.exit_code) == (PUBLISH_FAILED, 5)


def test_the_runs_deadline_counts_from_submission_in_every_phase():
    for phase in (JOINING, CHECKING, RUNNING):
        new = decide(run(deadline_s=99), state(phase), members(member("worker/0", JOINED)), NOW)
        assert new.verdict.outcome == DEADLINE, phase
    assert decide(run(deadline_s=101), state(), {}, NOW) is None


def test_a_stop_gives_the_grace_time_and_a_second_one_takes_it():
    spec = run()
    first = stop(spec, state(), NOW, at_once=False, by="Ctrl-C")
    assert (first.verdict.outcome, first.verdict.message, first.stop_grace_s) == (CANCELLED, "stopped by Ctrl-C", 30)
    assert stop(spec, first, NOW, at_once=False, by="Ctrl-C") is None
    second = stop(spec, first, NOW, at_once=True, by="Ctrl-C")
    assert (second.stop_grace_s, second.verdict) == (0, first.verdict)


def test_a_verdict_is_final():
    ended = stop(run(), state(), NOW, at_once=True, by="x")
    assert decide(run(), ended, members(member("worker/0", code=1)), NOW) is None


def test_only_the_last_causes_are_kept():
    spec, now = run(max_restarts=100), state()
    for _ in range(30):
        now = next_generation(spec, now, Cause("worker/0", 0, "x", NOW), NOW)
    assert (len(now.causes), now.restarts, now.attempts["worker/1"]) == (20, 30, 30)


def test_how_long_each_role_may_stay_after_success():
    multi, ps = run({"chief": 1, "worker": 1, "evaluator": 1}), run({"chief": 1, "worker": 1, "ps": 1})
    assert [leave_s(multi, role) for role in ("worker", "evaluator")] == [LEAVE_S, 30]
    assert [leave_s(ps, role) for role in ("worker", "ps")] == [0, 0]
