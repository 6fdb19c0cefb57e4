"""The cluster's own authority, the certificates that it signs, and the kubeconfig that carries them."""

from __future__ import annotations

import base64
import json
import subprocess
from pathlib import Path

from tests.support.kubernetes import addresses


def make(pki: Path, kubeconfig: Path, api: str) -> None:
    """All that the control plane reads, for an API server at the address `api`. Valid for 30 days."""
    pki.mkdir(parents=True)
    _openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "30", "-subj", "/CN=yurt-test",
             "-keyout", pki / "ca.key", "-out", pki / "ca.crt")  # fmt: skip
    names = ["localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"]
    numbers = ["127.0.0.1", addresses.API_SERVICE, addresses.GATEWAY, api]
    _sign(
        pki,
        "apiserver",
        "/CN=kube-apiserver",
        [*(f"DNS:{each}" for each in names), *(f"IP:{each}" for each in numbers)],
    )
    _sign(pki, "admin", "/O=system:masters/CN=admin", ["DNS:admin"])
    _openssl("genrsa", "-out", pki / "service-accounts.key", "2048")
    user = {"client-certificate-data": _text(pki / "admin.crt"), "client-key-data": _text(pki / "admin.key")}
    cluster = {"server": f"https://{api}:6443", "certificate-authority-data": _text(pki / "ca.crt")}
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "yurt-test", "cluster": cluster}],
        "users": [{"name": "admin", "user": user}],
        "contexts": [{"name": "yurt-test", "context": {"cluster": "yurt-test", "user": "admin"}}],
        "current-context": "yurt-test",
    }
    kubeconfig.write_text(json.dumps(content, indent=1))
    kubeconfig.chmod(0o600)


def _sign(pki: Path, name: str, subject: str, names: list[str]) -> None:
    extension = pki / f"{name}.ext"
    extension.write_text(f"subjectAltName={','.join(names)}\n")
    _openssl("req", "-newkey", "rsa:2048", "-nodes", "-subj", subject,
             "-keyout", pki / f"{name}.key", "-out", pki / f"{name}.csr")  # fmt: skip
    _openssl("x509", "-req", "-in", pki / f"{name}.csr", "-CA", pki / "ca.crt", "-CAkey", pki / "ca.key",
             "-CAcreateserial", "-days", "30", "-extfile", extension, "-out", pki / f"{name}.crt")  # fmt: skip


def _openssl(*words: str | Path) -> None:
    done = subprocess.run(["openssl", *map(str, words)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def _text(file: Path) -> str:
    return base64.b64encode(file.read_bytes()).decode()
