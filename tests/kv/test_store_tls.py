"""TLS towards a scripted store with a certificate of its own."""

from __future__ import annotations

import shutil
import ssl
import subprocess
import threading
import time

import pytest

from tests.kv.scripted_store import reply
from yurt.errors import UsageError
from yurt.kv import Store, StoreUnreachable, TlsParams, errors


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    if shutil.which("openssl") is None:
        pytest.skip("no openssl on PATH")
    folder = tmp_path_factory.mktemp("tls")
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
         "-keyout", "key.pem", "-out", "cert.pem", "-days", "2", "-subj", "/CN=server.dc1.consul",
         "-addext", "subjectAltName=DNS:server.dc1.consul"],
        cwd=folder, check=True, capture_output=True,
    )  # fmt: skip
    return folder


@pytest.fixture
def wrap(certificate):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate / "cert.pem", certificate / "key.pem")
    return lambda sock: context.wrap_socket(sock, server_side=True)


def test_tls_with_an_authority_and_a_server_name(scripted, certificate, wrap):
    params = TlsParams(ca_file=str(certificate / "cert.pem"), server_name="server.dc1.consul")
    _, store = scripted([reply(), reply()], wrap=wrap, tls_params=params)
    assert store.put("a", b"1")
    assert store.put("a", b"1", cas=1)


def test_tls_without_verification(scripted, wrap):
    _, store = scripted([reply()], wrap=wrap, tls_params=TlsParams(verify=False))
    assert store.put("a", b"1")


def test_tls_that_cannot_be_trusted(scripted, certificate, wrap):
    _, store = scripted([reply()], wrap=wrap)
    with pytest.raises(StoreUnreachable, match="certificate"):
        store.put("a", b"1")
    _, store = scripted([reply()], wrap=wrap, tls_params=TlsParams(ca_file=str(certificate / "cert.pem")))
    with pytest.raises(StoreUnreachable, match=r"(?i)certificate|mismatch"):
        store.put("a", b"1")


def test_a_call_over_tls_can_be_closed_from_another_thread(scripted, wrap):
    _, store = scripted([reply(), b""], wrap=wrap, tls_params=TlsParams(verify=False))
    store.put("a", b"1")
    threading.Timer(0.1, store.close).start()
    start = time.monotonic()
    with pytest.raises(errors.StoreClosed):
        store.get("a")
    assert time.monotonic() - start < 1


def test_certificates_that_are_none(tmp_path):
    for params in (TlsParams(ca_file="/no/such"), TlsParams(cert_file=str(tmp_path))):
        with pytest.raises(UsageError, match="certificates"):
            Store("https://127.0.0.1:8501", tls_params=params)
