import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from yurt.job.units import (
    LARGEST_MEMORY,
    LONGEST_S,
    SMALLEST_MEMORY,
    read_cpus,
    read_duration,
    read_memory,
    write_duration,
    write_memory,
)


@pytest.mark.parametrize(
    ("written", "seconds"),
    [
        ("90s", 90),
        ("5m", 300),
        ("1h", 3600),
        ("2h30m", 9000),
        ("2h 30m", 9000),
        ("1d", 86_400),
        ("1d12h", 129_600),
        ("500ms", 0.5),
        ("1s500ms", 1.5),
        ("1.5h", 5400),
        (".5m", 30),
        (" 90 s ", 90),
        ("90", 90),
        (90, 90),
        (0.25, 0.25),
        ("1e3", 1000),
    ],
)
def test_times(written, seconds):
    assert read_duration(written) == seconds


@pytest.mark.parametrize(
    "written",
    [
        "",
        " ",
        "s",
        "h1",
        "1h2h",
        "1m1h",
        "1 hour",
        "-1s",
        "0",
        0,
        -1,
        "0s",
        "nan",
        "inf",
        math.nan,
        math.inf,
        True,
        None,
        [],
        {},
        "1e9999",
        "1" * 5000,
        10**400,
        "\u0661s",
        "1.2.3s",
        "3651d",
        b"1s",
    ],
)
def test_what_is_no_time(written):
    with pytest.raises(ValueError):
        read_duration(written)


def test_zero_where_it_makes_sense():
    assert read_duration("0s", zero=True) == 0
    assert read_duration(0, zero=True) == 0


@pytest.mark.parametrize(
    ("written", "size"),
    [
        ("2GiB", 2 * 1024**3),
        ("2Gi", 2 * 1024**3),
        ("512MiB", 512 * 1024**2),
        ("1.5GB", 1_500_000_000),
        ("2G", 2_000_000_000),
        ("2M", 2_000_000),
        ("2000K", 2_000_000),
        ("2000k", 2_000_000),
        ("2000kB", 2_000_000),
        ("2048Ki", 2 * 1024**2),
        ("1TiB", 1024**4),
        ("1 TB", 10**12),
        ("2097152B", 2 * 1024**2),
        ("2097152", 2 * 1024**2),
        (2_097_152, 2 * 1024**2),
    ],
)
def test_sizes(written, size):
    assert read_memory(written) == size


@pytest.mark.parametrize(
    "written",
    [
        "",
        "GiB",
        "-1GiB",
        "0",
        0,
        -1,
        2,
        64,
        "2",
        "4KiB",
        "500m",
        "2gb",
        "2GIB",
        "2 gigs",
        "2PiB",
        "2000TiB",
        "1e30",
        math.nan,
        math.inf,
        True,
        None,
        [],
        "1" * 5000 + "B",
        10**400,
        "1.2.3GB",
        "\u0661GiB",
    ],
)
def test_what_is_no_size(written):
    with pytest.raises(ValueError):
        read_memory(written)


@pytest.mark.parametrize("written", [0, -1, 1e6, math.nan, math.inf, "2", "500m", True, None, [], 10**400])
def test_what_is_no_number_of_cpus(written):
    with pytest.raises(ValueError):
        read_cpus(written)


@given(st.floats(min_value=1e-9, max_value=LONGEST_S) | st.integers(1, LONGEST_S).map(float))
@example(0.001)
@example(0.1 + 0.2)
@example(86_400.0)
def test_a_time_comes_back_from_its_written_form(seconds):
    assert read_duration(write_duration(seconds)) == seconds


@given(st.integers(SMALLEST_MEMORY, LARGEST_MEMORY))
@example(SMALLEST_MEMORY)
@example(10**9)
def test_a_size_comes_back_from_its_written_form(size):
    assert read_memory(write_memory(size)) == size


@pytest.mark.parametrize(
    ("seconds", "written"), [(90, "90s"), (300, "5m"), (9000, "150m"), (7200, "2h"), (0.5, "500ms"), (0, 0)]
)
def test_times_are_written_short(seconds, written):
    assert write_duration(seconds) == written


@pytest.mark.parametrize(
    ("size", "written"), [(2**31, "2GiB"), (10**9, "1GB"), (1536 * 2**20, "1536MiB"), (1_048_577, 1_048_577)]
)
def test_sizes_are_written_short(size, written):
    assert write_memory(size) == written
