"""An authority of a test's own and certificates by it, made with openssl."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest


@dataclass(frozen=True)
class Certificate:
    """PEM files."""

    cert: Path
    key: Path


class Authority:
    """Skips, by name, where there is no openssl."""

    def __init__(self, folder: Path) -> None:
        if shutil.which("openssl") is None:
            pytest.skip("no openssl on PATH")
        self._folder = folder
        self.file = folder / "ca.pem"
        self._openssl(
            *(
                "req",
                "-x509",
                *_KEY,
                "-keyout",
                "ca-key.pem",
                "-out",
                "ca.pem",
                "-days",
                "2",
                "-subj",
                "/CN=yurt tests",
            ),
            *("-addext", "basicConstraints=critical,CA:TRUE", "-addext", "keyUsage=critical,keyCertSign"),
        )

    def certificate(self, name: str, *alternatives: str) -> Certificate:
        """For a server and a client; `alternatives` as ``DNS:localhost``."""
        made = Certificate(self._folder / f"{name}.pem", self._folder / f"{name}-key.pem")
        names = ",".join(alternatives or (f"DNS:{name}",))
        extensions = self._folder / f"{name}.ext"
        extensions.write_text(f"subjectAltName={names}\nextendedKeyUsage=serverAuth,clientAuth\n")
        self._openssl("req", *_KEY, "-keyout", made.key.name, "-out", f"{name}.csr", "-subj", f"/CN={name}")
        self._openssl(
            *("x509", "-req", "-in", f"{name}.csr", "-CA", "ca.pem", "-CAkey", "ca-key.pem", "-CAcreateserial"),
            *("-days", "2", "-out", made.cert.name, "-extfile", extensions.name),
        )
        return made

    def _openssl(self, *arguments: str) -> None:
        subprocess.run(["openssl", *arguments], cwd=self._folder, check=True, capture_output=True)


_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
