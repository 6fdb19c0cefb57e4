"""Outputs, versions, secrets, manifests, pre-flight checks and faults, each by itself."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from tests.storage.helpers import S3
from yurt.errors import UsageError
from yurt.storage import bucket
from yurt.storage.bucket import _aws_profile
from yurt.storage.checks import check_output
from yurt.storage.errors import REASONS, StorageFailed, from_os_error
from yurt.storage.faults import explain
from yurt.storage.manifest import FileEntry, new_manifest, parse_manifest
from yurt.storage.parallel import for_each
from yurt.storage.redact import redact
from yurt.storage.urls import check_version, parse_output


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("s3://b", "s3://b"),
        ("s3://b/", "s3://b"),
        ("s3://b/a b/ü%20/", "s3://b/a b/ü%20"),
        ("gs://b/x", "gs://b/x"),
        ("az://box/x/y", "az://box/x/y"),
        ("/a b/c", "file:///a%20b/c"),
        ("file:///a%20b/c", "file:///a%20b/c"),
        ("file:/a", "file:///a"),
        ("file://localhost/a", "file:///a"),
    ],
)
def test_outputs(text: str, url: str) -> None:
    assert parse_output(text).url() == url
    assert parse_output(text).url("run-1") == f"{url}/run-1"


def test_relative_and_home_paths() -> None:
    assert parse_output("models").path == os.path.abspath("models")
    assert parse_output("~/m").path == os.path.join(os.environ["HOME"], "m")


@pytest.mark.parametrize(
    "text", ["", "s3:b/x", "s3:///x", "s3://b//x", "s3://b/../x", "http://h/x", "file:x", "gs://u@b/x", "a\0b"]
)
def test_wrong_outputs(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_output(text)
    assert caught.value.hint


@pytest.mark.parametrize("version", ["weather-20260101-ab12", "1", "a.b_c-D", "x" * 128])
def test_versions(version: str) -> None:
    assert check_version(version) == version


@pytest.mark.parametrize(
    "version", ["", ".", "..", ".x", "a/b", "a b", "a\n", "-x", "latest", "manifest.json", "ü", "x" * 129]
)
def test_wrong_versions(version: str) -> None:
    with pytest.raises(UsageError):
        check_version(version)


def test_redact() -> None:
    environ = {
        "MY_TOKEN": "t0k/en+",
        "SHORT_KEY": "abc",
        "USE_KEY": "true",
        "PATH": "/usr/bin",
        "A_SECRET": "t0k/en+longer",
        "password": "pässword",
    }
    assert (
        redact("t0k/en+ t0k%2Fen%2B t0k/en+longer /usr/bin true abc pässword", environ)
        == "*** *** *** /usr/bin true abc ***"
    )
    assert (
        redact("http://me:pw@host/x?X-Amz-Signature=abc&sig=d%2F&y=1", {})
        == "http://***@host/x?X-Amz-Signature=***&sig=***&y=1"
    )


def test_manifest_round_trip() -> None:
    made = new_manifest("r", [FileEntry("b", 1, "x"), FileEntry("a/ü", 0, "y")], {"n": 1.5, "p": Path("/x")})
    read = parse_manifest(made.to_json(), "here")
    assert read == made
    assert read.content == made.content
    assert [f.path for f in read.files] == ["a/ü", "b"]


@pytest.mark.parametrize("text", [b"", b"[]", b"{}", b'{"files": 3}', b"\xff"])
def test_no_manifest(text: bytes) -> None:
    with pytest.raises(StorageFailed, match="here is not a manifest") as caught:
        parse_manifest(text, "here")
    assert caught.value.reason == "corrupt"


@pytest.mark.parametrize(
    ("number", "reason"),
    [
        (errno.ENOSPC, "no-space"),
        (errno.EDQUOT, "no-space"),
        (errno.EACCES, "denied"),
        (errno.EROFS, "denied"),
        (errno.ENOENT, "not-found"),
        (errno.EIO, "unavailable"),
        (errno.EBUSY, "other"),
    ],
)
def test_errors_of_the_system(number: int, reason: str) -> None:
    error = from_os_error(OSError(number, os.strerror(number)), "writing", "/x", progress="1 of 2")
    assert error.reason == reason
    assert str(error).endswith("while writing /x (1 of 2)")
    assert error.exit_code == 5


@pytest.mark.parametrize(
    ("scheme", "text", "reason", "words"),
    [
        ("gs", "Generic GCS error: ... status code: 404 Not Found: The specified bucket does not exist.", "not-found", "bucket gs://b does not exist"),
        ("az", "... status code: 404 Not Found: <Error><Code>ContainerNotFound</Code>", "not-found", "container az://b does not exist"),
        ("az", "Generic MicrosoftAzure error: Account must be specified", "other", "Account must be specified"),
        ("gs", "Error performing GET http://169.254.169.254/computeMetadata/v1/x - HTTP error", "denied", "no credentials"),
        ("s3", "... after 3 retries - HTTP error: error sending request\n\nDebug source:\n kind: Timeout", "unavailable", "no answer in time"),
        ("s3", "... HTTP error: x\n\nDebug source: failed to lookup address information", "unavailable", "host's name is unknown"),
        ("s3", "HTTP error: builder error\n\nDebug source: BadScheme", "other", "no usable URL"),
        ("s3", "... status code: 400 Bad Request: <Code>BadDigest</Code>", "corrupt", "not what was sent"),
        ("s3", "... status code: 400 Bad Request: <Code>Odd</Code><Message>a reason</Message>", "other", "a reason"),
    ],
)  # fmt: skip
def test_faults_of_object_stores(scheme: str, text: str, reason: str, words: str) -> None:
    fault = explain(RuntimeError(text), bucket=f"{scheme}://b", key="k", endpoint="", elapsed_s=2, environ={})
    assert fault is not None
    assert (fault.reason, bool(fault.hint)) == (reason, True)
    assert words in str(fault)
    assert fault.reason in REASONS
    assert "\n" not in str(fault)


def test_check_of_a_folder(tmp_path: Path) -> None:
    check_output(str(tmp_path / "a/b"))
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(StorageFailed) as caught:
        check_output(str(tmp_path / "file/x"))
    assert caught.value.reason == "not-found"
    with pytest.raises(StorageFailed, match="no room left") as caught:
        check_output(str(tmp_path), needed_bytes=10**18)
    assert caught.value.reason == "no-space"


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs /proc, where nobody can write")
def test_check_of_a_folder_that_takes_nothing() -> None:
    with pytest.raises(StorageFailed):
        check_output("/proc/yurt")


def test_check_of_a_bucket(s3: S3) -> None:
    check_output(s3.output)
    assert s3.objects() == {}
    assert [r.method for r in s3.proxy.requests][:1] == ["PUT"]
    with pytest.raises(StorageFailed) as caught:
        check_output("s3://no-such-bucket/x")
    assert caught.value.reason == "not-found"
    s3.proxy.requests.clear()
    check_output("s3://no-such-bucket/x", probe=False)
    assert s3.proxy.requests == []


def test_profiles_are_read_by_boto3(s3: S3, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    (tmp_path / "credentials").write_text("[work]\naws_access_key_id = AKIAFROMPROFILE\naws_secret_access_key = x\n")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.setenv("AWS_PROFILE", "work")
    provider = _aws_profile(os.environ)
    assert provider is not None
    assert provider()["access_key_id"] == "AKIAFROMPROFILE"  # type: ignore[index]
    check_output(s3.output)
    monkeypatch.setenv("AWS_PROFILE", "nobody")
    with pytest.raises(StorageFailed, match="'nobody' cannot be used") as caught:
        check_output(s3.output)
    assert caught.value.reason == "denied"


def test_own_credentials_come_before_profiles(monkeypatch: pytest.MonkeyPatch) -> None:
    assert bucket._aws_profile({"AWS_ACCESS_KEY_ID": "x", "AWS_PROFILE": "work"}) is None
    assert bucket._aws_profile({"HOME": "/nonexistent"}) is None


def test_the_other_clouds_are_constructed_with_their_own_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_NAME", "account")
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_KEY", "a2V5")
    check_output("az://box/x", probe=False)
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", "/nonexistent.json")
    with pytest.raises(StorageFailed, match=r"/nonexistent\.json"):
        check_output("gs://b/x", probe=False)


def test_for_each_waits_for_what_is_under_way_and_raises_the_first() -> None:
    ended: list[int] = []

    def action(number: int) -> None:
        if number == 0:
            raise ValueError("first")
        ended.append(number)

    with pytest.raises(ValueError, match="first"):
        for_each(range(100), action, at_once=2)
    count = len(ended)
    assert count < 100
    for_each([], action, at_once=2)
    assert len(ended) == count
