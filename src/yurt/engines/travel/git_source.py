"""A git repository that the nodes take the job's files from."""

from __future__ import annotations

import re
from pathlib import PurePosixPath

from pydantic import BaseModel, ConfigDict, Field, field_validator

_URL = re.compile(r"(https?|ssh|git|file)://[^-\s][^\s]*|[\w.-]+@[\w.-]+:[^\s]+")
_PASSWORD = re.compile(r"://[^/@]*:[^/@]*@")


class GitSource(BaseModel):
    """Which commit, and where in it the job's folder is."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    url: str = Field(description="The repository as the nodes and this machine reach it.")
    ref: str = Field(
        default="HEAD",
        pattern=r"^[A-Za-z0-9_][^\s:]*$",
        description="A branch, a tag or a commit; what it is at the start counts.",
    )
    folder: str = Field(default="", description="The job's folder in it; without it the repository's own.")

    @field_validator("url")
    @classmethod
    def _safe(cls, url: str) -> str:
        if not _URL.fullmatch(url):
            raise ValueError("say https://, ssh://, git:// or file://, or USER@HOST:PATH")
        if _PASSWORD.search(url):
            raise ValueError("it has a password in it, which would travel in the job: let the nodes have their own")
        return url

    @field_validator("folder")
    @classmethod
    def _inside(cls, folder: str) -> str:
        path = PurePosixPath(folder)
        if path.is_absolute() or ".." in path.parts or ":" in folder:
            raise ValueError("say a folder inside the repository")
        return "" if str(path) == "." else str(path)
