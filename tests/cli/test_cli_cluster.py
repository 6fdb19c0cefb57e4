"""What `yurt cluster dev` refuses before it starts anything."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from yurt.cli.cluster import cluster


@pytest.mark.parametrize(
    ("text", "said"),
    [("tf", "'tf' must be NAME=FOLDER"), ("=/tmp", "must be NAME=FOLDER"), ("tf=/nowhere", "'/nowhere' is not a fold")],
)
def test_a_volume_that_is_none_is_refused(text, said):
    done = CliRunner().invoke(cluster, ["dev", "--volume", text])
    assert (done.exit_code, said in done.output) == (2, True), done.output
