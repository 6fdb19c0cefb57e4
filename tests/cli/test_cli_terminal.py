"""`yurt run` in a real terminal."""

from __future__ import annotations

import re

from tests.cli import scripts
from tests.cli.terminal import Terminal

#: Writes its own progress, and waits until it is told to go on by a file.
SLOW = """
import json, os, time
def tell(**progress):
    name = os.environ["YURT_PROGRESS_FILE"]
    open(name + ".part", "w").write(json.dumps(progress))
    os.replace(name + ".part", name)
print("a line above")
tell(epoch=3, epochs=20, step=17, steps=25, loss=0.034, metrics={"val_loss": 0.04}, examples_per_s=51234.0)
while not os.path.exists(os.environ["GO_ON"]):
    time.sleep(0.02)
"""


def test_live_lines_in_colours_and_a_clean_screen_at_the_end(folder):
    go_on = folder.path / "go-on"
    file = folder.write(scripts.two(env={"GO_ON": str(go_on)}), train=SLOW)
    terminal = Terminal(folder, "run", file)
    terminal.until("epoch 3/20  step 17/25  loss 0.034  val_loss 0.04  51,234 examples/s")
    assert re.search(r"── job-\w{6}  training  0:0\d ──", terminal.plain)
    assert "worker/1  running" in terminal.plain
    assert "\x1b[36mworker/0 |\x1b[0m a line above\n" in terminal.text
    assert "\x1b[32mworker/1 |\x1b[0m a line above\n" in terminal.text
    go_on.touch()
    assert terminal.wait() == 0
    end = terminal.text[terminal.text.rindex("\x1b[?25h") :]  # rich shows the cursor again when it leaves
    assert "succeeded" in end
    assert "running" not in end


def test_no_color_means_no_colours_but_live_lines(folder):
    folder.environment = {**folder.environment, "NO_COLOR": "1"}
    go_on = folder.path / "go-on"
    terminal = Terminal(folder, "run", folder.write(scripts.job(env={"GO_ON": str(go_on)}), train=SLOW))
    terminal.until("51,234 examples/s")
    go_on.touch()
    assert terminal.wait() == 0
    assert not re.search(r"\x1b\[[0-9;]*3[0-9]m|\x1b\[9[0-9]m", terminal.text)


def test_a_dumb_terminal_gets_lines_alone(folder):
    folder.environment = {**folder.environment, "TERM": "dumb"}
    terminal = Terminal(folder, "run", folder.write(scripts.job(), train=scripts.TRAIN))
    assert terminal.wait() == 0
    assert "\x1b" not in terminal.text
    assert "worker/0 | Epoch 1/2\n" in terminal.text


def test_more_tasks_than_the_screen_has_lines(folder):
    go_on = folder.path / "go-on"
    job = scripts.two(env={"GO_ON": str(go_on)})
    job["roles"] = {"worker": 5}
    terminal = Terminal(folder, "run", folder.write(job, train=SLOW), rows=9)
    terminal.until("and 3 tasks more: 3 running")
    go_on.touch()
    assert terminal.wait() == 0


def test_ctrl_c_once(folder):
    terminal = Terminal(folder, "run", folder.write(scripts.job(grace="20s"), train=scripts.FOREVER))
    terminal.until("for ever")
    terminal.type("\x03")
    terminal.until("stopping (Ctrl-C again to end at once)")
    assert terminal.wait() == 4
    assert "asked to end" in terminal.plain


def test_ctrl_c_twice(folder):
    terminal = Terminal(folder, "run", folder.write(scripts.job(grace="60s"), train=scripts.STUBBORN))
    terminal.until("for ever")
    terminal.type("\x03")
    terminal.until("I do not listen")
    terminal.type("\x03")
    assert terminal.wait() == 4


def test_a_window_that_is_closed_leaves_the_run_alone(folder):
    script = "import time; print('begun'); time.sleep(1.5); print('done')"
    terminal = Terminal(folder, "run", folder.write(scripts.job(), train=script))
    terminal.until("begun")
    terminal.hang_up()
    assert folder.yurt("wait").returncode == 0
    assert terminal.wait() == 0
    assert "worker/0 | done" in folder.yurt("logs").stdout


def test_a_narrow_terminal_leaves_out_metrics_and_bar_before_the_rest(folder):
    go_on = folder.path / "go-on"
    terminal = Terminal(folder, "run", folder.write(scripts.job(env={"GO_ON": str(go_on)}), train=SLOW), columns=80)
    terminal.until("running     epoch 3/20  step 17/25  loss 0.034  51,234 examples/s")
    go_on.touch()
    assert terminal.wait() == 0
