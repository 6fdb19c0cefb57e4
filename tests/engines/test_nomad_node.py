"""What a node makes ready: the Python environment of a job, and files from a bucket or from git."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import ValidationError

from tests.engines.test_nomad_render import CLUSTER, PLACE, RUN
from tests.support.flaky_s3 import FlakyS3, MotoS3, environment
from yurt.engines.nomad.engine import NomadEngine
from yurt.engines.nomad.options import NomadOptions
from yurt.engines.nomad.room import room_for
from yurt.engines.travel import travelling as sending
from yurt.engines.travel.commit import commit_of
from yurt.engines.travel.place import environment as environments
from yurt.engines.travel.place import files
from yurt.engines.travel.place.problem import NotReady
from yurt.errors import EngineError, UsageError
from yurt.launcher.agent_zip import agent_zip


def wheel(folder: Path, text: str = "one", name: str = "tiny_weather") -> Path:
    """A package of one module, without a build."""
    folder.mkdir(exist_ok=True)
    file = folder / f"{name}-1.0-py3-none-any.whl"
    about = f"{name}-1.0.dist-info"
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(zipfile.ZipInfo(f"{name}.py"), f"SAYS = {text!r}\n\n\ndef main():\n    print(SAYS)\n")
        archive.writestr(zipfile.ZipInfo(f"{about}/METADATA"), f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        archive.writestr(
            zipfile.ZipInfo(f"{about}/WHEEL"),
            "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        )
        archive.writestr(zipfile.ZipInfo(f"{about}/entry_points.txt"), f"[console_scripts]\ntiny = {name}:main\n")
        archive.writestr(zipfile.ZipInfo(f"{about}/RECORD"), "")
    return file


REQUIREMENTS = "--no-index\n--find-links wheels\ntiny-weather==1.0\n"


@pytest.fixture
def work(tmp_path):
    folder = tmp_path / "my work"
    folder.mkdir()
    wheel(folder / "wheels")
    (folder / "requirements.txt").write_text(REQUIREMENTS)
    return folder


def made(work, cache, *, on_top=False):
    return environments.environment(
        "requirements.txt", str(work), str(cache), on_top=on_top, variables=dict(os.environ)
    )


def says(python: str, code: str = "import tiny_weather; print(tiny_weather.SAYS)") -> str:
    done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=False)
    return done.stdout.strip() or done.stderr


def test_an_environment_is_made_once_and_its_scripts_run(work, tmp_path, capfd):
    folder = tmp_path / "cache" / f"environments-{os.getuid()}"
    half = folder / f"{environments.key_of(str(work / 'requirements.txt'), str(work), on_top=False)}-half"
    (half / "bin").mkdir(parents=True)
    (half / "bin" / "python").symlink_to(sys.executable)
    first = made(work, tmp_path / "cache")
    assert not half.exists(), "what a builder left that was killed is not used"
    assert says(first.python) == "one"
    tiny = subprocess.run([f"{first.scripts}/tiny"], capture_output=True, text=True, check=True)
    assert tiny.stdout == "one\n", "a script knows where its Python is"
    assert "No module" in says(first.python, "import pytest"), "nothing of the node's own"
    assert "is ready after" in capfd.readouterr().out
    assert made(work, tmp_path / "cache").folder == first.folder
    assert capfd.readouterr().out == "", "nothing was made"


def test_tasks_that_come_together_make_it_once_on_top_of_the_nodes_packages(work, tmp_path):
    code = (
        "import os, sys; from yurt.engines.travel.place.environment import environment as e; "
        "print(e('requirements.txt', sys.argv[1], sys.argv[2], on_top=True, variables=dict(os.environ)).folder)"
    )
    command = [sys.executable, "-c", code, str(work), str(tmp_path / "cache")]
    tasks = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    said = [task.communicate()[0].splitlines() for task in tasks]
    assert len({lines[-1] for lines in said}) == 1
    assert sum("is ready after" in line for lines in said for line in lines) == 1
    on_top = made(work, tmp_path / "cache", on_top=True)
    assert on_top.folder == said[0][-1]
    assert says(on_top.python, "import pytest, tiny_weather; print('both')") == "both"
    assert (on_top.has("pytest"), on_top.has("tiny_weather-1.0.dist-info")) == (False, True)


def test_a_build_that_fails_leaves_nothing_and_says_what_pip_said(work, tmp_path):
    (work / "requirements.txt").write_text("--no-index\nno-such-package==9\n")
    with pytest.raises(NotReady, match=r"pip said: .*no-such-package==9"):
        made(work, tmp_path / "cache")
    folder = next((tmp_path / "cache").iterdir())
    assert [each.suffix for each in folder.iterdir()] == [".lock"]


def test_only_what_nobody_uses_goes_by_age(tmp_path):
    def make(key: str) -> None:
        (tmp_path / f"{key}-x" / "bin").mkdir(parents=True)
        (tmp_path / key).symlink_to(f"{key}-x")
        (tmp_path / f"{key}.lock").touch()

    for key in ("used", "old", "young"):
        make(key)
    (tmp_path / "old-half").mkdir()
    os.utime(tmp_path / "old.lock", (100, 100))
    os.utime(tmp_path / "used.lock", (100, 100))
    with (tmp_path / "used.lock").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_SH)
        environments.prune(str(tmp_path), 200.0)
    left = {each.name for each in tmp_path.iterdir() if each.suffix != ".lock"}
    assert left == {"used", "used-x", "young", "young-x"}


def test_the_key_knows_what_stands_in_the_file(work):
    file = work / "requirements.txt"

    def key(text: str, *, on_top: bool = False) -> str:
        file.write_text(text)
        return environments.key_of(str(file), str(work), on_top=on_top)

    (work / "more.txt").write_text("a==1")
    first = key("-r more.txt")
    (work / "more.txt").write_text("a==2")
    assert len({first, key("-r more.txt"), key("-r more.txt", on_top=True), key("")}) == 4
    plain = key("./package # see wheels/")
    (work / "package").mkdir()
    (work / "package" / "pyproject.toml").write_text("")
    built = key("./package # see wheels/")
    assert built != plain
    (work / "package" / "build").mkdir()
    (work / "package" / "build" / "left.py").write_text("")
    first = key("--find-links wheels")
    wheel(work / "wheels", "two")
    assert key("--find-links wheels") != first, "another wheel of the same name"
    assert key("./package # see wheels/") == built, "neither what a build leaves nor a comment"
    assert key("/usr") == key("/usr"), "what is not the job's own is not looked at"
    with pytest.raises(NotReady, match=r"has '-e \./package'"):
        key("-e ./package")


def test_a_cache_that_cannot_be_written_to_is_said(work, monkeypatch):
    with pytest.raises(NotReady, match="/proc/nothing cannot be written to") as caught:
        made(work, "/proc/nothing")
    assert "cache_folder" in caught.value.hint
    monkeypatch.setattr(environments, "DEFAULT_FOLDERS", ("/proc/a", "/proc/b"))
    with pytest.raises(NotReady, match="/proc/a and /proc/b cannot be written to"):
        environments.cache_folder(None)


@pytest.mark.parametrize(
    "wrong",
    [
        {"requirements": "r.txt", "driver": "docker"},
        {"requirements": "r.txt", "driver": "exec"},
        {"cache_folder": "relative"},
        {"files_through": "file:///x"},
        {"git": {"url": "--upload-pack=x"}},
        {"git": {"url": "ext::sh"}},
        {"git": {"url": "https://me:secret@git.example/x"}},
        {"git": {"url": "https://git.example/x", "ref": "--all"}},
        {"git": {"url": "https://git.example/x", "folder": "../x"}},
    ],
)
def test_options_that_cannot_be(wrong):
    with pytest.raises(ValidationError):
        NomadOptions.model_validate(wrong)


# Files through a bucket.


@pytest.fixture(scope="module")
def moto():
    with MotoS3() as server:
        yield server


@pytest.fixture
def s3(moto, monkeypatch, tmp_path):
    for name in list(os.environ):
        if name.startswith(("AWS_", "GOOGLE_", "AZURE_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("YURT_HOME", str(tmp_path / "yurt"))
    monkeypatch.setattr(files, "PAUSES_S", (0.01, 0.01, 0.01))
    bucket = f"files-{tmp_path.name.replace('_', '-').lower()}"
    moto.make_bucket(bucket)
    with FlakyS3(moto.url) as proxy:
        for name, value in environment(proxy.url).items():
            monkeypatch.setenv(name, value)
        yield bucket, proxy


@pytest.fixture
def large(tmp_path):
    """A snapshot over the limit: random bytes do not pack, and a large file is a link."""
    folder = tmp_path / "files"
    (folder / "sub").mkdir(parents=True)
    (folder / "train.py").write_text("print(1)")
    data = tmp_path / "data.bin"
    data.write_bytes(os.urandom(4 << 20))
    (folder / "sub" / "data.bin").symlink_to(data)
    return folder


def sent(large, options=None, output=None):
    return sending.travelling("run-1", agent_zip(), large, room_for(1), options or NomadOptions(), output)


def order_of(monkeypatch, large, **arguments):
    """What the node reads about the files, and where they lie."""
    orders = []
    real = sending.payload
    monkeypatch.setattr(sending, "publisher", lambda _: None)
    monkeypatch.setattr(sending, "payload", lambda *given: (orders.append(given[3]), real(*given))[1])
    parcel = sent(large, **arguments).parcel
    return orders[-1]["files"], parcel


def test_large_files_go_through_the_output_and_need_no_credentials_on_the_node(s3, moto, large, tmp_path, monkeypatch):
    bucket, _proxy = s3
    order, parcel = order_of(monkeypatch, large, output=f"s3://{bucket}/models/weather")
    [key] = moto.objects(bucket)
    assert key == f"models/weather/.yurt/run-1/{order['sha256']}.tar.xz"
    for name in list(os.environ):
        if name.startswith("AWS_"):
            monkeypatch.delenv(name)
    files.fetch(order, str(tmp_path / "work"))
    assert (tmp_path / "work" / "train.py").read_text() == "print(1)"
    assert (tmp_path / "work" / "sub" / "data.bin").read_bytes() == (tmp_path / "data.bin").read_bytes()
    assert not (tmp_path / "work.part").exists()
    files.fetch({"from": "nowhere"}, str(tmp_path / "work"))  # there already
    for name, value in environment(s3[1].url).items():
        monkeypatch.setenv(name, value)
    sending.remove(parcel)
    assert moto.objects(bucket) == {}
    sending.remove(parcel)


def test_small_files_stay_in_the_job_and_the_option_goes_before_the_output(s3, moto, large, monkeypatch):
    bucket, _proxy = s3
    through = NomadOptions(files_through=f"s3://{bucket}/apart")
    order, _ = order_of(monkeypatch, large, options=through, output="file:///models")
    assert order["name"].startswith(f"s3://{bucket}/apart/.yurt/run-1/")
    (large / "sub" / "data.bin").unlink()
    assert sent(large, through).parcel is None
    assert len(moto.objects(bucket)) == 1


def test_what_hinders_a_fetch_for_a_while_is_tried_again(s3, large, tmp_path, monkeypatch):
    bucket, proxy = s3
    order, _ = order_of(monkeypatch, large, output=f"s3://{bucket}")
    proxy.fail(method="GET", times=1, status=503)
    proxy.fail(method="GET", skip=0, times=1, action="cut")
    files.fetch(order, str(tmp_path / "work"))
    assert (tmp_path / "work" / "train.py").exists()


def test_a_fetch_that_cannot_be_is_told_and_leaves_nothing(s3, moto, large, tmp_path, monkeypatch):
    bucket, proxy = s3
    order, _ = order_of(monkeypatch, large, output=f"s3://{bucket}")
    assert "X-Amz-Expires=604800" in order["url"], "7 days"
    [(key, content)] = moto.objects(bucket).items()
    moto.client().put_object(Bucket=bucket, Key=key, Body=content[:-1] + bytes([content[-1] ^ 1]))
    with pytest.raises(NotReady, match="what came is not what was sent") as caught:
        files.fetch(order, str(tmp_path / "work"))
    assert "Signature" not in str(caught.value), "whoever has the address may read the files"
    assert not (tmp_path / "work").exists()
    asked = len(proxy.requests)
    proxy.fail(method="GET", status=403, code="AccessDenied")
    with pytest.raises(NotReady, match="the answer was 403 Forbidden"):
        files.fetch(order, str(tmp_path / "work"))
    assert len(proxy.requests) == asked + 1, "no is no"


class Refusing:
    """A Nomad that would place the job, and then does not take it."""

    def job(self, _id):
        return None

    def plan(self, _job):
        return {}

    def read_file(self, *_):
        return None

    list_files = read_file

    def register(self, _job):
        raise EngineError("no")

    def deregister(self, _id):
        pass

    def allocations(self, *_):
        return [], 0


def test_a_job_that_nomad_does_not_take_leaves_nothing_in_the_bucket(s3, moto, large, monkeypatch):
    bucket, proxy = s3
    monkeypatch.setattr(sending, "publisher", lambda _: None)
    engine = NomadEngine()
    place = replace(PLACE, folder=large.parent, agent=agent_zip())
    request = engine.render(replace(RUN, output=f"s3://{bucket}/m"), place, NomadOptions(), CLUSTER)
    engine._client = Refusing()
    with pytest.raises(EngineError, match="no"):
        engine.submit(request)
    assert [request.method for request in proxy.requests] == ["PUT"]
    engine.cancel()
    assert moto.objects(bucket) == {}


def test_a_bucket_that_takes_nothing_is_said(s3, large):
    with pytest.raises(EngineError, match="cannot go through s3://no-such-bucket"):
        sent(large, output="s3://no-such-bucket/x")
    with pytest.raises(EngineError, match="too large"):
        sent(large, output="file:///models")


# Files from a git commit.


def git(folder: Path, *arguments: str) -> str:
    who = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=main"]
    return subprocess.run(["git", *who, *arguments], cwd=folder, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def repository(tmp_path):
    """A bare repository with the job in its folder ``jobs/a``; its checkout."""
    git(tmp_path, "init", "--bare", "remote.git")
    git(tmp_path, "clone", "remote.git", "checkout")
    job = tmp_path / "checkout" / "jobs" / "a"
    job.mkdir(parents=True)
    (job / "train.py").write_text("print('ü')")
    (job / "run.sh").write_text("x")
    (job / "run.sh").chmod(0o755)
    push(tmp_path / "checkout")
    return tmp_path / "checkout"


def push(checkout: Path) -> str:
    git(checkout, "add", ".")
    git(checkout, "commit", "-m", "x")
    git(checkout, "push", "origin", "HEAD:main")
    return git(checkout, "rev-parse", "HEAD").strip()


def test_nodes_take_the_commit_that_the_jobs_files_are(repository, tmp_path):
    url, job = (tmp_path / "remote.git").as_uri(), repository / "jobs" / "a"
    commit = commit_of(url, "main", "jobs/a", job)
    assert commit == git(repository, "rev-parse", "HEAD").strip()
    order = {"from": "git", "url": url, "ref": "main", "commit": commit, "folder": "jobs/a"}
    (job / "train.py").write_text("print('later')")
    push(repository)
    files.fetch(order, str(tmp_path / "work"))
    assert (tmp_path / "work" / "train.py").read_text() == "print('ü')", "the commit, not what the branch is now"
    assert os.access(tmp_path / "work" / "run.sh", os.X_OK)
    files.fetch({**order, "folder": ""}, str(tmp_path / "whole"))
    assert sorted(each.name for each in (tmp_path / "whole").iterdir()) == ["jobs"], "no .git"
    assert commit_of(url, commit, "jobs/a", tmp_path / "work") == commit, "an earlier one by its name"


def test_a_server_that_gives_no_commit_by_its_name_gives_the_history(repository, tmp_path, monkeypatch):
    url, job = (tmp_path / "remote.git").as_uri(), repository / "jobs" / "a"
    order = {"from": "git", "url": url, "ref": "main", "commit": commit_of(url, "main", "jobs/a", job), "folder": ""}
    (job / "train.py").write_text("print('later')")
    push(repository)
    for name, value in {"COUNT": "1", "KEY_0": "protocol.version", "VALUE_0": "0"}.items():
        monkeypatch.setenv(f"GIT_CONFIG_{name}", value)
    files.fetch(order, str(tmp_path / "work"))
    assert (tmp_path / "work" / "jobs" / "a" / "train.py").read_text() == "print('ü')"


def test_what_is_not_pushed_is_refused(repository, tmp_path):
    url, job = (tmp_path / "remote.git").as_uri(), repository / "jobs" / "a"
    (job / "train.py").write_text("print('changed')")
    with pytest.raises(UsageError, match=r"train\.py of the job's folder is not so at main") as caught:
        commit_of(url, "main", "jobs/a", job)
    assert "commit and push" in caught.value.hint
    git(repository, "commit", "-am", "not pushed")
    with pytest.raises(UsageError, match="is not so at main"):
        commit_of(url, "main", "jobs/a", job)
    (job / "new.py").write_text("")
    with pytest.raises(UsageError, match=r"new\.py, train\.py of the job's folder are not so"):
        commit_of(url, "main", "jobs/a", job)
    with pytest.raises(EngineError, match="no folder 'jobs/b'"):
        commit_of(url, "main", "jobs/b", job)
    with pytest.raises(EngineError, match=r"nowhere of .* cannot be fetched; git said: fatal"):
        commit_of(url, "nowhere", "", job)


def test_a_repository_that_a_node_cannot_read_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "PAUSES_S", (0.01, 0.01))
    order = {"from": "git", "url": f"file://{tmp_path}/no.git", "ref": "main", "commit": "0" * 40, "folder": ""}
    with pytest.raises(NotReady, match=r"git said: fatal: .*no\.git"):
        files.fetch(order, str(tmp_path / "work"))
    assert os.listdir(tmp_path) == []
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(NotReady, match="this node has no git"):
        files.fetch(order, str(tmp_path / "work"))


def test_what_the_jobs_folder_lacks_is_said_before_anything_is_sent(tmp_path):
    (tmp_path / "files").mkdir()
    with pytest.raises(UsageError, match=r"requirements file 'r\.txt' is not among"):
        sent(tmp_path / "files", NomadOptions(requirements="r.txt"))
