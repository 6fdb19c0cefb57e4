"""A Yurt job as the text of a TFJob's file, which a cluster with the operator runs without Yurt."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, Literal

from yurt.convert.converted import Written, as_comments
from yurt.convert.tfjob.rendering import PLAIN, render
from yurt.job import Job

_HEAD: Final = "Look at what this job does not do, and Yurt did:"


def write(job: Job, *, syntax: Literal["yaml", "json"] = "yaml") -> Written:
    """The TFJob in YAML, with its notes as comments, or in JSON, which has no room for them."""
    made = render(job)
    if syntax == "json":
        return Written(json.dumps(made.body, indent=2, ensure_ascii=False) + "\n", made.notes)
    comments = [f"# {line}" for line in ("Made by yurt convert.", *as_comments(made.notes, _HEAD))]
    return Written("\n".join([*comments, "", _as_yaml(made.body)]), made.notes)


def _as_yaml(body: Mapping[str, Any]) -> str:
    """Quoted wherever readers of YAML differ: Kubernetes takes ``1e-4`` for a number, others for text."""
    import yaml

    class Dumper(yaml.SafeDumper):
        def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 - of PyYAML's
            return True

    def text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
        style = None if PLAIN.fullmatch(value) else "|" if _is_block(value) else '"'
        return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)

    Dumper.add_representer(str, text)
    whole: str = yaml.dump(
        body, Dumper=Dumper, sort_keys=False, allow_unicode=True, default_flow_style=False, width=1_000_000
    )
    return whole


def _is_block(text: str) -> bool:
    """Whether the text reads well as lines, and survives that."""
    return (
        "\n" in text
        and all(line == line.rstrip() and (line.isprintable()) for line in text.split("\n"))
        and not text.startswith((" ", "\n"))
    )
