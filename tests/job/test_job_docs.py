"""What the page says is so."""

import re
from pathlib import Path

import pytest

from yurt.job import Job, Role

PAGE = (Path(__file__).parents[2] / "docs" / "job-file.md").read_text()
SAID = re.findall(r"^\| `([^|]+)` \| (?:``|`)(job\.yaml:.+?)(?:``|`) \|$", PAGE, re.MULTILINE)


def test_every_field_is_on_the_page():
    for model in (Job, Role):
        for name, info in model.model_fields.items():
            assert f"| `{info.alias or name}` |" in PAGE


def test_the_smallest_job_on_the_page_is_one(load):
    first = re.search(r"```yaml\n(.+?)```", PAGE, re.DOTALL)
    assert first is not None
    assert load(first[1]).roles["worker"].replicas == 2


def test_the_page_has_its_mistakes():
    assert len(SAID) >= 15


@pytest.mark.parametrize(("written", "sentence"), SAID)
def test_what_the_page_says_is_said(said, written, sentence):
    line = int(sentence.split(":")[1])
    key = written.partition(":")[0]
    lines = [one for one in ("name: a", "command: x") if not one.startswith(f"{key}:")]
    if key == "name":
        lines.insert(0, written)
    elif key == "command":
        lines.append(written)
    else:
        lines = [*["name: a", "command: x"][: line - 1], written]
    if "twice" not in written:
        assert sentence in said("\n".join(lines) + "\n")
