"""Let the trained model read the whole year, and show the days it could not make sense of.

    python anomalies.py [models/latest] [--data data] [--picture anomalies.png]

A model that has learned what weather is like rebuilds ordinary hours well and strange ones badly. Every window of
the year goes through it; an hour's error is the mean over all windows that contain the hour, and a day's error the
mean over its hours, in multiples of the usual error. Days and hours are counted in eastern standard time.
The three airports see the same weather, so the list names a day once, with the airport where it was strangest.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import tensorflow as tf

HERE = Path(__file__).parent
WEATHER = 8  # the first eight values are weather, the other two only say what time of day it is
EASTERN_S = -5 * 3600
PLAIN = {
    "temperature": ("temperature", "°C", 1),
    "dew_point": ("dew point", "°C", 1),
    "humidity": ("humidity", "%", 0),
    "wind_east": ("wind to the east", "m/s", 1),
    "wind_north": ("wind to the north", "m/s", 1),
    "rain": ("rain", "mm/h", 1),
    "pressure": ("pressure", "hPa", 0),
    "visibility": ("visibility", "km", 1),
}
COLOURS = {"EWR": "#c2410c", "JFK": "#1d4ed8", "LGA": "#15803d"}


def read_year(data: Path, schema: dict):
    """All windows of the year: values (n, 36, 10), start times, airports."""
    shape = schema["record"]["window"]["shape"]
    files = [data / file["name"] for split in schema["splits"].values() for file in split["files"]]
    wanted = {
        "window": tf.io.FixedLenFeature(shape, tf.float32),
        "start_unix_s": tf.io.FixedLenFeature([], tf.int64),
        "origin": tf.io.FixedLenFeature([], tf.string),
    }
    batches = [
        tf.io.parse_example(batch, wanted)
        for batch in tf.data.TFRecordDataset([str(file) for file in files]).batch(4096)
    ]
    windows, starts, origins = (
        np.concatenate([batch[name].numpy() for batch in batches]) for name in ("window", "start_unix_s", "origin")
    )
    return windows, starts, origins.astype(str)


def rebuild(model: Path, windows: np.ndarray) -> np.ndarray:
    """What the model makes of the windows. The SavedModel runs without Keras, whichever wrote it."""
    served = tf.saved_model.load(str(model / "saved_model"))
    parts = [served.serve(tf.constant(windows[i : i + 2048])).numpy() for i in range(0, len(windows), 2048)]
    return np.concatenate(parts)


def by_hour(windows: np.ndarray, rebuilt: np.ndarray, starts: np.ndarray, origins: np.ndarray) -> dict:
    """For each airport: the hours, their real values, the mean of what was rebuilt, the mean squared error."""
    squared = (windows - rebuilt) ** 2
    length = windows.shape[1]
    airports = {}
    for airport in sorted(set(origins)):
        own = origins == airport
        at = (starts[own][:, None] + 3600 * np.arange(length)).ravel()
        hours, where, seen = np.unique(at, return_inverse=True, return_counts=True)

        def average(values, own=own, where=where, seen=seen):
            total = np.zeros((len(seen), values.shape[-1]))
            np.add.at(total, where, values[own].reshape(-1, values.shape[-1]))
            return total / seen[:, None]

        airports[airport] = {
            "hours": hours,
            "real": average(windows),
            "rebuilt": average(rebuilt),
            "error": average(squared)[:, :WEATHER],
        }
    return airports


def by_day(airports: dict) -> list[dict]:
    """Every day at every airport, the strangest first.

    An error is counted in multiples of what is usual for its value over the year, so that rain, which nobody can
    rebuild well, does not decide alone; a day's strangeness is the mean over the eight values: 1 is usual. Days
    of fewer than 20 hours are left out.
    """
    usual = np.concatenate([year["error"] for year in airports.values()]).mean(axis=0)
    days = []
    for airport, year in airports.items():
        number = (year["hours"] + EASTERN_S) // 86400
        for day in np.unique(number):
            rows = np.flatnonzero(number == day)
            if len(rows) < 20:
                continue
            parts = year["error"][rows].mean(axis=0) / usual
            days.append({"airport": airport, "day": int(day), "rows": rows, "error": parts.mean(), "parts": parts})
    return sorted(days, key=lambda day: -day["error"])


def strangest(days: list[dict], count: int) -> list[dict]:
    """The strangest days, each date once, at the airport where it was strangest."""
    chosen = {}
    for day in days:
        chosen.setdefault(day["day"], day)
    return list(chosen.values())[:count]


def original(values: np.ndarray, feature: dict) -> np.ndarray:
    """From scaled numbers back to degrees, metres and millimetres."""
    plain = values * feature["std"] + feature["mean"]
    return np.expm1(plain).clip(0) if feature["transform"] == "log1p" else plain


def date(day: int, form: str = "%Y-%m-%d") -> str:
    """A date from its number."""
    return time.strftime(form, time.gmtime(day * 86400))


def causes(day: dict, year: dict, features: list[dict]) -> list[dict]:
    """The values that made the day strange, the worst first, each with its worst hour: measured and rebuilt."""
    found = []
    for index in np.argsort(-day["parts"]):
        worst = day["rows"][int(year["error"][day["rows"], index].argmax())]
        name, unit, digits = PLAIN[features[index]["name"]]
        real, rebuilt = (original(year[kind][worst, index], features[index]) for kind in ("real", "rebuilt"))
        hour = int((year["hours"][worst] + EASTERN_S) // 3600 % 24)
        found.append(
            {
                "index": int(index),
                "name": name,
                "unit": unit,
                "times": float(day["parts"][index]),
                "text": f"{name} {real:.{digits}f} {unit} at {hour:02d}h, rebuilt as {rebuilt:.{digits}f}",
            }
        )
    return found


def draw(path: Path, airports: dict, days: list[dict], top: list[dict], schema: dict) -> None:
    """Draw the year and the three strangest days."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    features = schema["features"]
    plt.rcParams.update({"font.size": 9, "axes.spines.top": False, "axes.spines.right": False})
    figure = plt.figure(figsize=(11, 7.6), layout="constrained")
    top_row, bottom_row = figure.add_gridspec(2, 1, height_ratios=(1.15, 1))
    strip, names = (figure.add_subplot(cell) for cell in top_row.subgridspec(1, 2, width_ratios=(5, 1)))
    panels = bottom_row.subgridspec(1, 3)
    for airport in airports:
        own = sorted((day["day"], day["error"]) for day in days if day["airport"] == airport)
        at, error = np.array(own).T
        strip.plot(at, error, color=COLOURS.get(airport), lw=0.8, alpha=0.85, label=airport)
    highest = max(day["error"] for day in days)
    strip.set_ylim(0, highest * 1.12)
    names.axis("off")
    names.set_title("The strangest days", loc="left", fontweight="bold")
    for rank, day in enumerate(top, 1):
        colour = COLOURS.get(day["airport"])
        worst = causes(day, airports[day["airport"]], features)[0]["name"]
        style = {"color": colour, "fontsize": 8.5, "fontweight": "bold"}
        strip.text(day["day"], day["error"] + 0.01 * highest, str(rank), ha="center", va="bottom", **style)
        names.text(0, 0.97 - 0.075 * rank, str(rank), transform=names.transAxes, **style)
        text = f"{date(day['day'], '%-d %b')} {day['airport']}, {worst}"
        names.text(0.13, 0.97 - 0.075 * rank, text, transform=names.transAxes, fontsize=8.5)
    months = [int(np.datetime64(f"2013-{month:02d}-01").astype("datetime64[D]").astype(int)) for month in range(1, 13)]
    strip.set_xticks(months, [date(month, "%b") for month in months])
    strip.set_xlim(months[0] - 1, months[0] + 365)
    for name in ("validation", "test"):
        edge = np.datetime64(schema["splits"][name]["first_hour"].rstrip("Z")).astype("datetime64[D]").astype(int)
        strip.axvline(edge, color="#64748b", lw=0.8, ls=":")
        strip.text(edge + 1, highest * 1.1, f"{name} from here", color="#64748b", fontsize=8, va="top")
    strip.axhline(1, color="#64748b", lw=0.8)
    strip.set_ylabel("error of the day,\ntimes the usual")
    strip.set_title("How badly the model could rebuild each day of 2013", loc="left", fontweight="bold")
    strip.legend(loc="upper left", frameon=False)

    drawn: set[str] = set()
    for column, day in enumerate(top[:3]):
        year, axis = airports[day["airport"]], figure.add_subplot(panels[0, column])
        worst = causes(day, year, features)
        cause = next((other for other in worst if other["name"] not in drawn and other["times"] > 3), worst[0])
        drawn.add(cause["name"])
        rows = np.arange(max(0, day["rows"][0] - 12), min(len(year["hours"]), day["rows"][-1] + 13))
        hours = (year["hours"][rows] + EASTERN_S - day["day"] * 86400) / 3600
        axis.axvspan(0, 24, color="#f1f5f9", zorder=0)
        for kind, colour, style, text in (
            ("real", "#0f172a", "-", "measured"),
            ("rebuilt", "#e11d48", "--", "rebuilt by the model"),
        ):
            values = original(year[kind][rows, cause["index"]], features[cause["index"]])
            axis.plot(hours, values, color=colour, ls=style, lw=1.6, label=text)
        axis.set_xticks([-12, 0, 12, 24, 36], ["12h", "0h", "12h", "0h", "12h"])
        axis.set_title(f"{column + 1}. {date(day['day'], '%-d %B')}, {day['airport']}", loc="left", fontweight="bold")
        axis.set_ylabel(f"{cause['name']}, {cause['unit']}")
        if column == 0:
            axis.legend(frameon=False, fontsize=8)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=95, metadata={"Software": ""}, pil_kwargs={"optimize": True})


def strangest_hours(airports: dict, features: list[dict]) -> list[str]:
    """For each value the hour of the year that was furthest from what the model makes of it."""
    lines = []
    for index in range(WEATHER):
        airport = max(airports, key=lambda name: airports[name]["error"][:, index].max())
        year = airports[airport]
        row = int(year["error"][:, index].argmax())
        name, unit, digits = PLAIN[features[index]["name"]]
        real, rebuilt = (original(year[kind][row, index], features[index]) for kind in ("real", "rebuilt"))
        at = time.strftime("%Y-%m-%d %Hh", time.gmtime(year["hours"][row] + EASTERN_S))
        lines.append(f"{name:<17} {at} {airport}  {real:.{digits}f} {unit}, rebuilt as {rebuilt:.{digits}f}")
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", type=Path, nargs="?", default=HERE / "models" / "latest", help="a published model")
    parser.add_argument("--data", type=Path, default=HERE / "data", help="the folder prepare.py wrote")
    parser.add_argument("--picture", type=Path, default=HERE / "anomalies.png")
    parser.add_argument("--top", type=int, default=10, help="how many days to name")
    arguments = parser.parse_args()
    model = arguments.model
    if model.is_file():  # a pointer: the file names the folder
        model = model.parent / model.read_text().strip()
    for folder, what in ((model, "python train.py, or yurt run job.yaml"), (arguments.data, "python prepare.py")):
        if not (folder / "schema.json").is_file():
            sys.exit(f"anomalies: there is nothing to use in {folder}; make it with: {what}")
    schema = json.loads((model / "schema.json").read_text())
    if json.loads((arguments.data / "schema.json").read_text())["features"] != schema["features"]:
        sys.exit("anomalies: the model was trained on data that were scaled otherwise than these; train it again")

    windows, starts, origins = read_year(arguments.data, schema)
    rebuilt = rebuild(model, windows)
    airports = by_hour(windows, rebuilt, starts, origins)
    days = by_day(airports)
    top = strangest(days, arguments.top)

    variance = ((windows - windows.mean(axis=(0, 1))) ** 2).mean(axis=(0, 1))
    explained = 1 - ((windows - rebuilt) ** 2).mean(axis=(0, 1)) / variance
    shares = zip(schema["features"][:WEATHER], explained, strict=False)
    print("how much of the variation of each value the model explains, over the year:")
    print("  " + ", ".join(f"{PLAIN[feature['name']][0]} {100 * share:.0f} %" for feature, share in shares))
    dates = {day["day"] for day in days}
    print(f"the strangest {len(top)} of {len(dates)} days, and how many times the usual error they have:")
    for rank, day in enumerate(top, 1):
        named = [cause for cause in causes(day, airports[day["airport"]], schema["features"]) if cause["times"] > 3]
        why = "; ".join(f"{cause['text']} ({cause['times']:.0f} x)" for cause in named[:2])
        print(
            f"{rank:>3}. {date(day['day'])} {day['airport']} {day['error']:4.1f} x  {why or 'a little of everything'}"
        )
    print("the strangest single hours:")
    print(*(f"     {line}" for line in strangest_hours(airports, schema["features"])), sep="\n")
    draw(arguments.picture, airports, days, top, schema)
    print(f"picture: {arguments.picture}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
