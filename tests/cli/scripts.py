"""What the tasks of these tests run: plain Python, quick to start."""

from __future__ import annotations

from typing import Any

#: Two epochs as Keras prints them, and a model.
TRAIN = """
import os, time
for epoch in (1, 2):
    print(f"Epoch {epoch}/2")
    print(f"10/10 - 0s - loss: 0.{5 - epoch} - val_loss: 0.5")
open(os.path.join(os.environ["YURT_MODEL_DIR"], "model.txt"), "w").write("a model")
"""

#: Until it is stopped; ends well when it is asked to.
FOREVER = """
import signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: (print("asked to end"), sys.exit(0)))
print("training for ever")
while True:
    time.sleep(0.05)
"""

#: Until it is killed.
STUBBORN = """
import signal, time
signal.signal(signal.SIGTERM, lambda *_: print("I do not listen"))
print("training for ever")
while True:
    time.sleep(0.05)
"""

#: One worker fails; the other would go on.
ONE_FAILS = """
import os, sys, time
if os.environ["YURT_INDEX"] == "1":
    print("about to fail")
    print("ValueError: the data is wrong", file=sys.stderr)
    sys.exit(3)
time.sleep(60)
"""

#: Killed in its first attempt, fine in the next.
KILLED_ONCE = """
import os, signal
if os.environ["YURT_ATTEMPT"] == "0":
    os.kill(os.getpid(), signal.SIGKILL)
print("second attempt")
"""

#: A progress bar as Keras draws it, and one as tqdm does.
BAR = """
import sys, time
for step in range(1, 201):
    back = "\\b" * 30 + "\\r" if step > 1 else ""
    sys.stdout.write(f"{back}\\x1b[1m{step:3}/200\\x1b[0m \\x1b[32m━━━━\\x1b[0m 3ms/step - loss: {1 / step:.4f}")
    sys.stdout.flush()
print()
for step in range(1, 201):
    sys.stdout.write(f"\\r{step:3}% |####|")
    sys.stdout.flush()
print()
"""

#: Text that a terminal or a markup language would take for something else.
ODD_TEXT = """
print("[bold red]no markup[/bold red] [/] :smile: \\x1b[31mred\\x1b[0m \\x1b]0;title\\x07\\x07 {braces} %s")
print("a\\ttab, a euro \\u20ac, and no newline at the end", end="")
"""


def job(**changes: Any) -> dict[str, Any]:
    return {"name": "job", "command": "python train.py", "grace": "1s", **changes}


def two(**changes: Any) -> dict[str, Any]:
    # all-workers: these jobs are so short that the first worker may be done before the second has begun
    return job(strategy="multi-worker-mirrored", roles={"worker": 2}, success="all-workers", **changes)
