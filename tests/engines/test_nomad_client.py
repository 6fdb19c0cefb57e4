"""What goes wrong between Yurt and Nomad: refusals named by the right that is missing, elections waited out."""

from __future__ import annotations

import pytest

from tests.kv.scripted_store import Scripted, reply
from yurt.engines.nomad.address import NomadError, from_environment
from yurt.engines.nomad.client import NomadClient
from yurt.errors import EngineError, UsageError


@pytest.fixture
def answering():
    """A client of a Nomad that gives these answers, each connection a list of them."""
    made = []

    def make(*connections, **environment):
        server = Scripted(*connections)
        made.append(server)
        return NomadClient(from_environment({"NOMAD_ADDR": server.address, **environment})), server

    yield make
    for server in made:
        server.close()


def test_a_refusal_names_the_right_that_the_call_needs(answering):
    client, _ = answering([reply(b"Permission denied", 403)])
    with pytest.raises(NomadError, match="without a token one lacks `submit-job`") as caught:
        client.register({"ID": "a"})
    assert "NOMAD_TOKEN" in caught.value.hint
    client, server = answering([reply(b"Permission denied", 500)], NOMAD_TOKEN="secret", NOMAD_NAMESPACE="ml")
    with pytest.raises(NomadError, match="the token of NOMAD_TOKEN lacks `read-fs`"):
        client.list_files("1", "alloc/logs")
    assert b"X-Nomad-Token: secret" in server.requests[0]
    assert b"namespace=ml" in server.requests[0]
    client, _ = answering([reply(b"ACL token not found", 403)], NOMAD_TOKEN="old")
    with pytest.raises(NomadError, match="does not know the token"):
        client.nodes()


def test_an_election_is_waited_out(answering):
    client, server = answering([reply(b"rpc error: EOF", 500), reply(b"No cluster leader", 500), reply(b"[]")])
    assert client.nodes() == []
    assert len(server.requests) == 3


def test_a_broken_connection_is_made_again_but_a_job_is_sent_once(answering):
    client, _ = answering([reply(b"[]"), None], [reply(b"[]")])
    assert client.nodes() == client.nodes() == []
    client, server = answering([None], [reply(b'{"EvalID": "1"}')])
    with pytest.raises(EngineError, match="cannot be spoken to"):
        client.register({"ID": "a"})
    assert len(server.requests) == 1


def test_what_is_not_there_is_no_error(answering):
    client, _ = answering([reply(b"job not found", 404)] * 2 + [reply(b"no such file", 400), reply(b"No path", 404)])
    assert client.job("a/b c") is None
    client.deregister("a")
    assert client.read_file("1", "x", 0) is None
    assert client.list_files("1", "x") is None


def test_a_refused_job_is_told_in_nomads_words(answering):
    client, _ = answering([reply(b"1 error occurred: * Missing job datacenters", 500)])
    with pytest.raises(NomadError, match=r"POST /v1/jobs with 500: 1 error occurred: \* Missing job datacenters"):
        client.register({"ID": "a"})


def test_nobody_there_and_the_wrong_scheme():
    with pytest.raises(EngineError, match="nobody listens at http:") as caught:
        NomadClient(from_environment({"NOMAD_ADDR": "http://127.0.0.1:1"})).nodes()
    assert "yurt cluster dev" in caught.value.hint
    with pytest.raises(UsageError, match="certificates for Nomad cannot be used"):
        NomadClient(from_environment({"NOMAD_ADDR": "https://127.0.0.1:1", "NOMAD_CACERT": "/nowhere.pem"}))


def test_plain_http_where_https_is_asked_for(answering):
    server = Scripted([b"HTTP/1.1 400 Bad Request\r\n\r\n", None])
    address = server.address.replace("http://", "https://")
    with pytest.raises(EngineError, match=r"speaks no https|no TLS"):
        NomadClient(from_environment({"NOMAD_ADDR": address})).nodes()
    server.close()
