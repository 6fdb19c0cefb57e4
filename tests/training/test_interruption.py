"""SIGTERM is heard once, obeyed when the step is done, and a second one at once."""

from __future__ import annotations

import signal
import subprocess
import sys

HEAD = """
import atexit, signal, sys, threading, time
from yurt.training.interruption import Interruption
atexit.register(lambda: print("the end of Python", flush=True))
interruption = Interruption()
"""


def run(script: str, *signals: int) -> tuple[int, str]:
    """Exit code and output of a script that says `ready` before each signal."""
    process = subprocess.Popen([sys.executable, "-c", HEAD + script], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    told = []
    for number in signals:
        while "ready" not in (line := process.stdout.readline()):
            assert line, told
            told.append(line)
        process.send_signal(number)
    told += process.stdout.readlines()
    return process.wait(30), "".join(told)


def test_told_once_the_script_decides_when_to_leave_and_its_finally_runs():
    script = """
interruption.watch()
print("ready", flush=True)
while not interruption.told:
    time.sleep(0.01)
try:
    interruption.leave()
finally:
    print("finally", flush=True)
"""
    assert run(script, signal.SIGTERM) == (143, "finally\n")


def test_a_second_one_ends_at_once():
    script = """
interruption.watch()
print("ready", flush=True)
while not interruption.told:
    time.sleep(0.01)
print("ready", flush=True)
time.sleep(30)
"""
    assert run(script, signal.SIGTERM, signal.SIGTERM) == (143, "")


def test_a_finally_that_hangs_does_not_keep_the_process():
    script = """
interruption.watch()
try:
    print("ready", flush=True)
    while not interruption.told:
        time.sleep(0.01)
    interruption.leave()
finally:
    time.sleep(60)
"""
    assert run(script, signal.SIGTERM) == (143, "")


def test_a_handler_of_the_scripts_own_stays():
    script = """
signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(7))
interruption.watch()
print("ready", flush=True)
time.sleep(30)
"""
    assert run(script, signal.SIGTERM) == (7, "the end of Python\n")


def test_after_training_sigterm_ends_the_process_as_ever():
    script = """
interruption.watch()
interruption.stop_watching()
print("ready", flush=True)
time.sleep(30)
"""
    assert run(script, signal.SIGTERM) == (-signal.SIGTERM, "")


def test_in_another_thread_nothing_is_set():
    script = """
thread = threading.Thread(target=interruption.watch)
thread.start()
thread.join()
print(signal.getsignal(signal.SIGTERM) is signal.SIG_DFL)
"""
    assert run(script) == (0, "True\nthe end of Python\n")
