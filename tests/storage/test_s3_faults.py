"""An S3 that misbehaves."""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.storage.helpers import FILES, S3, command, make_model
from tests.support.flaky_s3 import ACCESS_KEY, SECRET, FlakyS3
from yurt.storage.bucket import Bucket
from yurt.storage.errors import StorageFailed
from yurt.storage.place import Limits
from yurt.storage.publish import publish
from yurt.storage.read import fetch, resolve, verify
from yurt.storage.urls import parse_output

MIB = 1024 * 1024


def failing(model: Path, output: str, retry_timeout_s: float = 3, **more: int) -> StorageFailed:
    with pytest.raises(StorageFailed) as caught:
        publish(model, output, "run-1", retry_timeout_s=retry_timeout_s, **more)
    assert contents_kept(model)
    return caught.value


def contents_kept(model: Path) -> bool:
    return (model / "saved_model.pb").exists()


@pytest.mark.parametrize(("status", "code"), [(503, "SlowDown"), (500, "InternalError"), (429, "TooManyRequests")])
def test_three_faults_then_it_works(s3: S3, model: Path, status: int, code: str) -> None:
    s3.proxy.fail(times=3, status=status, code=code)
    publish(model, s3.output, "run-1", retry_timeout_s=20)
    assert [r.status for r in s3.proxy.requests[:3]] == [status] * 3
    verify(s3.output)


def test_three_slow_downs_in_the_middle(s3: S3, model: Path) -> None:
    s3.proxy.fail(method="PUT", path="variables", times=3)
    publish(model, s3.output, "run-1", retry_timeout_s=20)
    verify(s3.output)


def test_slow_downs_while_a_large_file_goes_in_parts(s3: S3, tmp_path: Path) -> None:
    model = make_model(tmp_path / "m", {"big.bin": os.urandom(6 * MIB)})
    s3.proxy.fail(method="POST", path="big", times=1)
    s3.proxy.fail(method="PUT", path="big", times=2)
    publish(model, s3.output, "run-1", retry_timeout_s=20, part_bytes=5 * MIB)
    verify(s3.output)


def test_cut_connections_are_made_again(s3: S3, model: Path) -> None:
    s3.proxy.fail(method="PUT", path="saved_model", times=2, action="cut")
    publish(model, s3.output, "run-1", retry_timeout_s=20)
    verify(s3.output)


def test_one_that_never_works_ends_in_time_and_a_later_publish_succeeds(s3: S3, model: Path) -> None:
    s3.proxy.fail()
    start = time.monotonic()
    error = failing(model, s3.output, retry_timeout_s=3)
    assert time.monotonic() - start < 4
    assert error.reason == "unavailable"
    assert "SlowDown" in str(error)
    assert s3.proxy.url in str(error)
    s3.proxy.faults.clear()
    publish(model, s3.output, "run-1")
    verify(s3.output)


def test_one_that_stops_working_in_the_middle(s3: S3, model: Path) -> None:
    publish(model, s3.output, "run-0")
    s3.proxy.fail(method="PUT", path="run-1/(saved|variables)")
    error = failing(model, s3.output, retry_timeout_s=2)
    assert error.reason == "unavailable"
    assert resolve(s3.output) == "run-0"
    assert "run-1/manifest.json" not in s3.objects()


def test_one_that_takes_requests_and_never_answers(s3: S3, model: Path) -> None:
    s3.proxy.fail(action="hang")
    start = time.monotonic()
    error = failing(model, s3.output, retry_timeout_s=2)
    assert time.monotonic() - start < 5
    assert error.reason == "unavailable"


def test_nobody_listens(model: Path, endpoint: Callable[[str], None]) -> None:
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{reserved.getsockname()[1]}"
        endpoint(url)
        error = failing(model, "s3://bucket/x", retry_timeout_s=1)
    assert error.reason == "unavailable"
    assert "connection refused" in str(error)
    assert url in str(error)


def test_bucket_missing(s3: S3, model: Path) -> None:
    error = failing(model, "s3://no-such-bucket/x")
    assert error.reason == "not-found"
    assert "bucket s3://no-such-bucket does not exist" in str(error)
    assert error.hint is not None


@pytest.mark.parametrize(
    ("status", "code"), [(403, "SignatureDoesNotMatch"), (403, "AccessDenied"), (400, "ExpiredToken"), (401, "")]
)
def test_wrong_credentials(s3: S3, model: Path, status: int, code: str) -> None:
    s3.proxy.fail(status=status, code=code)
    start = time.monotonic()
    error = failing(model, s3.output)
    assert time.monotonic() - start < 1, "not retried"
    assert error.reason == "denied"
    assert code in str(error)
    assert SECRET not in f"{error}{error.hint}"
    assert ACCESS_KEY not in f"{error}{error.hint}"


def test_no_credentials_at_all(s3: S3, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    error = failing(model, s3.output, retry_timeout_s=1)
    assert error.reason == "denied"
    assert "no credentials were found" in str(error)


def test_credentials_that_may_write_and_read_but_not_list(s3: S3, model: Path) -> None:
    # Amazon S3 then answers 403 for what is not there.
    s3.proxy.fail(method="GET", path="(manifest.json|.publishing)$", times=2, status=403, code="AccessDenied")
    publish(model, s3.output, "run-1")
    verify(s3.output)


def test_the_wrong_region(s3: S3, model: Path) -> None:
    s3.proxy.fail(status=301, code="PermanentRedirect")
    error = failing(model, s3.output)
    assert "region us-east-1" in str(error)
    assert error.hint == "set AWS_REGION to its region"


def test_a_full_store(s3: S3, model: Path) -> None:
    s3.proxy.fail(method="PUT", status=507, code="XMinioStorageFull", path="saved")
    assert failing(model, s3.output, retry_timeout_s=1).reason == "no-space"


@pytest.mark.parametrize("action", ["corrupt", "truncate"])
def test_corruption_on_the_way_is_found(s3: S3, model: Path, action: str) -> None:
    publish(model, s3.output, "run-0")
    s3.proxy.fail(method="PUT", path="run-1/variables/variables.data", action=action)  # type: ignore[arg-type]
    error = failing(model, s3.output)
    assert error.reason == "corrupt"
    assert "variables.data" in str(error)
    assert resolve(s3.output) == "run-0"
    assert "run-1/manifest.json" not in s3.objects()


def test_corruption_that_happens_once_is_sent_again(s3: S3, model: Path) -> None:
    s3.proxy.fail(method="PUT", path="run-1/variables/variables.data", action="corrupt", times=1)
    publish(model, s3.output, "run-1")
    verify(s3.output)


def test_corruption_of_a_part_is_found(s3: S3, tmp_path: Path) -> None:
    model = make_model(tmp_path / "m", {"saved_model.pb": os.urandom(6 * MIB)})
    s3.proxy.fail(method="PUT", path="saved_model", action="corrupt")
    assert failing(model, s3.output, part_bytes=5 * MIB).reason == "corrupt"


def test_corruption_after_publishing_is_found_when_reading(s3: S3, model: Path, tmp_path: Path) -> None:
    publish(model, s3.output, "run-1")
    key = "some prefix/models/run-1/saved_model.pb"
    s3.moto.client().put_object(Bucket=s3.bucket, Key=key, Body=b"x" * len(FILES["saved_model.pb"]))
    for read in (lambda: verify(s3.output), lambda: fetch(s3.output, "latest", tmp_path / "copy")):
        with pytest.raises(StorageFailed) as caught:
            read()
        assert caught.value.reason == "corrupt"
    assert not (tmp_path / "copy").exists()


def test_the_command_says_it_in_one_line_without_secrets(s3: S3, model: Path) -> None:
    s3.proxy.fail(status=403, code=f"Denied{ACCESS_KEY}")
    answer = command("--source", model, "--output", s3.output, "--version", "run-1", "--retry-timeout", 2)
    assert (answer.code, answer.said["ok"], answer.said["reason"], answer.stderr) == (5, False, "denied", "")
    assert SECRET not in answer.stdout
    assert ACCESS_KEY not in answer.stdout


@pytest.mark.parametrize(
    ("number", "path"),
    [(signal.SIGTERM, "saved_model.pb"), (signal.SIGINT, "saved_model.pb"), (signal.SIGTERM, "run-1/manifest.json")],
)
def test_a_signal_ends_it_at_once_though_a_request_is_under_way(s3: S3, model: Path, number: int, path: str) -> None:
    s3.proxy.fail(path=f"{path}$", action="hang")
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "yurt.storage.publish",
            "--source",
            str(model),
            "--output",
            s3.output,
            "--version",
            "run-1",
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    while not any(r.path.endswith(path) for r in s3.proxy.requests):
        assert process.poll() is None
        time.sleep(0.01)
    start = time.monotonic()
    process.send_signal(number)
    stdout, stderr = process.communicate(timeout=10)
    assert time.monotonic() - start < 1
    assert (process.returncode, stderr, json.loads(stdout)["ok"]) == (5, "", False)
    assert "run-1/manifest.json" not in s3.objects()
    assert "latest" not in s3.objects()
    s3.proxy.faults.clear()
    publish(model, s3.output, "run-1")
    verify(s3.output)


def test_credentials_that_may_not_delete_or_list(s3: S3, model: Path) -> None:
    s3.proxy.fail(method="DELETE", status=403, code="AccessDenied")
    s3.proxy.fail(method="POST", path=f"^/{s3.bucket}/?$", status=403, code="AccessDenied")
    publish(model, s3.output, "run-1")
    verify(s3.output)


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl to make a certificate")
def test_a_store_with_a_certificate_of_its_own(
    s3: S3, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def openssl(*arguments: str) -> None:
        subprocess.run(["openssl", *arguments], cwd=tmp_path, check=True, capture_output=True)

    (tmp_path / "ext").write_text(
        "subjectAltName=IP:127.0.0.1\nbasicConstraints=CA:FALSE\nextendedKeyUsage=serverAuth\n"
    )
    new = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    openssl("req", "-x509", *new, "-keyout", "ca.key", "-out", "ca.pem", "-days", "2", "-subj", "/CN=ca")
    openssl("req", *new, "-keyout", "key.pem", "-out", "csr", "-subj", "/CN=store")
    openssl("x509", "-req", "-in", "csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2", "-extfile", "ext", "-out", "cert.pem")  # fmt: skip
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(tmp_path / "cert.pem", tmp_path / "key.pem")
    with FlakyS3(s3.moto.url, tls=tls) as proxy:
        monkeypatch.setenv("AWS_ENDPOINT_URL", proxy.url)
        error = failing(model, s3.output, retry_timeout_s=1)
        assert (error.reason, "certificate is not trusted" in str(error)) == ("unavailable", True)
        monkeypatch.setenv("AWS_CA_BUNDLE", str(tmp_path / "ca.pem"))
        publish(model, s3.output, "run-1")
        verify(s3.output)
        monkeypatch.setenv("AWS_CA_BUNDLE", str(tmp_path / "none.pem"))
        assert "none.pem" in str(failing(model, s3.output))


@pytest.mark.parametrize("size", [1, 6 * MIB])
def test_a_model_file_that_vanishes_is_not_taken_for_a_missing_object(s3: S3, tmp_path: Path, size: int) -> None:
    bucket = Bucket(parse_output(s3.output), Limits(3, 5 * MIB))
    with pytest.raises(FileNotFoundError) as caught:
        bucket.put_file("x", tmp_path / "gone", size)
    assert caught.value.errno == errno.ENOENT
