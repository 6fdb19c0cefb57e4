"""The names of Nomad's two forms: what HCL calls a thing, the HTTP API may call otherwise (Nomad 1.0 to 1.10)."""

from __future__ import annotations

import re
from typing import Final

#: API name -> HCL name, where it is not simply the same words in the other spelling.
_RENAMED: Final = {
    "TaskGroups": "group",
    "Tasks": "task",
    "RestartPolicy": "restart",
    "ReschedulePolicy": "reschedule",
    "Networks": "network",
    "Services": "service",
    "Templates": "template",
    "Artifacts": "artifact",
    "Constraints": "constraint",
    "Affinities": "affinity",
    "Spreads": "spread",
    "ScalingPolicies": "scaling",
    "Reschedule": "reschedule",
    "SpreadTarget": "target",
    "Volumes": "volume",
    "VolumeMounts": "volume_mount",
    "LogConfig": "logs",
    "ParameterizedJob": "parameterized",
    "CSIPluginConfig": "csi_plugin",
    "Identities": "identity",
    "Schedule": "schedule",
    "MemoryMB": "memory",
    "MemoryMaxMB": "memory_max",
    "DiskMB": "disk",
    "SizeMB": "size",
    "MaxFileSizeMB": "max_file_size",
    "Devices": "device",
    "Checks": "check",
    "EmbeddedTmpl": "data",
    "SourcePath": "source",
    "DestPath": "destination",
    "Envvars": "env",
    "LeftDelim": "left_delimiter",
    "RightDelim": "right_delimiter",
    "LTarget": "attribute",
    "RTarget": "value",
    "Operand": "operator",
    "GetterSource": "source",
    "GetterOptions": "options",
    "GetterHeaders": "headers",
    "GetterMode": "mode",
    "RelativeDest": "destination",
    "MBits": "mbits",
    "PortLabel": "port",
    "ReservedPorts": "reserved_port",
    "DynamicPorts": "port",
    "UI": "ui",
}

#: Blocks of which there may be several; each keeps its label, if it has one, as `name`.
REPEATED: Final = frozenset(
    {
        "group", "task", "network", "service", "template", "artifact", "constraint", "affinity", "spread", "target",
        "volume", "volume_mount", "device", "port", "check", "identity", "mount", "secret", "action", "scaling",
    }
)  # fmt: skip

#: Blocks and values whose keys are the user's own words.
FREE: Final = frozenset({"env", "meta", "config", "options", "headers", "canary_meta", "sysctl"})

_BORDER = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def hcl_name(name: str) -> str:
    """HCL's name for a name of the API: ``KillTimeout`` -> ``kill_timeout``."""
    return _RENAMED.get(name) or _BORDER.sub("_", name).lower()
