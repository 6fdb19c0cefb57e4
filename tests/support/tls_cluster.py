"""A real Nomad and a real Consul that speak TLS alone, and only to those who have a certificate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tests.support.certificates import Authority, Certificate
from yurt.cluster.dev import DevCluster
from yurt.engines.nomad.address import from_environment
from yurt.engines.nomad.client import NomadClient
from yurt.kv import Store


@dataclass
class TlsCluster(DevCluster):
    """The servers' certificates have names, not their address; `own` is that of whoever asks."""

    authority: Authority | None = None
    own: Certificate | None = None

    def __post_init__(self) -> None:
        assert self.authority
        self._nomad_s = self.authority.certificate(
            "nomad", "DNS:server.global.nomad", "DNS:client.global.nomad", "DNS:localhost"
        )
        self._consul_s = self.authority.certificate("server.dc1.consul")

    @property
    def environment(self) -> Mapping[str, str]:
        """For all of Yurt's verbs."""
        assert self.authority
        assert self.own
        ca, cert, key = map(str, (self.authority.file, self.own.cert, self.own.key))
        return {
            "NOMAD_ADDR": self.nomad.replace("http:", "https:"),
            "NOMAD_CACERT": ca,
            "NOMAD_CLIENT_CERT": cert,
            "NOMAD_CLIENT_KEY": key,
            "NOMAD_TLS_SERVER_NAME": "server.global.nomad",
            "CONSUL_HTTP_ADDR": self.consul.removeprefix("http://"),
            "CONSUL_HTTP_SSL": "true",
            "CONSUL_CACERT": ca,
            "CONSUL_CLIENT_CERT": cert,
            "CONSUL_CLIENT_KEY": key,
            "CONSUL_TLS_SERVER_NAME": "server.dc1.consul",
        }

    def _ask(self) -> NomadClient:
        return NomadClient(from_environment(self.environment))

    def _consul_up(self) -> bool:
        with Store.from_environment(self.environment, timeout_s=2) as store:
            return bool(store.leader())

    def _consul_command(self, http: int, server: int, lan: int, wan: int) -> list[str]:
        swap = {f"-http-port={http}": "-http-port=-1", "-https-port=-1": f"-https-port={http}"}
        plain = [swap.get(word, word) for word in super()._consul_command(http, server, lan, wan)]
        files = {"ca_file": self._ca, "cert_file": self._consul_s.cert, "key_file": self._consul_s.key}
        return [*plain, *(f'-hcl={name}="{path}"' for name, path in files.items()), "-hcl=verify_incoming_https=true"]

    @property
    def _ca(self) -> str:
        assert self.authority
        return str(self.authority.file)

    def _common(self, name: str, http: int, rpc: int, serf: int) -> dict[str, Any]:
        plain = super()._common(name, http, rpc, serf)
        assert self.own
        files = {"ca_file": self._ca, "cert_file": str(self._nomad_s.cert), "key_file": str(self._nomad_s.key)}
        own = {"ca_file": self._ca, "cert_file": str(self.own.cert), "key_file": str(self.own.key)}
        verified = {"verify_server_hostname": True, "verify_https_client": True}
        return {
            **plain,
            "tls": {"http": True, "rpc": True, **files, **verified},
            "consul": {**plain["consul"], "ssl": True, **own},
        }
