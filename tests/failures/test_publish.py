"""The model's last step: where it must go has no room, or answers badly, or not at all."""

from __future__ import annotations

import json
import os
import subprocess
import uuid
from pathlib import Path

import pytest

from tests.support.flaky_s3 import FlakyS3, MotoS3, environment
from tests.support.runs import agents_of, wait_until
from tests.support.scripts import MULTI_WORKER

pytestmark = pytest.mark.tensorflow


def job(output: str, **changes):
    return {
        "name": "publish",
        "command": "python train.py",
        "strategy": "multi-worker-mirrored",
        "roles": {"worker": 2},
        "env": {"EPOCHS": 2},
        "output": output,
        **changes,
    }


@pytest.fixture
def s3(folder):
    """A bucket of a real S3 server behind a proxy that misbehaves as told: (proxy, bucket, its files)."""
    with MotoS3() as server, FlakyS3(server.url) as proxy:
        bucket = f"models-{uuid.uuid4().hex[:8]}"
        server.make_bucket(bucket)
        folder.environment = environment(proxy.url)
        yield server, proxy, bucket


def test_an_s3_that_answers_503_three_times_costs_a_moment(folder, s3):
    server, proxy, bucket = s3
    proxy.fail(method="PUT", times=3, status=503, code="SlowDown")
    run = folder.start(folder.write(job(f"s3://{bucket}/team"), train=MULTI_WORKER))
    assert run.wait() == 0, run.output
    assert [request.status for request in proxy.requests].count(503) == 3
    keys = server.objects(bucket)
    assert f"team/{run.run_id}/manifest.json" in keys
    assert f"team/{run.run_id}/model.keras" in keys
    assert "team/latest" in keys
    assert f"s3://{bucket}/team/{run.run_id}" in run.output


def test_an_s3_that_never_works_keeps_the_model_for_publish_by_hand(folder, s3):
    server, proxy, bucket = s3
    proxy.fail(method="PUT", times=10_000, status=403, code="AccessDenied")
    run = folder.start(folder.write(job(f"s3://{bucket}/team"), train=MULTI_WORKER))
    assert run.wait() == 5, run.output
    assert f"yurt publish {run.run_id}" in run.output
    assert server.objects(bucket) == {}
    assert (run.path / "tasks/worker-0/model/model.keras").is_file()
    assert folder.yurt("status", run.run_id, "--wait").returncode == 5
    proxy.faults.clear()
    done = folder.yurt("publish", run.run_id)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"team/{run.run_id}/model.keras" in server.objects(bucket)


def test_a_publisher_killed_with_its_agent_is_a_publish_that_failed(folder, s3):
    _, proxy, bucket = s3
    proxy.fail(method="PUT", action="hang")
    script = "import os\nopen(os.environ['YURT_MODEL_DIR'] + '/m', 'w').write('x')\n"
    values = job(f"s3://{bucket}/team", strategy="none", roles={"worker": 1}, restart="on-failure")
    run = folder.start(folder.write(values, train=script))
    run.wait_for_phase("closing")
    wait_until(lambda: proxy.requests or proxy.faults[0].met, 20, "the publisher's first request")
    run.kill(agents_of(run)["worker-0"])
    assert run.wait(20) == 5, run.output
    assert "worker/0 was lost while it published the model" in run.output
    run.assert_nothing_left()
    proxy.faults.clear()
    done = folder.yurt("publish", run.run_id)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small disk needs root")
def test_a_full_disk_keeps_the_model_and_shows_nothing_half(folder, tmp_path: Path):
    small = tmp_path / "small"
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", str(small)], check=True)
    try:
        run = folder.start(folder.write(job(str(small)), train=MULTI_WORKER))
        assert run.wait() == 5, run.output
        assert "no room" in run.output
        assert not (small / "latest").exists()
        assert not (small / run.run_id).exists()
        subprocess.run(["mount", "-o", "remount,size=4m", str(small)], check=True)
        done = folder.yurt("publish", run.run_id)
        assert done.returncode == 0, done.stdout + done.stderr
        manifest = json.loads((small / "latest" / "manifest.json").read_text())
        assert [row["path"] for row in manifest["files"]] == ["model.keras"]
    finally:
        subprocess.run(["umount", str(small)], check=True)


def test_a_script_that_saves_nothing_is_told(folder):
    values = job("./models", command="python -c 'print(1)'", strategy="none", roles={"worker": 1})
    run = folder.start(folder.write(values))
    assert run.wait() == 5
    assert "saved nothing" in run.output
