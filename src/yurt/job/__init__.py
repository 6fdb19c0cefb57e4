"""What to run: the job as one frozen value, from a file or from Python, with every mistake named."""

from yurt.job.kinds import RestartPolicy, RoleName, Strategy, SuccessRule
from yurt.job.load import LoadedJob, load_job
from yurt.job.model import Job, Role
from yurt.job.schema import job_schema

__all__ = [
    "Job",
    "LoadedJob",
    "RestartPolicy",
    "Role",
    "RoleName",
    "Strategy",
    "SuccessRule",
    "job_schema",
    "load_job",
]
