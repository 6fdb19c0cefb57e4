"""A Yurt job as the text of a Nomad job file that runs the same roles without Yurt."""

from __future__ import annotations

import json
from typing import Final, Literal

from yurt.convert.converted import Written, as_comments
from yurt.convert.nomad.hcl_writing import as_hcl
from yurt.convert.nomad.reading import MHZ_PER_CPU
from yurt.convert.nomad.rendering import render
from yurt.job import Job

_HEAD: Final = "Look at what this job does not do, and Yurt did:"


def write(job: Job, *, syntax: Literal["hcl", "json"] = "hcl", mhz_per_cpu: int = MHZ_PER_CPU) -> Written:
    """The job in HCL2, with its notes as comments, or in the HTTP API's JSON, which has no room for them."""
    nomad = render(job, mhz_per_cpu)
    if syntax == "json":
        return Written(json.dumps(nomad.body, indent=2, ensure_ascii=False) + "\n", nomad.notes)
    comments = [f"# {line}" for line in ("Made by yurt convert.", *as_comments(nomad.notes, _HEAD))]
    return Written("\n".join([*comments, "", as_hcl(nomad.body["Job"])]), nomad.notes)
