"""What counts as a model: links, special files, odd names, nothing at all."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.storage.helpers import make_model
from yurt.errors import PublishFailed, UsageError
from yurt.storage.errors import StorageFailed
from yurt.storage.model import hash_file, scan
from yurt.storage.publish import publish


def paths(folder: Path) -> list[str]:
    return [f.path for f in scan(folder)]


@pytest.mark.parametrize(
    "prepare",
    [lambda p: None, lambda p: p.mkdir(), lambda p: (p / "a/b").mkdir(parents=True), lambda p: p.write_bytes(b"")],
)
def test_nothing_saved(tmp_path: Path, prepare: Callable[[Path], object]) -> None:
    folder = tmp_path / "model"
    prepare(folder)
    with pytest.raises(PublishFailed, match=f"the script saved nothing to {folder}") as caught:
        publish(folder, str(tmp_path / "out"), "run-1")
    assert isinstance(caught.value, StorageFailed)
    assert caught.value.reason == "no-model"
    assert caught.value.hint is not None
    assert "YURT_MODEL_DIR" in caught.value.hint
    assert not (tmp_path / "out").exists()


def test_links_inside_are_followed(tmp_path: Path) -> None:
    model = make_model(tmp_path / "m", {"real/a": b"a", "b": b"b"})
    (model / "again").symlink_to("real")
    (model / "real/c").symlink_to("../b")
    assert paths(model) == ["again/a", "again/c", "b", "real/a", "real/c"]
    publish(model, str(tmp_path / "out"), "run-1")
    assert (tmp_path / "out/latest/again/c").read_bytes() == b"b"
    assert not (tmp_path / "out/run-1/again").is_symlink()


def test_the_model_folder_itself_may_be_a_link(tmp_path: Path) -> None:
    make_model(tmp_path / "m", {"a": b"a"})
    (tmp_path / "link").symlink_to("m")
    assert paths(tmp_path / "link") == ["a"]


@pytest.mark.parametrize(
    ("target", "words"),
    [("/etc/hostname", "leaves"), ("..", "leaves"), ("nowhere", "nowhere"), (".", "circle"), ("loop", "nowhere")],
)
def test_links_that_are_refused(tmp_path: Path, target: str, words: str) -> None:
    model = make_model(tmp_path / "m", {"a": b"a"})
    (model / "loop").symlink_to(target)
    with pytest.raises(StorageFailed, match=f"loop.*{words}"):
        scan(model)


def test_special_files_are_refused(tmp_path: Path) -> None:
    model = make_model(tmp_path / "m", {"a": b"a"})
    os.mkfifo(model / "pipe")
    with pytest.raises(StorageFailed, match="pipe in the model is a pipe, socket or device"):
        scan(model)
    (model / "pipe").unlink()
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(str(model / "s"))
        with pytest.raises(StorageFailed, match="pipe, socket or device"):
            scan(model)


@pytest.mark.parametrize("name", [b"line\nbreak", b"tab\t", b"latin-\xe9"])
def test_names_that_no_store_takes_are_refused_everywhere(tmp_path: Path, name: bytes) -> None:
    model = make_model(tmp_path / "m", {"a": b"a"})
    with open(os.path.join(os.fsencode(model), name), "wb"):
        pass
    with pytest.raises(StorageFailed, match="unprintable"):
        scan(model)


def test_a_manifest_at_the_top_is_refused_and_deeper_is_fine(tmp_path: Path) -> None:
    model = make_model(tmp_path / "m", {"deep/manifest.json": b"{}"})
    publish(model, str(tmp_path / "out"), "run-1")
    for name in ("manifest.json", ".publishing"):
        (model / name).write_bytes(b"")
        with pytest.raises(StorageFailed, match="a name that Yurt writes itself"):
            scan(model)
        (model / name).unlink()


def test_unreadable_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = make_model(tmp_path / "m", {"a": b"a"})
    (model / "a").chmod(0)
    if os.geteuid() == 0:
        real = Path.open

        def refuse(self: Path, *args: object, **kw: object) -> object:
            if self.name == "a" and args == ("rb",):
                raise PermissionError(13, "Permission denied")
            return real(self, *args, **kw)  # type: ignore[call-overload]

        monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(StorageFailed, match="permission denied while reading") as caught:
        publish(model, str(tmp_path / "out"), "run-1")
    assert caught.value.reason == "denied"
    assert list((tmp_path / "out").iterdir()) == []


def test_a_file_that_grows_meanwhile(tmp_path: Path) -> None:
    model = make_model(tmp_path / "m", {"a": b"a"})
    (file,) = scan(model)
    (model / "a").write_bytes(b"longer")
    with pytest.raises(StorageFailed, match="changed while it was published"):
        hash_file(file, 1024)


def test_the_output_inside_the_model_is_refused(tmp_path: Path) -> None:
    model = make_model(tmp_path / "m", {"a": b"a"})
    for output in (model, model / "published"):
        with pytest.raises(UsageError, match="inside the model's folder"):
            publish(model, str(output), "run-1")


def test_etags_as_s3_makes_them(tmp_path: Path) -> None:
    # md5("a") and md5(md5("ab") + md5("a")), worked out with md5sum.
    make_model(tmp_path / "m", {"a": b"a", "b": b"aba", "c": b"abab", "d": b""})
    tags = {f.path: hash_file(f, 2).etag for f in scan(tmp_path / "m")}
    assert tags["a"] == "0cc175b9c0f1b6a831c399e269772661"
    assert tags["b"].endswith("-2")
    assert tags["c"].endswith("-2")
    assert tags["d"] == "d41d8cd98f00b204e9800998ecf8427e"
