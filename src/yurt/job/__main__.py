"""``python -m yurt.job`` prints the JSON Schema of a job file."""

import json

from yurt.job.schema import job_schema

print(json.dumps(job_schema(), indent=2))
