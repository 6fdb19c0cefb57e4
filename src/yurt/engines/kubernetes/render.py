"""A run as the objects that Kubernetes is asked to make, its owner first. Pure."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from yurt.contract.spec import RunSpec
from yurt.engines.base import Place
from yurt.engines.kubernetes import jobs, labels, names
from yurt.engines.kubernetes import order as orders
from yurt.engines.kubernetes.ground import Ground
from yurt.engines.kubernetes.keeper_job import account_of, keeper_job
from yurt.engines.kubernetes.notes import notes
from yurt.engines.kubernetes.options import TFJOB, KubernetesOptions
from yurt.engines.kubernetes.pod_template import VOLCANO
from yurt.engines.kubernetes.roles import way_of
from yurt.engines.kubernetes.room import PIECE_BYTES
from yurt.engines.kubernetes.tfjob import tfjob

#: Stands in the rendered objects where `with_payload` puts the packed files: a person reads the rest.
PAYLOAD: Final = "<payload>"
_PIECE_LETTERS: Final = PIECE_BYTES * 4 // 3
_START: Final = Path(__file__).parent / "pod" / "start.py"


def render(run: RunSpec, place: Place, options: KubernetesOptions, ground: Ground) -> dict[str, Any]:
    """``{"run", "namespace", "way", "objects": [...], "agent", "files", "notes"}``.

    `objects` is what the API server is sent, in this order, but for the packed files (`with_payload`) and their owner
    (`owned`); `agent` and `files` are the zipapp and the folder that are packed. `checks.problems` comes first: this
    takes the options for good.
    """
    way = way_of(options, ground)
    namespace = options.namespace or ground.namespace
    operated = tfjob(run, options) if way == TFJOB else None
    order = orders.order(
        run,
        place,
        options,
        namespace=namespace,
        tfjob=operated,
        cleans=account_of(options, ground) is not None,
    )
    objects = [
        keeper_job(run, options, ground, way),
        _secret(run, order),
        _code(run, 0, PAYLOAD),
        _service(run),
    ]
    if operated is not None:
        objects.append(operated)
    else:
        objects += [jobs.pod_group(run, options)] if options.scheduling.by == VOLCANO else []
        objects += jobs.jobs(run, options)
    return {
        "run": run.run_id,
        "namespace": namespace,
        "way": way,
        "objects": objects,
        "agent": str(place.agent),
        "files": str(place.folder / "files"),
        "notes": notes(run, options, ground),
    }


def with_payload(objects: Sequence[Mapping[str, Any]], base64_text: str) -> list[dict[str, Any]]:
    """The objects with the packed files in them, in as many config maps as they take."""
    found: list[dict[str, Any]] = []
    pieces = [base64_text[at : at + _PIECE_LETTERS] for at in range(0, len(base64_text), _PIECE_LETTERS)]
    for each in objects:
        if each["kind"] != "ConfigMap":
            found.append(copy.deepcopy(dict(each)))
            continue
        run_id = each["metadata"]["labels"][labels.RUN]
        first = copy.deepcopy(dict(each))
        first["binaryData"] = _piece(0, pieces[0])
        found.append(first)
        found += [_config_map(run_id, piece, _piece(piece, text)) for piece, text in enumerate(pieces) if piece]
    return found


def owned(objects: Sequence[Mapping[str, Any]], uid: str) -> list[dict[str, Any]]:
    """The objects other than the owner, whose `uid` is known now: they go when it goes.

    Also the TFJob in the order, which the keeper may submit again.
    """
    found = [copy.deepcopy(dict(each)) for each in objects]
    for each in found:
        run_id = each["metadata"]["labels"][labels.RUN]
        if each["metadata"]["name"] == names.keeper(run_id):
            continue
        each["metadata"]["ownerReferences"] = _references(run_id, uid)
        if each["kind"] == "Secret":
            order = json.loads(each["stringData"][names.ORDER_KEY])
            if order["keeper"]["tfjob"] is not None:
                order["keeper"]["tfjob"]["metadata"]["ownerReferences"] = _references(run_id, uid)
                each["stringData"][names.ORDER_KEY] = orders.text(order)
    return found


def _references(run_id: str, uid: str) -> list[dict[str, Any]]:
    # Neither controller nor blocking: both would need rights towards the owner that nobody else needs.
    return [{"apiVersion": "batch/v1", "kind": "Job", "name": names.keeper(run_id), "uid": uid}]


def _secret(run: RunSpec, order: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": names.order(run.run_id), "labels": labels.of_object(run.run_id, "order")},
        "type": "Opaque",
        "stringData": {names.ORDER_KEY: orders.text(order)},
    }


def _code(run: RunSpec, piece: int, text: str) -> dict[str, Any]:
    found = _config_map(run.run_id, piece, _piece(piece, text))
    found["data"] = {"start.py": _START.read_text(encoding="utf-8")}
    return found


def _config_map(run_id: str, piece: int, binary: Mapping[str, str]) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": names.code(run_id, piece), "labels": labels.of_object(run_id, "code")},
        "binaryData": binary,
    }


def _piece(piece: int, text: str) -> dict[str, str]:
    return {f"payload.{piece}": text}


def _service(run: RunSpec) -> dict[str, Any]:
    """Gives each pod a name before it is ready: peers are looked for while others still start."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": names.service(run.run_id), "labels": labels.of_object(run.run_id, "service")},
        "spec": {
            "clusterIP": "None",
            "publishNotReadyAddresses": True,
            "selector": {labels.RUN: run.run_id},
            "ports": [{"name": names.STORE_PORT_NAME, "port": names.STORE_PORT}],
        },
    }
