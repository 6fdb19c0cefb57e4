"""The JSON Schema of a job file, for editors: from the same models that read the file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from yurt.job.kinds import RoleName
from yurt.job.names import MOST_REPLICAS
from yurt.job.units import write_duration

if TYPE_CHECKING:
    from pydantic import BaseModel, GetJsonSchemaHandler
    from pydantic.json_schema import JsonSchemaValue
    from pydantic_core import CoreSchema

NO_ENGINES: Mapping[str, type[BaseModel]] = MappingProxyType({})
_DIALECT = "https://json-schema.org/draft/2020-12/schema"


class RolesSchema:
    """Tells editors the four roles by name, and that each is a count or a mapping."""

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        role = handler(core)["additionalProperties"]
        properties = {}
        for name in RoleName:
            most = 1 if name in (RoleName.CHIEF, RoleName.EVALUATOR) else MOST_REPLICAS
            count = {"type": "integer", "minimum": 0, "maximum": most}
            properties[str(name)] = {"anyOf": [count, role]}
        return {"type": "object", "properties": properties, "additionalProperties": False}


def without_default(schema: dict[str, Any]) -> None:
    """Leave out a default that depends on other fields."""
    schema.pop("default", None)


def job_schema(engine_options: Mapping[str, type[BaseModel]] = NO_ENGINES) -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of a job file, with the options of the engines that are given.

    Args:
        engine_options: the pydantic model of each engine's options, by the engine's name. Without
            any, every engine name is taken with any options.
    """
    from pydantic.json_schema import models_json_schema

    from yurt.job.model import Job

    models: list[tuple[type[BaseModel], Any]] = [(Job, "validation")]
    models += [(model, "validation") for model in engine_options.values()]
    refs, together = models_json_schema(models, by_alias=True)
    definitions = together["$defs"]
    definitions.pop("RoleName", None)  # the roles are listed as properties
    job = definitions.pop(refs[Job, "validation"]["$ref"].rpartition("/")[2])
    if engine_options:
        job["properties"]["engines"] |= {
            "properties": {name: refs[model, "validation"] for name, model in engine_options.items()},
            "additionalProperties": False,
        }
    return {"$schema": _DIALECT, **job, "$defs": definitions}


def described(description: str) -> Callable[[dict[str, Any]], None]:
    """What an editor shows of a model, instead of the docstring for programmers."""

    def change(schema: dict[str, Any]) -> None:
        schema["description"] = description
        for field in schema["properties"].values():
            _tidy(field)

    return change


def _tidy(field: dict[str, Any]) -> None:
    """Leave out a default that says nothing, and write the others as a file has them."""
    field.pop("title", None)
    default = field.pop("default", None)
    if isinstance(default, float):
        field["default"] = write_duration(default)
    elif default is not None:
        field["default"] = default
