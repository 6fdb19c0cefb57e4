"""How a run ended, for a person: the verdict, the model and how good it is, or the first failure and its last lines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from yurt.cli import words
from yurt.cli.beside import skipped, waited, ways_to_look
from yurt.cli.marks import GREEN, RED, YELLOW, own_line, painted
from yurt.contract.progress import in_words
from yurt.contract.spec import RunSpec
from yurt.contract.state import BROKEN, CANCELLED, DEADLINE, FAILED, PUBLISH_FAILED, SUCCEEDED, Beat, RunState, Verdict
from yurt.launcher.records import RunFolder, Snapshot

_INDENT: Final = "      "
#: As many restarts are named at the end; `yurt status` shows all that are kept.
_NAMED_RESTARTS: Final = 5


def summary(spec: RunSpec, snapshot: Snapshot, folder: RunFolder, *, colour: bool) -> str:
    """Several lines. The run has its verdict."""
    verdict = snapshot.state.verdict
    assert verdict
    lines = [own_line(sentence(spec, snapshot.state, verdict, colour=colour), colour=colour)]
    lines += [f"{_INDENT}{line}" for line in _details(spec, snapshot, folder, verdict)]
    return "\n".join(lines)


def sentence(spec: RunSpec, state: RunState, verdict: Verdict, *, colour: bool) -> str:
    """``weather-k3f9qa failed after 3.2 s: worker/1 failed with exit code 3``."""
    after = f"after {words.seconds(state.since - spec.submitted_at)}"
    message = verdict.message
    match verdict.outcome:
        case "succeeded":
            return f"{spec.run_id} {painted('succeeded', GREEN, colour=colour)} {after}"
        case "cancelled":
            return f"{spec.run_id} was {painted(message, YELLOW, colour=colour)} {after}"
        case "publish-failed":
            word = painted("was not published", RED, colour=colour)
            return f"{spec.run_id} trained {after}, but its model {word}: {message}"
        case "deadline":
            return f"{spec.run_id} {painted('ran out of time', RED, colour=colour)} {after}: {message}"
        case "launcher-error":
            word = painted("was ended by a fault outside the training", RED, colour=colour)
            return f"{spec.run_id} {word} {after}: {message}"
        case _:
            return f"{spec.run_id} {painted('failed', RED, colour=colour)} {after}: {message}"


def model_sentences(spec: RunSpec, snapshot: Snapshot, folder: RunFolder) -> Iterator[str]:
    """Where the model is and how good it is, if training succeeded."""
    verdict, published = snapshot.state.verdict, snapshot.state.published
    if verdict is None or verdict.outcome not in (SUCCEEDED, PUBLISH_FAILED):
        return
    if published and published.get("ok"):
        where = words.place(str(published.get("place") or published.get("url")))
        yield f"model: {where} (latest points to it)"
    else:
        kept = folder.model(spec.deciding, spec.saves_to)
        if kept.is_dir() and any(kept.iterdir()):
            yield f"model: kept in {words.place(str(kept))}"
            to = "" if spec.output else " --to FOLDER_OR_URL"
            again = "again" if spec.output else "somewhere"
            yield f"to publish it {again}: yurt publish {spec.run_id}{to}"
        elif folder.handle() is not None:
            member = snapshot.members.get(spec.deciding)
            on, to = folder.record()["engine"], "" if spec.output else " --to FOLDER_OR_URL"
            far = "" if folder.lasting else f" --on {on}"
            yield f"model: left on {member.placed_on if member else spec.deciding}, for as long as {on} keeps it there"
            yield f"to fetch and publish it: yurt publish{far} {spec.run_id}{to}"
    if told := quality(snapshot.beats.get(spec.deciding)):
        yield told


def quality(beat: Beat | None) -> str:
    """``loss 0.0712, val_loss 0.08 after epoch 30/30``: the last that a task told; empty where it told nothing."""
    progress: Mapping[str, Any] = beat.progress if beat else {}
    values = in_words({name: progress[name] for name in ("loss", "metrics") if progress.get(name) is not None})
    epoch = in_words({name: progress[name] for name in ("epoch", "epochs") if progress.get(name) is not None})
    return f"{values} after {epoch}" if values and epoch else values


def _details(spec: RunSpec, snapshot: Snapshot, folder: RunFolder, verdict: Verdict) -> Iterator[str]:
    yield from model_sentences(spec, snapshot, folder)
    yield from (f"skipped {what}" for what in skipped(spec, snapshot))
    yield from (f"tracked: {way}" for way in ways_to_look(folder))
    if verdict.outcome not in (FAILED, BROKEN):
        yield from waited(spec, snapshot)
    if verdict.exit and verdict.exit.last_lines:
        yield f"the last lines of {verdict.task}:"
        yield from (f"  | {line}" for line in verdict.exit.last_lines)
    if verdict.hint:
        yield f"hint: {verdict.hint}"
    yield from _restarts(spec, snapshot.state)
    if verdict.outcome in (FAILED, DEADLINE, BROKEN):
        others = [task.name for task in spec.tasks if task.name != verdict.task]
        if verdict.outcome == FAILED and others:
            yield f"{words.listed(others)} {'was' if len(others) == 1 else 'were'} stopped by Yurt"
        task = f" {verdict.task}" if verdict.task else ""
        yield f"the whole output: yurt logs {spec.run_id}{task}"
    if verdict.outcome == CANCELLED:
        yield f"the output: yurt logs {spec.run_id}"


def _restarts(spec: RunSpec, state: RunState) -> Iterator[str]:
    if not state.restarts:
        return
    yield f"restarts: {state.restarts} of {spec.max_restarts}"
    for cause in state.causes[-_NAMED_RESTARTS:]:
        yield f"  {cause.message}"
