"""The options of each engine, kept in one place each and validated by the engine's own model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pydantic_core import ValidationError

from yurt.job.findings import Finding, Loc, did_you_mean, findings_of, raise_findings
from yurt.job.names import unknown_key
from yurt.job.written import bare, found, plain, yaml_reads

if TYPE_CHECKING:
    from pydantic import BaseModel
    from pydantic_core import ErrorDetails

_DEEPEST = 20

_WANTED = {
    "bool": "true or false",
    "int": "a whole number",
    "float": "a number",
    "string": "text",
    "list": "a list",
    "tuple": "a list",
    "set": "a list",
    "dict": "a mapping",
    "mapping": "a mapping",
    "model": "a mapping",
    "model_attributes": "a mapping",
}


def read_engines(raw: Any, options: Mapping[str, type[BaseModel]]) -> dict[str, dict[str, Any]]:
    """The options by engine: what was given, after the engine's model has read it.

    Defaults are left to the model, which reads the options again where they are used. Raises all
    mistakes of all engines at once.
    """
    findings: list[Finding] = []
    engines: dict[str, dict[str, Any]] = {}
    if not isinstance(raw, Mapping):
        message = f"must be a mapping such as {{docker: {{network: host}}}}, not {found(raw)}"
        raise_findings([Finding((), message)])
    for key, given in raw.items():
        name = str(key)
        if options and name not in options:
            hint = did_you_mean(name, options) or f"the engines are {', '.join(sorted(options))}"
            findings.append(Finding((name,), "is not an engine", hint))
        elif not isinstance(given, Mapping):
            findings.append(Finding((name,), f"must be a mapping of options, not {found(given)}"))
        elif (bad := _not_data(given, (name,))) is not None:
            findings.append(bad)
        elif name in options:
            engines[name] = _by_model(name, given, options[name], findings)
        else:
            engines[name] = plain(given)
    if findings:
        raise_findings(findings)
    return engines


def _not_data(raw: Any, at: Loc) -> Finding | None:
    """What keeps a value from being plain data, as JSON has it."""
    value = bare(raw)
    if len(at) > _DEEPEST:
        return Finding(at[:3], "is nested too deeply")
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):  # noqa: PLR0124
        return Finding(at, f"must be a finite number, not {found(raw)}")
    if value is None or isinstance(value, bool | int | float | str):
        return None
    if isinstance(value, Mapping):
        for key, item in value.items():
            if not isinstance(key, str):
                return Finding(at, f"must have text for keys, not {found(key)}")
            if bad := _not_data(item, (*at, key)):
                return bad
        return None
    if isinstance(value, list | tuple):
        return next((bad for i, item in enumerate(value) if (bad := _not_data(item, (*at, i)))), None)
    return Finding(at, f"must be plain data, not {found(raw)}")


def _by_model(name: str, given: Mapping[str, Any], model: type[BaseModel], findings: list[Finding]) -> dict[str, Any]:
    known = _keys(model)
    unknown = [key for key in given if key not in known] if model.model_config.get("extra") != "allow" else []
    findings += [Finding((name, key), *unknown_key(key, sorted(known))) for key in unknown]
    try:
        value = model.model_validate({key: plain(item) for key, item in given.items() if key not in unknown})
    except ValidationError as error:
        own = iter(findings_of(error))
        findings += [_finding(name, given, model, one, next(own)) for one in error.errors(include_url=False)]
        return {}
    dumped: dict[str, Any] = value.model_dump(mode="json", by_alias=True, exclude_unset=True)
    return dumped


def _keys(model: type[BaseModel]) -> set[str]:
    """The keys that a model reads in a file."""
    keys = {info.alias or name for name, info in model.model_fields.items()}
    if model.model_config.get("populate_by_name"):
        keys |= set(model.model_fields)
    return keys


def _finding(name: str, given: Mapping[str, Any], model: type[BaseModel], error: ErrorDetails, own: Finding) -> Finding:
    """One error of an engine's model in plain words, at the deepest part that was written."""
    kind = error["type"]
    context = error.get("ctx", {})
    if kind == "missing":
        return Finding((name, *own.at), "is missing")
    at, raw = _written_at(given, own.at)
    at = (name, *at)
    if kind == "job":
        return Finding(at, own.message, own.hint)
    if kind == "extra_forbidden":
        return Finding(at, *unknown_key(str(at[-1]), sorted(_keys(_model_at(model, own.at[:-1])))))
    wanted = _WANTED.get(kind.rpartition("_")[0]) or _WANTED.get(kind.partition("_")[0])
    if kind in ("literal_error", "enum"):
        wanted = f"one of {context.get('expected', '')}".replace("'", "").replace(" or ", ", ")
    if wanted:
        clause = yaml_reads(raw)
        hint = f'quote it: "{raw.text}"' if clause and wanted == "text" else None
        return Finding(at, f"must be {wanted}, " + (f"but {clause}" if clause else f"not {found(raw)}"), hint)
    message = own.message.removeprefix("value error, ").removeprefix("assertion failed, ")
    message = message.replace("input should be", "must be")
    return Finding(at, message if found(raw) in message else f"{message} (found {found(raw)})")


def _written_at(given: Any, at: Loc) -> tuple[Loc, Any]:
    """The part of the path that was written, and what stands there: pydantic adds names of its own."""
    real: Loc = ()
    for part in at:
        if isinstance(given, Mapping) and part in given:
            given = given[str(part)]
        elif isinstance(given, list | tuple) and isinstance(part, int) and part < len(given):
            given = given[part]
        else:
            continue
        real = (*real, part)
    return real, given


def _model_at(model: type[BaseModel], at: Loc) -> type[BaseModel]:
    """The model that reads the mapping at this path, as far as the annotations tell."""
    for part in at:
        for name, info in model.model_fields.items():
            inner = info.annotation
            if part in (name, info.alias) and isinstance(inner, type) and hasattr(inner, "model_fields"):
                model = inner
    return model
