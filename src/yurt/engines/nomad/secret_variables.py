"""Environment variables whose values are fetched on the node, from Vault or Nomad's variables. Pure.

Nomad renders a template into the task's secrets folder (a tmpfs, readable by the task alone) and reads it as an
environment file; the job holds the path and the key, never the value.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from yurt.engines.nomad.options import NomadOptions, Secret

PATH: Final = "secrets/variables.env"


def templates(secrets: Mapping[str, Secret]) -> list[dict[str, Any]]:
    """The template block, or none. A value that changes later restarts nothing: a training would be lost by it."""
    if not secrets:
        return []
    lines = [_line(name, secret) for name, secret in sorted(secrets.items())]
    return [
        {
            "EmbeddedTmpl": "".join(f"{line}\n" for line in lines),
            "DestPath": PATH,
            "Perms": "0400",
            "Envvars": True,
            "ChangeMode": "noop",
        }
    ]


def vault(options: NomadOptions) -> dict[str, Any] | None:
    """The task's Vault block, None where no secret comes from there. The task does not get the Vault token itself."""
    if not any(secret.vault for secret in options.secrets.values()):
        return None
    block: dict[str, Any] = {"Policies": list(options.vault.policies), "Env": False, "ChangeMode": "noop"}
    if options.vault.role:
        block["Role"] = options.vault.role
    if options.vault.namespace:
        block["Namespace"] = options.vault.namespace
    return block


def _line(name: str, secret: Secret) -> str:
    """``NAME="value"``, the value in JSON's quotes, which the file takes; nothing where there is no value."""
    key = json.dumps(secret.key)
    if secret.variable is not None:
        found = f"{{{{ with (index . {key}).Value }}}}{name}={{{{ . | toJSON }}}}{{{{ end }}}}"
        return f"{{{{ with nomadVar {json.dumps(secret.variable)} }}}}{found}{{{{ end }}}}"
    # version 2 of Vault's key-value store has its data one level deeper than version 1
    two = f"{{{{ with index . {key} }}}}{name}={{{{ . | toJSON }}}}{{{{ end }}}}"
    one = f"{{{{ with index .Data {key} }}}}{name}={{{{ . | toJSON }}}}{{{{ end }}}}"
    found = f"{{{{ with .Data.data }}}}{two}{{{{ else }}}}{one}{{{{ end }}}}"
    return f"{{{{ with secret {json.dumps(secret.vault)} }}}}{found}{{{{ end }}}}"
