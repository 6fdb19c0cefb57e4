"""Turns a job into the specification of one run of it."""

from __future__ import annotations

from yurt.contract.spec import ROLES, RunSpec, TaskSpec
from yurt.job import Job


def plan(job: Job, run_id: str, submitted_at: float) -> RunSpec:
    """The run's tasks and rules as engines and agents see them. `submitted_at` is Unix time in seconds."""
    roles = {str(name): role for name, role in job.roles.items()}
    tasks = tuple(
        TaskSpec(
            role=name,
            index=index,
            command=None if roles[name].standard_server else tuple(roles[name].command or job.command or ()),
            env={**job.env, **roles[name].env},
            cpus=roles[name].cpus,
            memory_bytes=roles[name].memory_bytes,
            gpus=roles[name].gpus,
        )
        for name in ROLES
        if name in roles
        for index in range(roles[name].replicas)
    )
    return RunSpec(
        run_id=run_id,
        job_name=job.name,
        strategy=str(job.strategy),
        tasks=tasks,
        restart=str(job.restart),
        max_restarts=job.max_restarts,
        success=str(job.success),
        start_deadline_s=job.start_deadline_s,
        deadline_s=job.deadline_s,
        grace_s=job.grace_s,
        output=job.output,
        saves_to=job.saves_to,
        submitted_at=submitted_at,
        keras=str(job.keras),
        track=tuple(map(str, job.track)),
        image=job.image,
    )
