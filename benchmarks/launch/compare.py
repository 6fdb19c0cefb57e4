"""Wall time of the same two-worker training under a bare shell, Yurt, TorchX and Ray Train, measured in turns.

    python benchmarks/launch/compare.py [--runs 5] [--only shell,yurt,torchx,ray] [--steps 150]
                                        [--json FILE] [--markdown FILE]

One run of each that is not counted comes first: it fills the page cache and writes every .pyc file.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import launchers
import measure

#: Relative difference that two losses of the same training may have: sums in another order, nothing more.
LOSS_TOLERANCE = 1e-3
#: Share of the machine that others may use during a run before the table says so.
QUIET = 0.02


def main() -> int:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5, help="counted runs of each launcher")
    parser.add_argument("--only", default=",".join(launchers.LAUNCHERS), help="names, the first one is the yardstick")
    parser.add_argument("--steps", type=int, default=150, help="training steps of the script")
    parser.add_argument("--json", type=Path, help="write every run here")
    parser.add_argument("--markdown", type=Path, help="write the table into this file, between its marks")
    options = parser.parse_args()
    names = options.only.split(",")
    if unknown := set(names) - set(launchers.LAUNCHERS):
        parser.error(f"there is no launcher {', '.join(sorted(unknown))}")
    result = compare(names, options.runs, options.steps)
    if options.json:
        options.json.write_text(json.dumps(result, indent=1) + "\n")
    text = markdown(result)
    print(text)
    if options.markdown:
        measure.write_between(options.markdown, "compare", text)
    return 0 if all(run["right"] for run in result["runs"]) else 1


def compare(names: Sequence[str], runs: int, steps: int) -> dict[str, Any]:
    """All runs, the order turned by one from round to round."""
    launchers.ready(list(names))
    facts = measure.machine()
    done: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="yurt-launch-") as scratch:
        for number in range(runs + 1):
            turn = max(0, number - 1) % len(names)
            for name in [*names[turn:], *names[:turn]]:
                run = one(name, Path(scratch), steps)
                print(line(run, "warm-up" if number == 0 else f"round {number}"), flush=True)
                if number:
                    done.append({"round": number, **run})
    yardstick = next((run["losses"][0] for run in done if run["losses"]), 0.0)
    for run in done:
        run["right"] = right(run, yardstick)
    return {"machine": facts, "steps": steps, "names": list(names), "runs": done}


def one(name: str, scratch: Path, steps: int, extra: Mapping[str, str] | None = None) -> dict[str, Any]:
    """One run of one launcher."""
    launcher = launchers.LAUNCHERS[name]
    place = measure.fresh(scratch / name)
    folder, log = launchers.folder_with_job(place), place / "log"
    marks = measure.fresh(place / "marks")
    variables = {"BENCH_STEPS": str(steps), **(extra or {})}
    cost = measure.run(
        launcher.command(folder),
        environment=launchers.environment(launcher, scratch / "yurt-home", marks, variables),
        folder=folder,
        log=log,
        within_s=600,
    )
    workers = measure.marks(marks)
    if cost.code != 0:
        sys.stderr.write(f"{name} ended with {cost.code}:\n{log.read_text(errors='replace')[-4000:]}\n")

    def since(mark: str, pick: Any) -> float | None:
        moments = [worker[mark] for worker in workers if mark in worker]
        return pick(moments) - cost.started if len(moments) == 2 else None

    first, last, trained = since("first_step", max), since("last_step", max), since("trained", max)
    wait = trained - last if trained and last else None
    return {
        "name": name,
        "code": cost.code,
        "wall_s": cost.wall_s,
        "cpu_s": cost.cpu_s,
        "cpu_whole": cost.whole,
        "other_cpu_s": cost.other_cpu_s,
        "left": cost.left,
        "script_s": since("started", max),
        "leader_ahead_s": workers[1]["started"] - workers[0]["started"] if len(workers) == 2 else None,
        "gathered_s": since("gathered", max),
        "first_step_s": first,
        "training_s": last - first if last and first else None,
        "wait_s": wait,
        "wall_less_wait_s": cost.wall_s - wait if wait is not None else None,
        "tail_s": cost.wall_s - trained if trained else None,
        "losses": [worker["loss"] for worker in workers if "loss" in worker],
        "replicas": [worker.get("replicas") for worker in workers],
    }


def right(run: Mapping[str, Any], yardstick: float) -> bool:
    """Whether it ended well: two workers that trained together, with the loss that everybody else has."""
    losses = run["losses"]
    return (
        run["code"] == 0
        and run["replicas"] == [2, 2]
        and len(losses) == 2
        and losses[0] == losses[1]
        and abs(losses[0] - yardstick) <= LOSS_TOLERANCE * yardstick
    )


def line(run: Mapping[str, Any], when: str) -> str:
    """One run in one line."""
    parts = [f"{when:8} {run['name']:7} exit {run['code']}  wall {run['wall_s']:6.2f} s  cpu {run['cpu_s']:6.2f} s"]
    for key, words in (("script_s", "script"), ("first_step_s", "first step"), ("training_s", "training")):
        parts.append(f"{words} {run[key]:5.2f}" if run[key] is not None else f"{words} -")
    parts.append(f"wait {run['wait_s']:5.2f}" if run["wait_s"] is not None else "wait -")
    parts.append(f"tail {run['tail_s']:4.2f}" if run["tail_s"] is not None else "tail -")
    parts.append(f"ahead {run['leader_ahead_s']:+.2f}" if run["leader_ahead_s"] is not None else "")
    parts.append(f"others {run['other_cpu_s']:4.1f}  left {run['left']}  loss {run['losses'][:1]}")
    return "  ".join(parts)


def markdown(result: Mapping[str, Any]) -> str:
    """The table, and what it was measured on."""
    facts, runs, names = result["machine"], result["runs"], result["names"]
    heads = ["started by", "whole wall time", "to the bare shell", "without the wait in `fit`", "to the bare shell"]
    heads += ["CPU time", "first step of both after", "training", "wait in `fit`", "`fit` to exit"]
    rows = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for name in names:
        own = [run for run in runs if run["name"] == name]
        cells = [launchers.LAUNCHERS[name].title]
        for key in ("wall_s", "wall_less_wait_s"):
            base = {run["round"]: run[key] for run in runs if run["name"] == names[0] and run[key]}
            ratios = [run[key] / base[run["round"]] for run in own if run[key] and run["round"] in base]
            cells += [f"**{middle(own, key)}**", spread(ratios, "", 3) if name != names[0] else "1"]
        cells += [middle(own, key) for key in ("cpu_s", "first_step_s", "training_s", "wait_s", "tail_s")]
        rows.append(f"| {' | '.join(cells)} |")
    seconds = sum(run["wall_s"] for run in runs)
    others = sum(run["other_cpu_s"] for run in runs) / (seconds * facts["cpus"]) if seconds else 0.0
    count = len(runs) // max(1, len(names))
    wrong = sum(not run["right"] for run in runs)
    note = (
        f"Median (least to most) of {count} run{'s' if count != 1 else ''} each, {result['steps']} steps; "
        f"{facts['cpus']} CPUs ({facts['cpu']}), {facts['memory_gib']} GiB, Python {facts['python']}, "
        f"Linux {facts['kernel']}. "
    )
    if others > QUIET:
        note += f"**Not a quiet machine**: others used {others:.0%} of it meanwhile, so this is a trial. "
    else:
        note += f"Others used {others:.1%} of the machine meanwhile. "
    if not all(run["cpu_whole"] for run in runs):
        note += "CPU time without that of processes that nobody waited for (no control group could be made). "
    note += f"{wrong} of {len(runs)} runs had a wrong result." if wrong else "Every run had the same losses."
    return "\n".join([*rows, "", note])


def middle(runs: Sequence[Mapping[str, Any]], key: str) -> str:
    """Median, least and most of one number, in seconds."""
    values = [run[key] for run in runs if run[key] is not None]
    return spread(values, " s", 2)


def spread(values: Sequence[float], unit: str, digits: int) -> str:
    """``17.20 s (17.11-17.64)``."""
    if not values:
        return "-"
    low, high, mid = min(values), max(values), statistics.median(values)
    return f"{mid:.{digits}f}{unit} ({low:.{digits}f}-{high:.{digits}f})"


if __name__ == "__main__":
    sys.exit(main())
