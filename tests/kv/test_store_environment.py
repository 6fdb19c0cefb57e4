"""Addresses, the variables of Consul's tools, durations, keys; and how little importing the client costs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import yurt
from yurt.errors import UsageError
from yurt.kv import Store
from yurt.kv.durations import duration_text, parse_duration_s
from yurt.kv.environment import parse_address, settings_from_environment
from yurt.kv.paths import quote, unquote

ADDRESSES = {
    "http://127.0.0.1:8500": (False, "127.0.0.1", 8500),
    "https://consul.example:8501/": (True, "consul.example", 8501),
    "http://consul": (False, "consul", 80),
    "https://consul": (True, "consul", 443),
    "http://[::1]:8500": (False, "::1", 8500),
    "http://[::1]": (False, "::1", 80),
}


@pytest.mark.parametrize("address", ADDRESSES)
def test_addresses(address):
    assert parse_address(address) == ADDRESSES[address]


@pytest.mark.parametrize(
    "address",
    ["", "127.0.0.1:8500", "ftp://a:1", "http://", "http://a:b", "http://a:0", "http://a:70000", "http://a/b",
     "http://u@a", "http://[::1", "http://::1", "http://a b", "http://ä", "http://a:1\r\nX: y"],
)  # fmt: skip
def test_what_is_no_address(address):
    with pytest.raises(UsageError):
        Store(address)


def test_a_unix_socket_is_refused_in_one_sentence():
    with pytest.raises(UsageError, match="does not speak to Consul over a Unix socket") as caught:
        Store.from_environment({"CONSUL_HTTP_ADDR": "unix:///var/run/consul.sock"})
    assert "\n" not in str(caught.value)
    assert "http://127.0.0.1:8500" in caught.value.hint


VARIABLES = [
    ({}, "http://127.0.0.1:8500"),
    ({"CONSUL_HTTP_ADDR": ""}, "http://127.0.0.1:8500"),
    ({"CONSUL_HTTP_ADDR": "consul:8500"}, "http://consul:8500"),
    ({"CONSUL_HTTP_ADDR": "https://consul:8501"}, "https://consul:8501"),
    ({"CONSUL_HTTP_ADDR": "consul:8501", "CONSUL_HTTP_SSL": "true"}, "https://consul:8501"),
    ({"CONSUL_HTTP_ADDR": "http://consul:8501", "CONSUL_HTTP_SSL": "1"}, "https://consul:8501"),
    ({"CONSUL_HTTP_ADDR": "http://consul:8501", "CONSUL_HTTP_SSL": "false"}, "http://consul:8501"),
]


@pytest.mark.parametrize(("environ", "address"), VARIABLES)
def test_the_address_of_the_environment(environ, address):
    assert settings_from_environment(environ).address == address
    assert Store.from_environment(environ).address == address


def test_the_token_file_wins(tmp_path):
    (tmp_path / "token").write_text("from-file\n")
    environ = {"CONSUL_HTTP_TOKEN": "plain"}
    assert settings_from_environment(environ).token == "plain"
    environ["CONSUL_HTTP_TOKEN_FILE"] = str(tmp_path / "token")
    assert settings_from_environment(environ).token == "from-file"
    environ["CONSUL_HTTP_TOKEN_FILE"] = str(tmp_path / "none")
    with pytest.raises(UsageError, match=r"CONSUL_HTTP_TOKEN_FILE: .*none cannot be read: No such file"):
        settings_from_environment(environ)


def test_the_tls_variables():
    environ = {
        "CONSUL_CACERT": "ca.pem",
        "CONSUL_CAPATH": "cas",
        "CONSUL_CLIENT_CERT": "cert.pem",
        "CONSUL_CLIENT_KEY": "key.pem",
        "CONSUL_HTTP_SSL_VERIFY": "false",
        "CONSUL_TLS_SERVER_NAME": "server.dc1.consul",
    }
    found = settings_from_environment(environ).tls_params
    assert (found.ca_file, found.ca_path, found.cert_file, found.key_file) == ("ca.pem", "cas", "cert.pem", "key.pem")
    assert (found.verify, found.server_name) == (False, "server.dc1.consul")
    with pytest.raises(UsageError, match="neither true nor false"):
        settings_from_environment({"CONSUL_HTTP_SSL": "maybe"})


def test_a_token_cannot_smuggle_a_header():
    for token in ("a\r\nX: y", "ä"):
        with pytest.raises(ValueError, match="printable"):
            Store("http://127.0.0.1:8500", token)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("0", 0), ("5s", 5), ("1m30s", 90), ("250ms", 0.25), ("1.5h", 5400), (".5s", 0.5), ("10us", 1e-5), ("15m0s", 900)],
)
def test_durations(text, seconds):
    assert parse_duration_s(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "5", "s", "5x", "5s ", "-5s", "5 s", "1m30", "٣s"])
def test_what_is_no_duration(text):
    with pytest.raises(ValueError, match="not a duration"):
        parse_duration_s(text)


@given(st.integers(0, 10**8))
def test_a_duration_comes_back(thousandths):
    assert parse_duration_s(duration_text(thousandths / 1000)) == pytest.approx(thousandths / 1000)


@given(st.text())
def test_a_quoted_name_comes_back(name):
    try:
        name.encode()
    except UnicodeEncodeError:
        return
    assert unquote(quote(name)) == name
    assert quote(name).isascii()


CHECK = """
import sys
sys.path.insert(0, sys.argv[1])
def rss_bytes():
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmRSS")) * 1024
before = rss_bytes()
from yurt.kv.client import Store
store = Store("http://127.0.0.1:1")
try:
    store.get("a")
except Exception as error:
    assert type(error).__name__ == "StoreRefused", error
print(rss_bytes(), rss_bytes() - before, *sorted(sys.modules))
"""


def test_the_client_alone_is_light():
    """Measured with Python 3.11: 8.5 MB of interpreter and 5.6 of modules, half of those dataclasses and typing."""
    source = str(Path(yurt.__file__).parents[1])
    done = subprocess.run([sys.executable, "-I", "-S", "-c", CHECK, source], capture_output=True, text=True, check=True)
    total, added, *modules = done.stdout.split()
    unwanted = {"ssl", "http.client", "email", "asyncio", "hashlib", "random", "urllib.parse"}
    unwanted |= {
        f"yurt.kv.{name}" for name in ("server", "loop", "peer", "state", "table", "routes", "forms", "messages")
    }
    assert unwanted.isdisjoint(modules)
    if sys.platform == "linux":
        assert int(added) < 8_000_000, f"{added} of {total}"
