"""How the job's files and its Python environment come to the tasks' machines, as options of an engine."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from yurt.engines.travel.git_source import GitSource


class TravelOptions(BaseModel):
    """What every engine whose tasks are on other machines has among its options."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    files_through: str | None = Field(
        default=None,
        pattern=r"^(s3|gs|az)://[^/@]+",
        description="A bucket for the job's files where they are too large for the job; without it the output, where "
        "that is one.",
    )
    git: GitSource | None = Field(default=None, description="The nodes take the job's files from a git commit.")
    requirements: str | None = Field(
        default=None,
        min_length=1,
        description="A requirements file among the job's files: each node makes a Python environment of it, once.",
    )
    requirements_on_top: bool = Field(
        default=False, description="Whether that environment sees the packages of the nodes' Python too."
    )
    cache_folder: str | None = Field(
        default=None,
        pattern="^/",
        description="The folder of the nodes that keeps environments between runs; without it /var/cache/yurt or "
        "~/.cache/yurt.",
    )
