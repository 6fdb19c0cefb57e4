"""``yurt data``: look at training data, and check it before a run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

import click

from yurt.cli import words
from yurt.cli.as_json import as_page
from yurt.cli.common import JSON
from yurt.cli.out import standard_error, standard_output

if TYPE_CHECKING:
    from yurt.data.looking import Histogram, Inspected
    from yurt.data.schema import Feature
    from yurt.data.verdict import Checked

_PATH: Final = click.argument("path", metavar="PATH")
_BARS: Final = " ▁▂▃▄▅▆▇█"
_MOST_FILES: Final = 20


@click.group(invoke_without_command=True)
@click.pass_context
def data(ctx: click.Context) -> None:
    """Look at training data, or check it before a run.

    PATH is a set as it was written (data/train), a folder that holds one, a pattern in quotes, or a file.
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


@data.command(short_help="Show schema, counts, sizes, a few rows and histograms.")
@_PATH
@click.option("-n", "--rows", default=3, show_default=True, type=click.IntRange(0), help="How many rows to show.")
@JSON
def inspect(path: str, rows: int, as_json: bool) -> int:
    """Show schema, counts, sizes, a few rows and a histogram of each feature.

    The histograms are of a sample: the first rows of every file, 2,000 in all.
    """
    from yurt.data.looking import inspect as look

    found = look(path, rows=rows)
    standard_output().say(as_page(_inspected(found)) if as_json else "\n".join(_page(found)))
    return 0


@data.command(short_help="Read every record; say what each of N workers would get.")
@_PATH
@click.option("--workers", default=1, show_default=True, type=click.IntRange(1), help="How many would read it.")
@click.option("--batch", type=click.IntRange(1), help="Global batch that steps are counted for; else one row a worker.")
@click.option("--nan", is_flag=True, help="NaN and infinity are faults too.")
@JSON
def check(path: str, workers: int, batch: int | None, nan: bool, as_json: bool) -> int:
    """Read every record, compare it with the schema, and say what each worker would get.

    The exit code is 0, or 2 if training should not start on this.
    """
    from yurt.data.verdict import check as look

    found = look(path, workers=workers, batch=batch, nan=nan)
    if as_json:
        standard_output().say(as_page(found.as_json()))
    else:
        standard_output().say("\n".join(_verdict(found)))
        for line in _faults(found):
            standard_error().say(line)
    return 0 if found.ok else 2


def _verdict(found: Checked) -> Iterator[str]:
    from yurt.cli.table import table

    rows = words.counted(found.examples, "row")
    if found.layout.packed is not None:
        rows += f" in {words.counted(found.records, 'record')}"
    how = "good" if found.ok else "not good"
    files = words.counted(len(found.files), "file")
    yield f"{found.name} is {how} to train on: {rows} in {files}, {words.size(found.bytes)}"
    if found.plan is not None:
        plan = found.plan
        cells = [("WORKER", "FILES", "RECORDS", "ROWS", "ROWS A STEP", "STEPS")]
        for number, share in enumerate(plan.shares):
            files = "all" if plan.by == "elements" and len(plan.shares) > 1 else f"{len(share.files):,}"
            records = sum(found.files[file].records for file in share.files)
            cells.append((str(number), files, f"{records:,}", f"{share.used:,}", f"{share.batch:,}", f"{plan.steps:,}"))
        yield table(cells)
        if plan.left_out:
            yield f"{words.counted(plan.left_out, 'row')} of an epoch fill no whole step and are left out"
        if plan.note:
            yield plan.note
    if found.passed_over:
        yield f"passed over: {words.listed(found.passed_over)}"


def _faults(found: Checked) -> Iterator[str]:
    for fault in found.faults[:_MOST_FILES]:
        yield f"yurt: {fault}" + (f"\n      {fault.hint}" if fault.hint else "")
    if found.faults_total > _MOST_FILES:
        yield f"yurt: and {found.faults_total - _MOST_FILES:,} more"
    if found.plan_problem:
        yield f"yurt: {found.plan_problem}"


def _inspected(found: Inspected) -> dict[str, Any]:
    return {
        "name": found.name,
        "compression": found.layout.compression,
        "packed": found.layout.packed,
        "schema": found.layout.schema.as_json(),
        "schema_guessed": found.guessed,
        "examples": found.examples,
        "bytes": found.bytes,
        "files": [asdict(file) for file in found.files],
        "rows": [{name: _plain(value) for name, value in row.items()} for row in found.rows],
        "sampled": found.sampled,
        "histograms": {name: asdict(histogram) for name, histogram in found.histograms.items()},
        "passed_over": found.passed_over,
    }


def _plain(value: Any) -> Any:
    """Arrays as lists, bytes as text."""
    if isinstance(value, bytes):
        return value.decode(errors="backslashreplace")
    if isinstance(value, list):
        return [_plain(inner) for inner in value]
    tolist = getattr(value, "tolist", None)
    return value if tolist is None else _plain(tolist())


def _page(found: Inspected) -> Iterator[str]:
    from yurt.cli.table import table

    layout = found.layout
    how = "not compressed" if layout.compression == "none" else layout.compression.upper()
    packed = "" if layout.packed is None else f", {layout.packed} rows a record"
    files = words.counted(len(found.files), "file")
    yield f"{found.name}: {words.counted(found.examples, 'row')} in {files}, {words.size(found.bytes)}, {how}{packed}"
    if found.guessed:
        yield "there is no schema beside the files; this one is guessed from their first records"
    yield ""
    yield table([("FEATURE", "DTYPE", "SHAPE", "ABOUT"), *(_feature(*item) for item in layout.schema.items())])
    yield ""
    shown = found.files[:_MOST_FILES]
    rows = [
        (file.name, "?" if file.examples is None else f"{file.examples:,}", words.size(file.bytes)) for file in shown
    ]
    yield table([("FILE", "ROWS", "SIZE"), *rows])
    if len(found.files) > len(shown):
        yield f"and {len(found.files) - len(shown):,} more files"
    yield from (file.problem for file in found.files if file.problem)
    for number, row in enumerate(found.rows):
        yield ""
        yield f"row {number}"
        yield table([(f"  {name}", _short(value)) for name, value in row.items()])
    if found.sampled:
        yield ""
        yield f"over {words.counted(found.sampled, 'row')}:"
        yield table([(f"  {name}", *_bars(histogram)) for name, histogram in found.histograms.items()])
    if found.passed_over:
        yield ""
        yield f"passed over: {words.listed(found.passed_over)}"


def _feature(name: str, feature: Feature) -> tuple[str, str, str, str]:
    sizes = ", ".join("any" if size is None else str(size) for size in feature.shape)
    return name, feature.dtype, f"({sizes})" if feature.shape else "scalar", feature.about


def _short(value: Any) -> str:
    """A value on one line."""
    from yurt.data.looking import shown

    if isinstance(value, bytes):
        return shown(value)
    array: Any = value
    flat: list[Any] = value if isinstance(value, list) else array.ravel().tolist()
    parts = [_number(one) for one in flat[:6]]
    more = f" ... ({len(flat):,} values)" if len(flat) > 6 else ""
    text = ", ".join(parts) + more
    return text if getattr(value, "shape", None) == () or not hasattr(value, "shape") else f"[{text}]"


def _number(value: Any) -> str:
    from yurt.data.looking import shown

    if isinstance(value, bytes):
        return shown(value, 20)
    return f"{value:.6g}" if isinstance(value, float) else f"{value}"


def _bars(histogram: Histogram) -> tuple[str, str]:
    if histogram.top:
        told = ", ".join(f"{text} ({count:,})" for text, count in histogram.top)
        return "", told
    parts = []
    bar = ""
    if histogram.low is not None and histogram.high is not None:
        most = max(histogram.counts)
        bar = "".join(_BARS[-(-count * 8 // most)] for count in histogram.counts)
        parts.append(f"{histogram.low:.4g} to {histogram.high:.4g}, mean {histogram.mean:.4g}, std {histogram.std:.4g}")
    if histogram.not_finite:
        parts.append(f"{words.counted(histogram.not_finite, 'value')} not finite")
    if histogram.lengths:
        parts.append(f"{histogram.lengths[0]:,} to {histogram.lengths[1]:,} a row")
    return bar, "; ".join(parts) or "no value"
