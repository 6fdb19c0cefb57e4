"""The pure pieces of the command line."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from yurt.cli import moments, states, words
from yurt.cli.frame import frame
from yurt.cli.lines import LONGEST_LINE_BYTES, LineReader
from yurt.cli.marks import Marks
from yurt.cli.news import news
from yurt.cli.out import Out
from yurt.cli.stored_logs import StoredLog
from yurt.contract.spec import RunSpec, TaskSpec
from yurt.contract.state import (
    CANCELLED,
    CLOSING,
    ENDED,
    EXITED,
    FAILED,
    JOINED,
    LOST,
    REACHABLE,
    RUNNING,
    STARTED,
    Beat,
    Cause,
    Exit,
    Member,
    RunState,
    Verdict,
)
from yurt.errors import UsageError
from yurt.launcher.records import Snapshot

SPEC = RunSpec(
    run_id="job-aaaaaa",
    job_name="job",
    strategy="multi-worker-mirrored",
    tasks=(TaskSpec("worker", 0, ("true",)), TaskSpec("worker", 1, ("true",))),
    restart="on-failure",
    max_restarts=3,
    success="chief",
    start_deadline_s=60,
    deadline_s=None,
    grace_s=5,
    output="file:///models",
    saves_to=None,
    submitted_at=100.0,
)
FIRST = RunState.first(100.0)


def member(task="worker/0", status=STARTED, **more):
    return Member(task, "a", "h:1", status, **more)


def ended(code, reason="exit"):
    return Exit(code=code, reason=reason, at=1.0)


class TestLines:
    def test_pieces_make_lines_however_they_are_cut(self):
        data = "one\ntwo €\n\nlast".encode()
        for cut in range(len(data)):
            reader = LineReader()
            assert reader.feed(data[:cut]) + reader.feed(data[cut:]) + reader.end() == "one\ntwo €\n\nlast\n"

    def test_a_bar_that_never_ends_its_line_is_kept_small(self):
        reader = LineReader()
        for step in range(20_000):
            assert reader.feed(f"\rstep {step} of very many".encode()) == ""
        assert reader.feed(b"\n") == "step 19999 of very many\n"

    def test_a_line_without_end_is_shown_in_parts_and_whole(self):
        reader = LineReader()
        data = b"x" * (2 * LONGEST_LINE_BYTES + 10)
        shown = "".join(reader.feed(data[start : start + 70_000]) for start in range(0, len(data), 70_000))
        assert (shown + reader.end()).replace("\n", "") == data.decode()

    @pytest.mark.parametrize(
        ("line", "seen"),
        [
            (b"plain", "plain"),
            (b"windows\r", "windows"),
            (b"\x1b[31mred\x1b[0m", "red"),
            (b"\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
            (b"bell\x07 null\x00 escape\x1b", "bell null escape"),
            ("c1 \x9b31m é ü".encode(), "c1 31m é ü"),
            (b"broken \xff byte", "broken � byte"),
        ],
    )
    def test_what_would_move_the_terminal_is_left_out(self, line, seen):
        assert LineReader().feed(line + b"\n") == seen + "\n"


class TestMarks:
    def test_all_of_one_width(self):
        marks = Marks(["ps/0", "worker/10"], colour=False)
        assert marks.mark("ps/0", "a\n\nb\n") == "ps/0      | a\nps/0      | \nps/0      | b\n"
        assert marks.mark("worker/10", "") == ""

    def test_each_task_has_its_own_colour(self):
        marks = Marks([f"worker/{index}" for index in range(10)], colour=True)
        assert len({marks.style(f"worker/{index}") for index in range(10)}) == 10
        assert marks.mark("worker/0", "a\n") == "\x1b[36mworker/0 |\x1b[0m a\n"


class TestWords:
    @pytest.mark.parametrize(
        ("value", "text"),
        [
            (0.04, "0.0 s"),
            (9.94, "9.9 s"),
            (9.96, "10 s"),
            (59.4, "59 s"),
            (59.6, "1 min"),
            (185, "3 min 5 s"),
            (3600, "1 h"),
            (7620, "2 h 7 min"),
            (90_000, "1 d 1 h"),
            (-1, "0.0 s"),
        ],
    )
    def test_times(self, value, text):
        assert words.seconds(value) == text

    @pytest.mark.parametrize(("value", "text"), [(7.9, "0:07"), (754, "12:34"), (11_100, "3:05:00")])
    def test_clocks(self, value, text):
        assert words.clock(value) == text

    def test_places(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        assert words.place(str(tmp_path / "models/x")) == "./models/x"
        assert words.place("/elsewhere/x") == "/elsewhere/x"
        assert words.place("s3://bucket/x") == "s3://bucket/x"
        assert words.output(f"file://{tmp_path}/my%20models") == "./my models"
        assert words.output("s3://bucket/a%20b") == "s3://bucket/a%20b"


class TestMoments:
    NOW = time.mktime((2026, 1, 31, 12, 0, 0, 0, 0, -1))

    @pytest.mark.parametrize(
        ("text", "ago_s"),
        [("5m", 300), ("1h30m", 5400), ("90", 90), ("11:59", 60), ("11:59:30", 30), ("12:01", 86_340)],
    )
    def test_relative_to_now(self, text, ago_s):
        assert moments.moment(text, self.NOW) == self.NOW - ago_s

    def test_absolute(self):
        assert moments.moment("2026-01-31T12:00", 0) == self.NOW
        assert moments.moment("1767225600.5") == 1767225600.5

    @pytest.mark.parametrize("text", ["", "soon", "25:00", "2026-13-01", "-5m"])
    def test_none_at_all(self, text):
        with pytest.raises(UsageError, match="is no time"):
            moments.moment(text)


class TestStoredLog:
    @pytest.fixture
    def log(self, tmp_path):
        (tmp_path / "log").write_bytes(b"aaa\nbbb\nccc\n")
        (tmp_path / "log.times").write_text("100.0 0\n101.5 4\n200.0 8\n20")
        return StoredLog(tmp_path / "log")

    @pytest.mark.parametrize(
        ("since", "start"),
        [(0, 0), (100, 0), (100.9, 0), (101.2, 4), (101.6, 4), (150, 8), (200.5, 8), (300, 12)],
    )
    def test_since(self, log, since, start):
        assert log.start(since=since, tail=None) == start

    @pytest.mark.parametrize(("tail", "start"), [(0, 12), (1, 8), (2, 4), (3, 0), (9, 0)])
    def test_tail(self, log, tail, start):
        assert log.start(since=None, tail=tail) == start

    def test_tail_of_a_log_that_ends_without_a_newline(self, tmp_path):
        (tmp_path / "log").write_bytes(b"a\n" * 100_000 + b"end")
        assert StoredLog(tmp_path / "log").start(since=None, tail=2) == 199_998

    def test_stretches_have_their_times_and_leave_nothing_out(self, log):
        assert [(s.at, s.start, s.end) for s in log.stretches(2, 12)] == [(100, 2, 4), (101.5, 4, 8), (200, 8, 12)]

    def test_there_is_no_log(self, tmp_path):
        log = StoredLog(tmp_path / "log")
        assert (log.size(), log.read(0), log.start(since=5, tail=5), log.stretches(0, 0)) == (0, b"", 0, [])


class TestNews:
    def test_the_way_of_a_good_run(self):
        running = replace(FIRST, phase=RUNNING, since=100.44)
        closing = replace(running, phase=CLOSING)
        assert news(SPEC, FIRST, running) == ["training (all 2 tasks are there after 0.4 s)"]
        assert news(SPEC, running, closing) == ["worker/0 finished; publishing the model to /models"]
        assert news(SPEC, closing, replace(closing, phase=ENDED, verdict=Verdict("succeeded", ""))) == []

    def test_restarts_and_the_way_back(self):
        cause = Cause("worker/1", 0, "worker/1 failed with exit code 2", 110.0)
        again = replace(FIRST, generation=1, restarts=1, causes=(cause,), phase=RUNNING, since=112.0)
        assert news(SPEC, replace(FIRST, phase=RUNNING), again) == [
            "restart 1 of 3: worker/1 failed with exit code 2",
            "training (all 2 tasks are there after 2.0 s)",
        ]

    @pytest.mark.parametrize(
        ("by", "said"),
        [("Ctrl-C", "stopping (Ctrl-C again to end at once)"), ("SIGTERM", "stopped by SIGTERM; its tasks are ending")],
    )
    def test_being_stopped(self, by, said):
        assert news(SPEC, FIRST, FIRST.ended(Verdict(CANCELLED, f"stopped by {by}"), 1, 5)) == [said]


class TestStates:
    @pytest.mark.parametrize(
        ("one", "state"),
        [
            (None, "starting"),
            (member(status=JOINED), "joining"),
            (member(status=REACHABLE), "ready"),
            (member(status=STARTED), "running"),
            (member(status=EXITED, exit=ended(0)), "finished"),
            (member(status=EXITED, exit=ended(1)), "failed"),
            (member(status=LOST, exit=ended(137, "lost")), "lost"),
            (member(status=EXITED, exit=ended(143, "stopped")), "stopped"),
        ],
    )
    def test_while_it_runs(self, one, state):
        snapshot = Snapshot(FIRST, {"worker/0": one} if one else {}, {})
        assert states.task_state(SPEC, snapshot, "worker/0", over=False) == state

    def test_publishing(self):
        done = member(status=EXITED, exit=ended(0))
        closing = replace(FIRST, phase=CLOSING)
        assert (
            states.task_state(SPEC, Snapshot(closing, {"worker/0": done}, {}), "worker/0", over=False) == "publishing"
        )
        there = replace(done, published={"ok": True})
        assert states.task_state(SPEC, Snapshot(closing, {"worker/0": there}, {}), "worker/0", over=False) == "finished"

    def test_after_the_first_failure_the_rest_were_stopped_whatever_they_answered(self):
        verdict = Verdict(FAILED, "worker/1 failed", task="worker/1", exit=ended(1))
        members = {
            "worker/0": member(status=EXITED, exit=ended(1)),
            "worker/1": member("worker/1", EXITED, exit=ended(1)),
        }
        snapshot = Snapshot(FIRST.ended(verdict, 1, 1), members, {})
        assert [states.task_state(SPEC, snapshot, task, over=True) for task in members] == ["stopped", "failed"]

    def test_until_it_has_ended_a_task_of_an_ended_run_is_stopping(self):
        snapshot = Snapshot(FIRST.ended(Verdict(CANCELLED, "stopped"), 1, 5), {"worker/0": member()}, {})
        assert states.task_state(SPEC, snapshot, "worker/0", over=False) == "stopping"
        assert states.task_state(SPEC, snapshot, "worker/0", over=True) == "stopped"


class TestFrame:
    def test_what_a_script_tells_is_shown_and_nonsense_does_no_harm(self):
        good = {"epoch": 2, "epochs": 4, "step": 5, "steps": 10, "loss": 0.5, "metrics": {"a": 1.0, "b": 2.0, "c": 3.0}}
        good["input_wait"] = 0.34
        odd = {"epoch": "two", "epochs": None, "step": -3, "steps": "x", "loss": None, "examples_per_s": 0}
        odd["input_wait"] = "much"
        beats = {"worker/0": Beat(1, good), "worker/1": Beat(1, odd)}
        members = {task: member(task) for task in beats}
        rows = frame(SPEC, Snapshot(FIRST, members, beats), 107.0, 10).rows
        assert rows[0].cells == ("epoch 2/4", "step 5/10", "loss 0.5", "a 1  b 2", "", "34 % waiting for input")
        assert rows[0].share == 0.375
        assert rows[1].share is None

    def test_head_and_tasks_without_room(self):
        state = replace(FIRST, restarts=2, phase=RUNNING)
        shown = frame(SPEC, Snapshot(state, {}, {}), 107.9, 1)
        assert shown.head == "job-aaaaaa  training  0:07  restarts 2 of 3"
        assert (shown.rows, shown.more) == ((), "and 2 tasks more: 2 starting")


class TestOut:
    def test_what_nobody_reads_is_dropped(self):
        import os

        read, write = os.pipe()
        with os.fdopen(write, "w") as stream:
            out = Out(stream)
            out.say("hello")
            assert os.read(read, 100) == b"hello\n"
            os.close(read)
            out.say("gone")
            assert out.gone
            out.say("gone")


def test_json_has_no_nan():
    from yurt.cli.as_json import as_line, as_page

    assert as_line({"loss": float("nan"), "all": (1.5, float("-inf"))}) == '{"loss": "nan", "all": [1.5, "-inf"]}'
    assert as_page([1]) == "[\n  1\n]"
