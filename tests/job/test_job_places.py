import os
from pathlib import Path

import pytest

from yurt.errors import JobError
from yurt.job import Job


@pytest.mark.parametrize(
    ("written", "url"),
    [
        ("./models", "file://{here}/models"),
        ("models/", "file://{here}/models"),
        ("../models", "file://{above}/models"),
        (".", "file://{here}"),
        ("/srv/a b", "file:///srv/a%20b"),
        ("~/models", "file:///home/me/models"),
        ("2024", "file://{here}/2024"),
        ("a:b/c#d", "file://{here}/a%3Ab/c%23d"),
        ("file:///srv/models", "file:///srv/models"),
        ("s3://bucket/prefix", "s3://bucket/prefix"),
        ("S3://bucket/Pre fix", "s3://bucket/Pre fix"),
        ("gs://bucket", "gs://bucket"),
        ("az://container/prefix/", "az://container/prefix/"),
    ],
)
def test_output_becomes_a_url_beside_the_file(load, folder, monkeypatch, written, url):
    monkeypatch.setenv("HOME", "/home/me")
    here, above = folder.as_uri()[7:], folder.parent.as_uri()[7:]
    assert load(f"output: {written!r}\n", small=True).output == url.format(here=here, above=above)


def test_a_file_is_found_from_elsewhere(folder, monkeypatch):
    from yurt.job import load_job

    (folder / "job.yaml").write_text("name: a\ncommand: x\noutput: models\n")
    monkeypatch.chdir("/")
    loaded = load_job(os.path.relpath(folder / "job.yaml"))
    assert (loaded.folder, loaded.path) == (folder, folder / "job.yaml")
    assert loaded.job.output == (folder / "models").as_uri()


@pytest.mark.parametrize(
    "written",
    [
        "http://x",
        "hdfs://x/y",
        "s3:/x",
        "s3://",
        "gs:///x",
        "s3://a@b/c",
        "s3://k:p@b",
        "file://x/y",
        "file:x",
        "s3://[",
        "s3://b/c?d",
        "s3://b/c#d",
        "s3://b d/c",
        "",
        " ",
    ],
)
def test_what_is_no_output(written):
    with pytest.raises(JobError, match=r"^job: output: "):
        Job(name="a", command="x", output=written)


def test_files_that_are_there(load, folder):
    (folder / "train.py").touch()
    (folder / "a [1].txt").touch()
    (folder / "data" / "deep").mkdir(parents=True)
    (folder / "data" / "deep" / "x.csv").touch()
    (folder / "link").symlink_to("nowhere")
    names = ["train.py", "./train.py", "data", "data/", "*.py", "data/**/*.csv", "a [1].txt", "d[a]ta", "link", "."]
    assert load(f"files: {names}\n", small=True).files == tuple(names)
    assert load("files: []\n", small=True).files == ()


@pytest.mark.parametrize("pattern", ["nope", "*.nope", "data/**x", "a" * 300, "[", "**/nope", "train.py/x"])
def test_files_that_are_not_there(said, folder, pattern):
    (folder / "train.py").touch()
    (problem,) = said(f"files: [., {pattern!r}]\n", small=True)
    assert problem.startswith("job.yaml:3:12: files[1]: ")


@pytest.mark.parametrize("path", ["/etc", "..", "a/../../b", "", " ", "a\0b"])
def test_paths_that_leave_their_folder(path):
    for fields in ({"files": [path]}, {"saves_to": path}):
        with pytest.raises(JobError):
            Job(name="a", command="x", **fields)


@pytest.mark.parametrize("image", ["python", "python:3.11-slim", "tensorflow/tensorflow:2.16.1", "localhost:5000/a/b_c", "registry.example/team/x@sha256:" + "0" * 64, "a.b/c:1"])  # fmt: skip
def test_images(image):
    assert Job(name="a", command="x", image=image).image == image


@pytest.mark.parametrize(
    "image", ["", " ", "A", "a b", "a:", ":a", "a//b", "http://a", "a:b:c", "-a", "x" * 600, "a\n"]
)
def test_what_is_no_image(image):
    with pytest.raises(JobError, match=r"^job: image: "):
        Job(name="a", command="x", image=image)


def test_an_output_that_is_a_path_waits_for_its_folder():
    job = Job(name="a", command="x", output="models")
    assert job.output == "models"
    assert job.in_folder(Path("/srv/jobs")).output == "file:///srv/jobs/models"
