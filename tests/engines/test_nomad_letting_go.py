"""On a real Nomad: launchers killed in the middle of a submission, and clusters that are gone for good."""

from __future__ import annotations

import json
import sys
import time

import pytest

from tests.conftest import free_ports
from tests.support.cluster import client, folder_on, raised
from tests.support.lasting_consul import LastingConsul
from tests.support.nomad_in_between import in_between
from tests.support.runs import Folder, wait_until
from yurt.engines.nomad.engine import NomadEngine
from yurt.engines.nomad.options import NomadOptions

WAITS = """
import os, time
print("here", flush=True)
while not os.path.exists(os.environ["ENOUGH"]):
    time.sleep(0.05)
"""


@pytest.fixture(scope="module")
def cluster():
    yield from raised(1)


@pytest.fixture
def folder(cluster, tmp_path):
    yield from folder_on(cluster, tmp_path)


@pytest.fixture
def other(cluster, tmp_path):
    """Another machine, that has never heard of a run."""
    place = tmp_path / "other"
    place.mkdir()
    return Folder(place, dict(cluster.environment))


def write(folder):
    job = {
        "name": "waits",
        "command": "python train.py",
        "strategy": "none",
        "roles": {"worker": 1},
        "env": {"ENOUGH": str(folder.path / "enough")},
        "start_deadline": 90,
        "grace": 1,
        "engines": {"nomad": {"python": sys.executable}},
    }
    return folder.write(job, train=WAITS)


def submitting(cluster, folder, hold):
    """A run whose launcher was killed as it submitted."""
    with in_between(cluster.nomad, hold) as nomad:
        folder.environment = {**folder.environment, "NOMAD_ADDR": nomad.address}
        run = folder.start(write(folder), "--on", "nomad")
        assert nomad.held.wait(60), run.output
        run.process.kill()
        run.wait()
    folder.environment = dict(cluster.environment)
    return run


def alive(cluster):
    return [job["ID"] for job in client(cluster).jobs() if job["Status"] != "dead"]


def test_a_run_whose_launcher_died_with_the_submission_is_found_and_ended(cluster, folder, other):
    run = submitting(cluster, folder, "after")
    assert alive(cluster) == [run.run_id]
    done = other.yurt("stop", "--now", "--on", "nomad", run.run_id)
    assert done.returncode == 0, done.stdout + done.stderr
    assert alive(cluster) == []
    assert "was stopped by `yurt stop`" in folder.yurt("status", run.run_id).stdout


def test_a_run_whose_launcher_died_with_the_submission_goes_on_here(cluster, folder):
    run = submitting(cluster, folder, "after")
    assert f"{run.run_id} is" in folder.yurt("status", run.run_id).stdout
    run.wait_for_line("worker/0", "here")
    (folder.path / "enough").touch()
    done = folder.yurt("wait", run.run_id)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_run_whose_launcher_died_before_the_submission_is_over(cluster, folder, other):
    run = submitting(cluster, folder, "before")
    assert alive(cluster) == []
    done = folder.yurt("wait", run.run_id)
    assert done.returncode == 6, done.stdout + done.stderr
    assert "its launcher was killed before it had submitted it" in done.stdout
    rows = json.loads(other.yurt("ls", "--on", "nomad", "--json").stdout)
    assert [row["outcome"] for row in rows if row["run"] == run.run_id] == ["launcher-error"]


def orphaned(folder, killed=True):
    """A run that trains; its launcher killed, or still there."""
    run = folder.start(write(folder), "--on", "nomad")
    run.wait_for_line("worker/0", "here")
    if killed:
        run.process.kill()
        run.wait()
    return run


def nowhere() -> str:
    return f"http://127.0.0.1:{free_ports(1)[0]}"


def test_a_run_is_let_go_where_nomad_is_gone(cluster, folder, other):
    run = orphaned(folder)
    folder.environment = other.environment = {**cluster.environment, "NOMAD_ADDR": nowhere()}
    plain = folder.yurt("stop", run.run_id)
    assert plain.returncode == 6
    assert "`yurt stop --now` lets the run go, if its cluster is gone for good" in plain.stderr
    done = folder.yurt("stop", "--now", run.run_id)
    assert done.returncode == 6, done.stdout + done.stderr
    assert f"{run.run_id} was stopped by `yurt stop`" in done.stdout
    assert f"{run.run_id} is let go: its job could not be ended: nobody listens at" in done.stderr
    assert f"if the cluster comes back: yurt stop --on nomad {run.run_id}" in done.stderr
    run.assert_nothing_left(20)  # Consul was there: its agents know
    away = other.yurt("stop", "--now", "--on", "nomad", run.run_id)
    assert (away.returncode, "its job could not be ended" in away.stderr) == (6, True), away.stdout + away.stderr
    assert f"removed  {run.run_id}" in folder.yurt("prune", "--all").stdout


def test_a_run_is_let_go_where_all_is_gone_and_can_be_taken_up_again(cluster, folder, tmp_path):
    consul = LastingConsul(tmp_path)
    consul.start()
    there = {**cluster.environment, "CONSUL_HTTP_ADDR": consul.address}
    try:
        folder.environment = there
        run = orphaned(folder)
        consul.kill()
        folder.environment = {**there, "NOMAD_ADDR": nowhere()}
        kept = folder.yurt("prune", "--all").stdout
        assert f"kept     {run.run_id}: it had not ended when its cluster was last heard of" in kept
        done = folder.yurt("stop", "--now", run.run_id)
        assert done.returncode == 6, done.stdout + done.stderr
        assert "its job could not be ended: nobody listens" in done.stderr
        assert f"its agents could not be told: nobody listens at {consul.address[7:]}" in done.stderr
        assert "was stopped by `yurt stop`" in folder.yurt("status", run.run_id).stdout
        consul.start()
        folder.environment = there
        back = folder.yurt("stop", "--on", "nomad", run.run_id)
        assert (back.returncode, alive(cluster)) == (0, []), back.stdout + back.stderr
    finally:
        consul.kill()


def test_a_launcher_that_waits_for_its_cluster_lets_go_as_well(cluster, folder, tmp_path):
    consul = LastingConsul(tmp_path)
    consul.start()
    try:
        folder.environment = {**cluster.environment, "CONSUL_HTTP_ADDR": consul.address}
        run = orphaned(folder, killed=False)
        consul.kill()
        plain = folder.yurt("stop", run.run_id)
        assert (plain.returncode, f"`yurt stop --now {run.run_id}` lets it go" in plain.stderr) == (6, True)
        begun = time.monotonic()
        done = folder.yurt("stop", "--now", run.run_id)
        assert time.monotonic() - begun < 60, "not the two minutes of patience"
        assert "its agents could not be told" in done.stderr, done.stdout + done.stderr
        assert run.wait() == 4
        assert "was stopped by `yurt stop`" in run.output
        wait_until(lambda: alive(cluster) == [], 30, "the end of the job: Nomad was there")
    finally:
        consul.kill()


def test_what_is_known_of_the_nodes_is_of_the_region_that_the_job_names(cluster, monkeypatch):
    monkeypatch.setenv("NOMAD_ADDR", cluster.nomad)
    own, other = NomadEngine().facts(NomadOptions()), NomadEngine().facts(NomadOptions(region="elsewhere"))
    assert (len(own.nodes), own.unknown) == (1, None)
    assert "No path to region" in str(other.unknown)
