"""``yurt status``: one run and its tasks."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from yurt.cli import words
from yurt.cli.as_json import as_page
from yurt.cli.common import JSON, RUN
from yurt.cli.on_engine import ON, find
from yurt.cli.out import standard_error, standard_output

if TYPE_CHECKING:
    from yurt.contract.spec import RunSpec
    from yurt.launcher.records import RunFolder, Snapshot


@click.command()
@RUN
@ON
@JSON
@click.option("--wait", "until_end", is_flag=True, help="Wait for the end; the exit code is then the run's.")
def status(run_id: str | None, engine: str | None, as_json: bool, until_end: bool) -> int:
    """Show one run and its tasks; the newest run unless RUN is named.

    RUN is an id, or the beginning of one.
    """
    from yurt.cli.facts import facts
    from yurt.cli.watching import until_over

    out = standard_output()
    folder = find(run_id, engine, otherwise=None if until_end else standard_error().say)
    snapshot = until_over(folder) if until_end else folder.snapshot()
    if as_json:
        out.say(as_page(facts(folder, snapshot)))
    else:
        out.say("\n".join(_page(folder, folder.spec(), snapshot)))
    verdict = snapshot.state.verdict if snapshot else None
    return verdict.exit_code if verdict and until_end else 0


def _page(folder: RunFolder, spec: RunSpec, snapshot: Snapshot | None) -> Iterator[str]:
    from yurt.cli.beside import skipped, ways_to_look
    from yurt.cli.summary import model_sentences, sentence

    record = folder.record()
    if snapshot is None:
        yield f"{spec.run_id} was submitted {words.seconds(time.time() - spec.submitted_at)} ago"
        return
    state = snapshot.state
    if state.verdict:
        yield sentence(spec, state, state.verdict, colour=False)
        if state.verdict.hint:
            yield f"  hint      {state.verdict.hint}"
    else:
        yield f"{spec.run_id} is {state.phase} after {words.seconds(time.time() - spec.submitted_at)}"
    yield f"  engine    {record['engine']}"
    if record["job_file"]:
        yield f"  job file  {words.place(record['job_file'])}"
    yield from (f"  {line.replace(': ', '     ', 1)}" for line in model_sentences(spec, snapshot, folder))
    yield from (f"  skipped   {what}" for what in skipped(spec, snapshot))
    yield from (f"  tracked   {way}" for way in ways_to_look(folder))
    yield f"  restarts  {state.restarts} of {spec.max_restarts}"
    for cause in state.causes:
        yield f"            {time.strftime('%H:%M:%S', time.localtime(cause.at))} {cause.message}"
    yield ""
    yield _tasks(spec, snapshot, over=folder.host() is None)


def _tasks(spec: RunSpec, snapshot: Snapshot, *, over: bool) -> str:
    from yurt.cli.states import STARTING, task_state
    from yurt.cli.table import table
    from yurt.contract.exits import in_words as end_in_words
    from yurt.contract.progress import in_words

    rows = [("TASK", "STATE", "ATTEMPT", "PLACED ON", "")]
    for task in spec.tasks:
        member, beat = snapshot.members.get(task.name), snapshot.beats.get(task.name)
        told = in_words(beat.progress) if beat else ""
        state = task_state(spec, snapshot, task.name, over=over)
        if state == STARTING and task.name in snapshot.waiting:
            told = f"waits: {snapshot.waiting[task.name]}"
        if state in ("failed", "lost") and member and member.exit:
            told = end_in_words(member.exit)
        rows.append((task.name, state, str(member.attempt) if member else "", member.placed_on if member else "", told))
    return table(rows)
