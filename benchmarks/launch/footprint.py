"""What Yurt itself costs while two workers train: CPU time of launcher and agents, and the memory of each agent.

    python benchmarks/launch/footprint.py [--runs 3] [--seconds 30] [--json FILE] [--markdown FILE]

Once with plain output to a file, once on a terminal with the live lines. Each worker prints a line with its step and
its loss every 100 ms, so both agents have output to pass on and progress to report all the time.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import pty
import statistics
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import launchers
import measure

WAYS = {"plain": "lines to a file", "live": "a terminal with live lines"}
LINES_S = 0.1
ROWS, COLUMNS = 40, 140


def main() -> int:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=3, help="counted runs of each way")
    parser.add_argument("--seconds", type=float, default=30.0, help="how long each is watched while it trains")
    parser.add_argument("--json", type=Path, help="write every run here")
    parser.add_argument("--markdown", type=Path, help="write the table into this file, between its marks")
    options = parser.parse_args()
    facts, runs = measure.machine(), []
    measure.adopt_orphans()
    with tempfile.TemporaryDirectory(prefix="yurt-footprint-") as scratch:
        for number in range(options.runs):
            for way in WAYS:
                run = one(way, options.seconds, Path(scratch))
                print(line(run, number + 1), flush=True)
                runs.append(run)
    result = {"machine": facts, "seconds": options.seconds, "runs": runs}
    if options.json:
        options.json.write_text(json.dumps(result, indent=1) + "\n")
    text = markdown(result)
    print(text)
    if options.markdown:
        measure.write_between(options.markdown, "footprint", text)
    return 0


@dataclass(frozen=True, slots=True)
class Seen:
    """One look at Yurt's processes: CPU seconds of each, and all that the terminal was sent."""

    at: float
    launcher_s: float
    agents_s: tuple[float, ...]
    sent_bytes: int


def one(way: str, seconds: float, scratch: Path) -> dict[str, Any]:
    """One run, watched for a while and then stopped."""
    launcher = launchers.LAUNCHERS["yurt"]
    place = measure.fresh(scratch / way)
    folder, marks = launchers.folder_with_job(place), measure.fresh(place / "marks")
    variables = {"BENCH_STEPS": "100000", "BENCH_LINES_S": str(LINES_S), "TERM": "xterm-256color"}
    environment = launchers.environment(launcher, scratch / "yurt-home", marks, variables)
    with Screen(place / "log", terminal=way == "live") as screen:
        process = subprocess.Popen(
            launcher.command(folder),
            env=environment,
            cwd=folder,
            stdin=screen.fd if way == "live" else subprocess.DEVNULL,
            stdout=screen.fd,
            stderr=screen.fd,
            start_new_session=True,
        )
        try:
            _until_both_train(marks, process)
            time.sleep(2)
            agents = agents_of(process.pid)
            first = look(process.pid, agents, screen)
            time.sleep(seconds)
            last = look(process.pid, agents, screen)
            memory = [memory_kib(pid) for pid in agents]
            own = memory_kib(process.pid)
        finally:
            process.terminate()
            time.sleep(0.5)
            process.terminate()  # the second ends it at once: TensorFlow would let the whole grace time pass
            process.wait(60)
    spent_s = last.at - first.at
    agents_s = [late - early for early, late in zip(first.agents_s, last.agents_s, strict=True)]
    launcher_s = last.launcher_s - first.launcher_s
    return {
        "way": way,
        "watched_s": spent_s,
        "launcher_percent": 100 * launcher_s / spent_s,
        "agents_percent": [100 * each / spent_s for each in agents_s],
        "together_percent": 100 * (launcher_s + sum(agents_s)) / spent_s,
        "agents": memory,
        "launcher": own,
        "sent_bytes_per_s": (last.sent_bytes - first.sent_bytes) / spent_s,
    }


class Screen:
    """Where the output goes: a file, or a terminal whose reader throws it away."""

    def __init__(self, log: Path, *, terminal: bool) -> None:
        self.sent_bytes = 0
        self._master = -1
        if terminal:
            self._master, self.fd = pty.openpty()
            fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
            threading.Thread(target=self._read, daemon=True).start()
        else:
            self.fd = os.open(log, os.O_WRONLY | os.O_CREAT)

    def _read(self) -> None:
        while True:
            try:
                data = os.read(self._master, 1 << 16)
            except OSError:
                return
            self.sent_bytes += len(data)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self.fd)
        if self._master >= 0:
            os.close(self._master)


def _until_both_train(marks: Path, process: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + 120
    while sum("first_step" in worker for worker in measure.marks(marks)) < 2:
        if process.poll() is not None or time.monotonic() > end:
            raise SystemExit("the two workers never trained; try `yurt run benchmarks/launch/jobs/job.yaml`")
        time.sleep(0.1)


def agents_of(launcher: int) -> list[int]:
    """The launcher's children that run the agent."""
    return [pid for pid in measure.children(launcher) if b".pyz" in Path(f"/proc/{pid}/cmdline").read_bytes()]


def look(launcher: int, agents: Sequence[int], screen: Screen) -> Seen:
    """CPU seconds up to now."""
    agents_s = tuple(measure.cpu_s(pid) for pid in agents)
    return Seen(time.monotonic(), measure.cpu_s(launcher), agents_s, screen.sent_bytes)


def memory_kib(pid: int) -> dict[str, int]:
    """``{"peak": VmHWM, "pss": Pss, "own": private pages}`` in KiB."""
    rows = Path(f"/proc/{pid}/status").read_text() + Path(f"/proc/{pid}/smaps_rollup").read_text()
    values = {line.partition(":")[0]: line.split()[1] for line in rows.splitlines() if line.endswith(" kB")}
    own = int(values["Private_Clean"]) + int(values["Private_Dirty"])
    return {"peak": int(values["VmHWM"]), "pss": int(values["Pss"]), "own": own}


def line(run: Mapping[str, Any], number: int) -> str:
    """One run in one line."""
    each = " + ".join(f"{value:.2f}" for value in run["agents_percent"])
    peaks = ", ".join(f"{memory['peak'] / 1024:.1f}" for memory in run["agents"])
    shares = ", ".join(f"{memory['pss'] / 1024:.1f}" for memory in run["agents"])
    return (
        f"{number:2} {run['way']:6} launcher {run['launcher_percent']:.2f} % + agents {each} % = "
        f"{run['together_percent']:.2f} % of a core  agents: peak {peaks} MiB, share {shares} MiB  "
        f"launcher: peak {run['launcher']['peak'] / 1024:.1f} MiB  terminal {run['sent_bytes_per_s']:.0f} B/s"
    )


def markdown(result: Mapping[str, Any]) -> str:
    """The table."""
    heads = ["output", "launcher", "each agent", "together, of one core", "agent's peak (VmHWM)", "agent's share (Pss)"]
    rows = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for way, title in WAYS.items():
        own = [run for run in result["runs"] if run["way"] == way]
        if not own:
            continue
        together = [run["together_percent"] for run in own]
        cells = [
            title,
            f"{statistics.median(run['launcher_percent'] for run in own):.2f} %",
            f"{statistics.median(each for run in own for each in run['agents_percent']):.2f} %",
            f"**{statistics.median(together):.2f} %**, at most {max(together):.2f} %",
            *(
                f"at most {max(memory[key] for run in own for memory in run['agents']) / 1024:.1f} MiB"
                for key in ("peak", "pss")
            ),
        ]
        rows.append(f"| {' | '.join(cells)} |")
    facts = result["machine"]
    count = len(result["runs"]) // len(WAYS)
    note = f"{count} run{'s' if count != 1 else ''} each, watched for {result['seconds']:.0f} s of training; "
    return "\n".join([*rows, "", note + f"{facts['cpus']} CPUs, load before it {facts['load_before']}."])


if __name__ == "__main__":
    sys.exit(main())
