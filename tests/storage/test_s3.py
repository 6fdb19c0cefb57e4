"""Publishing to S3, as moto's server speaks it."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path

import pytest

from tests.storage.helpers import FILES, S3, command, contents, make_model
from yurt.storage.bucket import part_size
from yurt.storage.errors import StorageFailed
from yurt.storage.publish import publish
from yurt.storage.read import fetch, list_versions, resolve, verify

MIB = 1024 * 1024


def test_layout_and_reading_back(s3: S3, model: Path, tmp_path: Path) -> None:
    done = publish(model, s3.output, "run-1", meta={"job": "weather", "loss": 0.25})
    there = s3.objects()
    assert {
        k.removeprefix("run-1/"): v for k, v in there.items() if k.startswith("run-1/") and k != "run-1/manifest.json"
    } == FILES
    assert there["latest"] == b"run-1\n"
    manifest = json.loads(there["run-1/manifest.json"])
    assert manifest["meta"] == {"job": "weather", "loss": 0.25}
    assert done.url == f"{s3.output}/run-1" == done.place
    assert (done.files, done.bytes) == (len(FILES), sum(map(len, FILES.values())))
    assert done.latest_url == f"{s3.output}/latest"
    assert resolve(s3.output, "latest") == "run-1"
    assert verify(s3.output).total_bytes == done.bytes
    assert verify(done.url) == verify(done.latest_url) == verify(s3.output, "run-1")
    fetch(s3.output, "latest", tmp_path / "copy")
    assert contents(tmp_path / "copy") == FILES
    assert set(there) == {"latest", "run-1/manifest.json", *(f"run-1/{name}" for name in FILES)}


def test_manifest_comes_after_every_file_and_latest_after_the_manifest(s3: S3, model: Path) -> None:
    publish(model, s3.output, "run-1")
    names = [p.rsplit("models/", 1)[1] for p in s3.proxy.paths("PUT")]
    assert names[0] == "run-1/.publishing"
    assert names[-2:] == ["run-1/manifest.json", "latest"]
    assert sorted(names[1:-2]) == sorted(f"run-1/{name}" for name in FILES)
    # Every file has been looked at before the manifest says that it is there.
    order = [(r.method, r.path) for r in s3.proxy.requests]
    manifest = order.index(("PUT", f"/{s3.bucket}/some prefix/models/run-1/manifest.json"))
    assert {p.rsplit("run-1/", 1)[1] for m, p in order[:manifest] if m == "HEAD"} >= set(FILES)


def test_again_sends_no_file(s3: S3, model: Path) -> None:
    first = publish(model, s3.output, "run-1")
    s3.proxy.requests.clear()
    assert publish(model, s3.output, "run-1") == first
    assert [p.rsplit("/", 1)[1] for p in s3.proxy.paths("PUT")] == ["latest"]


def test_a_damaged_version_is_healed_file_by_file(s3: S3, model: Path) -> None:
    publish(model, s3.output, "run-1")
    client = s3.moto.client()
    client.delete_object(Bucket=s3.bucket, Key="some prefix/models/run-1/saved_model.pb")
    client.put_object(Bucket=s3.bucket, Key="some prefix/models/run-1/variables/variables.index", Body=b"INDEX")
    with pytest.raises(StorageFailed) as caught:
        verify(s3.output)
    assert caught.value.reason == "corrupt"
    s3.proxy.requests.clear()
    publish(model, s3.output, "run-1")
    assert {p.rsplit("/", 1)[1] for p in s3.proxy.paths("PUT")} == {"saved_model.pb", "variables.index", "latest"}
    verify(s3.output)


def test_another_model_under_the_same_version_is_refused(s3: S3, model: Path) -> None:
    publish(model, s3.output, "run-1")
    before = s3.objects()
    (model / "saved_model.pb").write_bytes(b"other")
    with pytest.raises(StorageFailed, match="already published with another model"):
        publish(model, s3.output, "run-1")
    assert s3.objects() == before


def test_a_partial_publish_is_completed_and_strangers_of_it_removed(s3: S3, model: Path) -> None:
    publish(model, s3.output, "run-0")
    s3.proxy.fail(method="PUT", path="run-1/saved_model.pb", status=403, code="AccessDenied")
    (model / "zz-old.bin").write_bytes(b"old")
    make_model(model, {"aa-old.bin": b"old"})
    with pytest.raises(StorageFailed):
        publish(model, s3.output, "run-1")
    assert "run-1/manifest.json" not in s3.objects()
    assert "run-1/aa-old.bin" in s3.objects()
    assert resolve(s3.output) == "run-0"
    (model / "aa-old.bin").unlink()
    (model / "zz-old.bin").unlink()
    s3.proxy.faults.clear()
    s3.proxy.requests.clear()
    publish(model, s3.output, "run-1")
    assert {k for k in s3.objects() if k.startswith("run-1/")} == {
        "run-1/manifest.json",
        *(f"run-1/{n}" for n in FILES),
    }
    assert resolve(s3.output) == "run-1"
    assert s3.objects()["run-0/saved_model.pb"] == FILES["saved_model.pb"]


def test_large_files_go_in_parts(s3: S3, tmp_path: Path) -> None:
    content = os.urandom(6 * MIB + 17)
    model = make_model(tmp_path / "m", {"big.bin": content, "five.bin": content[: 5 * MIB], "small.bin": b"s"})
    publish(model, s3.output, "run-1", part_bytes=5 * MIB)
    parts = [r for r in s3.proxy.requests if "partNumber" in r.query]
    assert sorted(p.body_bytes for p in parts) == [MIB + 17, 5 * MIB]
    assert all(p.path.endswith("/big.bin") for p in parts)
    # The ETag of the parts is what we expect, so nothing is read back.
    assert not [r for r in s3.proxy.requests if r.method == "GET" and r.path.endswith(".bin")]
    verify(s3.output)


def test_parts_grow_so_that_ten_thousand_suffice() -> None:
    assert part_size(100, 8 * MIB) == 8 * MIB
    size = 5 * 1024**4
    assert -(-size // part_size(size, 8 * MIB)) <= 10_000


def test_publishers_of_the_same_model_at_the_same_time(s3: S3, model: Path) -> None:
    errors: list[BaseException] = []

    def one() -> None:
        try:
            publish(model, s3.output, "run-1")
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=one) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    verify(s3.output)
    assert "run-1/.publishing" not in s3.objects()


def test_of_two_different_models_at_once_the_earlier_gives_up(s3: S3, model: Path, tmp_path: Path) -> None:
    other = make_model(tmp_path / "other", {**FILES, "saved_model.pb": b"other" * 1000})
    client = s3.moto.client()
    key = "some prefix/models/run-1/.publishing"

    class Intruder(threading.Thread):
        """Takes the claim over as soon as the first publisher has put it."""

        def run(self) -> None:
            while not any(r.path.endswith(".publishing") and r.method == "PUT" for r in s3.proxy.requests):
                pass
            client.put_object(Bucket=s3.bucket, Key=key, Body=b"of another")

    s3.proxy.fail(method="PUT", path="saved_model.pb", times=2)  # time for the intruder
    intruder = Intruder()
    intruder.start()
    with pytest.raises(StorageFailed, match="another publisher"):
        publish(model, s3.output, "run-1")
    intruder.join()
    assert "run-1/manifest.json" not in s3.objects()
    assert "latest" not in s3.objects()
    publish(other, s3.output, "run-1")
    assert verify(s3.output).files == verify(s3.output, "run-1").files


def test_versions_are_listed_oldest_first_and_only_whole_ones(s3: S3, model: Path) -> None:
    assert list_versions(s3.output) == []
    with pytest.raises(StorageFailed) as caught:
        resolve(s3.output)
    assert caught.value.reason == "not-found"
    publish(model, s3.output, "b")
    s3.moto.client().put_object(Bucket=s3.bucket, Key="some prefix/models/half/x", Body=b"")
    publish(model, s3.output, "c")
    assert set(list_versions(s3.output)) == {"b", "c"}
    with pytest.raises(StorageFailed) as caught:
        resolve(s3.output, "half")
    assert caught.value.reason == "not-found"


def test_a_bucket_without_prefix(s3: S3, model: Path) -> None:
    publish(model, f"s3://{s3.bucket}", "run-1")
    assert s3.moto.objects(s3.bucket)["latest"] == b"run-1\n"
    assert list_versions(f"s3://{s3.bucket}/") == ["run-1"]


def test_the_command(s3: S3, model: Path, tmp_path: Path) -> None:
    (tmp_path / "meta.json").write_text('{"run": "run-1"}')
    answer = command(
        "--source", model, "--output", s3.output, "--version", "run-1", "--meta-file", tmp_path / "meta.json"
    )
    assert (answer.code, answer.said["ok"], answer.said["files"], answer.stderr) == (0, True, len(FILES), "")
    assert verify(s3.output).meta == {"run": "run-1"}
