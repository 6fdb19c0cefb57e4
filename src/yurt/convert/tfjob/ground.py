"""Where a TFJob's roles will run, and what is at hand there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from yurt.convert.tfjob.commands import Images
from yurt.convert.tfjob.manifest import Manifest

KUBERNETES: Final = "kubernetes"
LOCAL: Final = "local"
DOCKER: Final = "docker"
NOMAD: Final = "nomad"


@dataclass(frozen=True, slots=True)
class Ground:
    """Where the job will run, and what is at hand there.

    `engine` is None where the job is only written down, for Kubernetes. `volumes` are folders of this machine by the
    names of volumes, `given` the variables that the command line gives.
    """

    manifest: Manifest
    engine: str | None
    volumes: Mapping[str, str]
    given: frozenset[str]
    images: Images

    @property
    def in_kubernetes(self) -> bool:
        """Whether pods of Kubernetes run the roles."""
        return self.engine in (None, KUBERNETES)
