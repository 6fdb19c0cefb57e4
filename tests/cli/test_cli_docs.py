"""docs/commands.md shows what is there."""

from __future__ import annotations

import json
import re
from pathlib import Path

from tests.cli import scripts
from yurt.cli.group import VERBS
from yurt.cli.states import STATES

PAGE = (Path(__file__).parents[2] / "docs" / "commands.md").read_text()


def test_every_verb_and_no_other():
    assert re.findall(r"^\| \[?`(\w+)`", PAGE, re.MULTILINE) == list(VERBS)


def test_every_state_of_a_task():
    told = PAGE[PAGE.index("The states of a task") :].partition("\n\n")[0]
    assert re.findall(r"`(\w+)`", told) == list(STATES)


def test_the_json_has_exactly_the_fields_that_are_shown(folder):
    shown = json.loads(re.search(r"```json\n(.*?)```", PAGE, re.DOTALL)[1])
    folder.yurt("run", folder.write(scripts.two(restart="never"), train=scripts.ONE_FAILS))
    found = json.loads(folder.yurt("status", "--json").stdout)
    assert list(found) == list(shown)
    failed = found["tasks"][1]
    assert list(failed) == list(shown["tasks"][0])
    assert list(failed["exit"]) == list(shown["tasks"][0]["exit"])
    (listed,) = json.loads(folder.yurt("ls", "--json").stdout)
    assert set(listed) == set(shown) - {"causes", "folder"} | {"progress"}
