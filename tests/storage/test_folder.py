"""Publishing to a folder."""

from __future__ import annotations

import errno
import json
import os
import threading
from pathlib import Path

import pytest

from tests.storage.helpers import FILES, contents, make_model
from yurt.storage import pointer
from yurt.storage.errors import StorageFailed
from yurt.storage.lock import Lock
from yurt.storage.publish import publish
from yurt.storage.read import fetch, list_versions, resolve, verify


def names(folder: Path) -> set[str]:
    return {p.name for p in folder.iterdir()}


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "my models ü"


def test_layout(model: Path, out: Path) -> None:
    done = publish(model, str(out), "run-1", meta={"job": "weather"})
    assert names(out) == {"run-1", "latest"}
    assert os.readlink(out / "latest") == "run-1"
    assert contents(out / "latest") == FILES
    manifest = json.loads((out / "run-1/manifest.json").read_text())
    assert [f["path"] for f in manifest["files"]] == sorted(FILES)
    assert manifest["meta"] == {"job": "weather"}
    assert (done.files, done.bytes, done.place) == (len(FILES), sum(map(len, FILES.values())), str(out / "run-1"))
    assert done.url == (out / "run-1").as_uri()
    assert done.latest_url == (out / "latest").as_uri()
    assert contents(model) == FILES
    assert verify(done.url) == verify(out / "latest") == verify(out) == verify(str(out), "run-1")


def test_a_url_and_a_path_are_the_same_place(model: Path, out: Path) -> None:
    assert publish(model, out.as_uri(), "run-1") == publish(model, str(out), "run-1")


def test_nothing_else_is_touched(model: Path, out: Path) -> None:
    make_model(out, {"notes.txt": b"mine", ".hidden.partial/x": b"mine", ".some.lock": b"mine", "run-0/own": b"mine"})
    before = contents(out)
    publish(model, str(out), "run-1")
    after = {k: v for k, v in contents(out).items() if not k.startswith(("run-1/", "latest"))}
    assert after == before


def test_again_is_a_success_that_writes_nothing(model: Path, out: Path) -> None:
    first = publish(model, str(out), "run-1")
    inode = (out / "run-1/saved_model.pb").stat().st_ino
    assert publish(model, str(out), "run-1") == first
    assert (out / "run-1/saved_model.pb").stat().st_ino == inode


def test_latest_follows_and_older_versions_stay(model: Path, out: Path) -> None:
    publish(model, str(out), "run-1")
    (model / "saved_model.pb").write_bytes(b"new")
    publish(model, str(out), "run-2")
    assert resolve(str(out)) == "run-2"
    assert list_versions(str(out)) == ["run-1", "run-2"]
    assert verify(str(out), "run-1").files != verify(out).files


@pytest.mark.parametrize("damage", ["missing", "short", "changed"])
def test_a_damaged_version_is_found_and_healed(model: Path, out: Path, damage: str) -> None:
    publish(model, str(out), "run-1")
    victim = out / "run-1/assets/deep/er/日本.txt"
    if damage == "missing":
        victim.unlink()
        victim.parent.rmdir()
    else:
        victim.write_bytes(b"" if damage == "short" else b"y")
    with pytest.raises(StorageFailed) as caught:
        verify(out)
    assert caught.value.reason == "corrupt"
    publish(model, str(out), "run-1")
    verify(out)
    assert contents(out / "run-1") == FILES
    assert names(out) == {"run-1", "latest"}


def test_another_model_under_the_same_version_is_refused(model: Path, out: Path) -> None:
    publish(model, str(out), "run-1")
    (model / "saved_model.pb").write_bytes(b"other")
    with pytest.raises(StorageFailed, match="already published with another model"):
        publish(model, str(out), "run-1")
    assert contents(out / "run-1") == FILES
    assert names(out) == {"run-1", "latest"}


def test_a_folder_that_yurt_did_not_write_is_left_alone(model: Path, out: Path) -> None:
    make_model(out, {"run-1/thesis.txt": b"mine"})
    with pytest.raises(StorageFailed, match="is no published model"):
        publish(model, str(out), "run-1")
    assert contents(out) == {"run-1/thesis.txt": b"mine"}


def test_latest_that_is_a_folder_of_somebody_is_left_alone(model: Path, out: Path) -> None:
    make_model(out, {"latest/thesis.txt": b"mine"})
    with pytest.raises(StorageFailed, match="latest"):
        publish(model, str(out), "run-1")
    assert contents(out / "latest") == {"thesis.txt": b"mine"}


def test_publishers_of_one_version_wait_for_each_other(model: Path, out: Path) -> None:
    errors: list[BaseException] = []

    def one() -> None:
        try:
            publish(model, str(out), "run-1")
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=one) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    verify(out)
    assert names(out) == {"run-1", "latest"}


def test_publishers_of_many_versions_do_not_disturb_each_other(model: Path, out: Path) -> None:
    errors: list[BaseException] = []

    def one(number: int) -> None:
        try:
            publish(model, str(out), f"run-{number}")
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=one, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    for number in range(8):
        verify(out, f"run-{number}")
    assert names(out) == {"latest", *(f"run-{n}" for n in range(8))}


def test_a_publisher_that_never_ends_is_not_waited_for_for_ever(model: Path, out: Path) -> None:
    out.mkdir()
    with Lock(out / ".run-1.partial.lock", 1), pytest.raises(StorageFailed) as caught:
        publish(model, str(out), "run-1", retry_timeout_s=0.2)
    assert caught.value.reason == "unavailable"
    publish(model, str(out), "run-1")


def test_without_symbolic_links_latest_is_a_text(model: Path, out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(pointer.Path, "symlink_to", refuse)
    publish(model, str(out), "run-1")
    publish(model, str(out), "run-2")
    assert (out / "latest").read_text() == "run-2\n"
    assert resolve(out) == "run-2"


def test_fetch(model: Path, out: Path, tmp_path: Path) -> None:
    publish(model, str(out), "run-1")
    target = tmp_path / "copy"
    target.mkdir()
    manifest = fetch(str(out), "latest", target)
    assert contents(target) == FILES
    assert json.loads((target / "manifest.json").read_text())["version"] == manifest.version == "run-1"


def test_reading_what_is_not_there(tmp_path: Path) -> None:
    assert list_versions(tmp_path / "none") == []
    for read in (lambda: resolve(tmp_path), lambda: verify(tmp_path), lambda: verify(tmp_path, "run-1")):
        with pytest.raises(StorageFailed) as caught:
            read()
        assert caught.value.reason == "not-found"


def test_a_path_through_a_file(model: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(StorageFailed) as caught:
        publish(model, str(tmp_path / "file/models"), "run-1")
    assert caught.value.reason == "not-found"


def test_a_manifest_that_would_lead_outside_is_refused(model: Path, out: Path, tmp_path: Path) -> None:
    publish(model, str(out), "run-1")
    path = out / "run-1/manifest.json"
    path.write_text(path.read_text().replace("saved_model.pb", "../../secrets"))
    with pytest.raises(StorageFailed) as caught:
        fetch(out, "latest", tmp_path / "copy")
    assert caught.value.reason == "corrupt"
    assert not (tmp_path / "copy").exists()
