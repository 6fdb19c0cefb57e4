"""The table of exit codes says what the code does."""

from __future__ import annotations

import re
from pathlib import Path

from yurt import errors
from yurt.cli.main import INTERRUPTED
from yurt.contract.state import EXIT_CODES

TABLE = (Path(__file__).parents[2] / "docs" / "exit-codes.md").read_text()


def documented() -> dict[int, tuple[str, str]]:
    rows = re.findall(r"^\| (\d+) \| ([^|]*) \| ([^|]*) \|", TABLE, re.MULTILINE)
    return {int(code): (outcome.strip(" `"), names) for code, outcome, names in rows}


def test_every_outcome_stands_beside_its_code():
    assert {outcome: code for code, (outcome, _) in documented().items() if outcome != "-"} == dict(EXIT_CODES)


def test_every_error_stands_beside_its_code():
    found = {
        name: kind.exit_code
        for name, kind in vars(errors).items()
        if isinstance(kind, type) and issubclass(kind, errors.YurtError)
    }
    told = {name: code for code, (_, names) in documented().items() for name in re.findall(r"`(\w+)`", names)}
    assert told == found


def test_nothing_else_is_documented():
    assert set(documented()) == {*EXIT_CODES.values(), 2, INTERRUPTED}
