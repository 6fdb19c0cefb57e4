"""Time from the moment a worker fails to the exit of the command that launched it, while the other worker trains.

    python benchmarks/launch/failure.py [--runs 5] [--only yurt,torchx,ray] [--json FILE] [--markdown FILE]

Three ways to fail: `os._exit(1)` is gone at once, as if it were killed. `sys.exit(1)` and an exception let Python and
TensorFlow shut down first, which takes TensorFlow seconds, and no launcher sees the end of a process before it has
ended. So a watcher polls the failed worker, and the table has both: the time from the failure, and from the end of the
failed worker's process.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import launchers
import measure

WAYS = ("os._exit", "sys.exit", "raise")
#: A launcher that has not ended by then does not end: nothing moves any more.
WITHIN_S = 60.0


def main() -> int:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5, help="counted runs of each launcher and way")
    parser.add_argument("--only", default="yurt,torchx,ray", help="launchers")
    parser.add_argument("--ways", default=",".join(WAYS), help="how the worker fails")
    parser.add_argument("--json", type=Path, help="write every run here")
    parser.add_argument("--markdown", type=Path, help="write the table into this file, between its marks")
    options = parser.parse_args()
    names, ways = options.only.split(","), options.ways.split(",")
    launchers.ready(names)
    facts, runs = measure.machine(), []
    with tempfile.TemporaryDirectory(prefix="yurt-failure-") as scratch:
        for number in range(options.runs):
            for way in ways:
                for name in names:
                    run = one(name, way, Path(scratch))
                    print(line(run, number + 1), flush=True)
                    runs.append(run)
    result = {"machine": facts, "runs": runs}
    if options.json:
        options.json.write_text(json.dumps(result, indent=1) + "\n")
    text = markdown(result)
    print(text)
    if options.markdown:
        measure.write_between(options.markdown, "failure", text)
    return 0


def one(name: str, way: str, scratch: Path) -> dict[str, Any]:
    """One run in which worker 1 fails."""
    launcher = launchers.LAUNCHERS[name]
    place = measure.fresh(scratch / name)
    folder, marks = launchers.folder_with_job(place), measure.fresh(place / "marks")
    # Steps for longer than anybody waits, so that the other worker surely trains.
    variables = {"BENCH_STEPS": "5000", "BENCH_FAIL": way}
    watch = Watch(marks)
    cost = measure.run(
        launcher.command(folder),
        environment=launchers.environment(launcher, scratch / "yurt-home", marks, variables),
        folder=folder,
        log=place / "log",
        within_s=WITHIN_S + 60,
        meanwhile=watch.start,
    )
    watch.stop()
    failed = next((worker["failed"] for worker in measure.marks(marks) if "failed" in worker), None)
    over = cost.code is not None and failed is not None
    return {
        "name": name,
        "way": way,
        "code": cost.code,
        "from_failure_s": cost.ended - failed if over else None,
        "from_exit_s": cost.ended - watch.gone_at if over and watch.gone_at else None,
        "left": cost.left,
    }


class Watch:
    """Sees when the process of worker 1 has ended: it left its process id in its moments."""

    def __init__(self, marks: Path) -> None:
        self._file = marks / "worker-1.json"
        self._over = False
        self.gone_at: float | None = None

    def start(self, _pid: int) -> None:
        """Watch from now on."""
        threading.Thread(target=self._watch, daemon=True).start()

    def stop(self) -> None:
        """Watch no longer."""
        self._over = True

    def _watch(self) -> None:
        while not self._over:
            try:
                pid = json.loads(self._file.read_text()).get("pid")
            except (OSError, ValueError):
                pid = None
            if pid is None:
                time.sleep(0.1)
                continue
            if not _runs(pid):
                self.gone_at = time.time()
                return
            time.sleep(0.01)


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def line(run: Mapping[str, Any], number: int) -> str:
    """One run in one line."""
    after = f"{run['from_failure_s']:6.2f} s" if run["from_failure_s"] is not None else "     - "
    ended = f"{run['from_exit_s']:6.2f} s" if run["from_exit_s"] is not None else "     - "
    return (
        f"{number:2} {run['name']:7} {run['way']:9} exit {run['code']}  after the failure {after}"
        f"  after the worker's exit {ended}  left {run['left']}"
    )


def markdown(result: Mapping[str, Any]) -> str:
    """The table."""
    rows = [
        "| started by | worker 1 fails by | from the failure to the end | from the failed process's end |",
        "|---|---|---|---|",
    ]
    for name in dict.fromkeys(run["name"] for run in result["runs"]):
        for way in dict.fromkeys(run["way"] for run in result["runs"]):
            own = [run for run in result["runs"] if (run["name"], run["way"]) == (name, way)]
            cells = [launchers.LAUNCHERS[name].title, f"`{way}`"]
            cells += [within(own, key) for key in ("from_failure_s", "from_exit_s")]
            rows.append(f"| {' | '.join(cells)} |")
    facts = result["machine"]
    return "\n".join([*rows, "", f"Median and most; {facts['cpus']} CPUs, load before it {facts['load_before']}."])


def within(runs: Sequence[Mapping[str, Any]], key: str) -> str:
    """Median and most, and how many never ended."""
    values = [run[key] for run in runs if run[key] is not None]
    never = sum(run["code"] is None for run in runs)
    if not values:
        return f"not within {WITHIN_S:.0f} s" if never else "-"
    text = f"{statistics.median(values):.2f} s, at most {max(values):.2f} s"
    return f"{text} ({never} of {len(runs)} never)" if never else text


if __name__ == "__main__":
    sys.exit(main())
