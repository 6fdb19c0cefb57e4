"""A model to publish and an S3 to publish to."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.storage.helpers import FILES, S3, make_model
from tests.support.flaky_s3 import FlakyS3, MotoS3, environment


@pytest.fixture(autouse=True)
def _plain_environment(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """No credentials of whoever runs the tests, and no metadata service."""
    for name in list(os.environ):
        if name.startswith(("AWS_", "GOOGLE_", "AZURE_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_METADATA_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setenv("HOME", str(tmp_path_factory.mktemp("home")))


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return make_model(tmp_path / "a model", FILES)


@pytest.fixture(scope="session")
def moto() -> Iterator[MotoS3]:
    with MotoS3() as server:
        yield server


@pytest.fixture
def s3(moto: MotoS3, monkeypatch: pytest.MonkeyPatch) -> Iterator[S3]:
    bucket = f"models-{uuid.uuid4().hex[:12]}"
    moto.make_bucket(bucket)
    with FlakyS3(moto.url) as proxy:
        for name, value in environment(proxy.url).items():
            monkeypatch.setenv(name, value)
        yield S3(moto, proxy, bucket)


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    def point_to(url: str) -> None:
        for name, value in environment(url).items():
            monkeypatch.setenv(name, value)

    return point_to
