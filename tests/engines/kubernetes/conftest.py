"""A person's runs on a real Kubernetes, in both ways; what a test leaves there fails it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.kubernetes_runs import ClusterRuns
from tests.support.runs import Folder


@pytest.fixture(params=["none", "tfjob"])
def runs(request: pytest.FixtureRequest, kubernetes_namespace: str, tmp_path: Path) -> Iterator[ClusterRuns]:
    """Every run is over when the test is left, and nothing of it is in the cluster."""
    cluster = request.getfixturevalue("training_operator" if request.param == "tfjob" else "kubernetes_cluster")
    made = ClusterRuns(cluster, kubernetes_namespace, Folder(tmp_path, cluster.environment), request.param)
    yield made
    for run_id in made.folder.run_ids():
        made.folder.yurt("stop", "--now", run_id)
    made.assert_nothing_left()
