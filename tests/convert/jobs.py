"""Small Nomad jobs, to be changed by a test."""

from __future__ import annotations

import json

from yurt.convert import Converted, Source, read_jobs


def task(name="train", driver="raw_exec", **more):
    return {"Name": name, "Driver": driver, "Config": {"command": "python", "args": ["train.py"]}, **more}


def group(name="worker", count=2, tasks=None, **more):
    return {"Name": name, "Count": count, "Tasks": tasks or [task()], **more}


def job(*groups, **more):
    return {"ID": "weather", "Name": "weather", "Type": "batch", "TaskGroups": list(groups or [group()]), **more}


def read(*jobs_or_texts, **options) -> Converted:
    """What the jobs make: dicts are JSON, texts are HCL."""
    sources = [
        Source(f"{index}.nomad", given if isinstance(given, str) else json.dumps({"Job": given}))
        for index, given in enumerate(jobs_or_texts)
    ]
    return read_jobs(sources, **options)


def hcl(config="", task_body="", group_body="", top="", driver="raw_exec", name="worker"):
    """A job with one group and one task, in HCL, with more lines in its blocks."""
    config = config or 'command = "python"\n args = ["train.py"]'
    return f"""{top}
job "weather" {{
  group "{name}" {{
    {group_body}
    task "train" {{
      driver = "{driver}"
      config {{
        {config}
      }}
      {task_body}
    }}
  }}
}}
"""


def messages(converted: Converted) -> list[str]:
    return [note.message for note in converted.notes]
