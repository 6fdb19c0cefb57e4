"""The types of the fields: how each is read, and what an editor is told about it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import AfterValidator, BeforeValidator, WithJsonSchema

from yurt.job import command, names, places, units
from yurt.job.findings import mistake
from yurt.job.frozen import FrozenDict
from yurt.job.kinds import KerasChoice, RestartPolicy, Strategy, SuccessRule, Tracker
from yurt.job.names import MOST_REPLICAS
from yurt.job.written import bare, found, read_whole_number, yaml_reads

if TYPE_CHECKING:
    from collections.abc import Callable
    from enum import StrEnum

_NUMBER_OR_TEXT = {"type": ["string", "number"]}


def optional(read: Callable[[Any], Any]) -> BeforeValidator:
    """A reader for a field that may also be left empty."""
    return BeforeValidator(lambda raw: None if bare(raw) is None else read(raw))


def _choice(choices: type[StrEnum], for_false: str | None = None) -> tuple[BeforeValidator, WithJsonSchema]:
    reader = BeforeValidator(lambda raw: names.read_choice(raw, choices, for_false=for_false))
    return reader, WithJsonSchema({"enum": [str(choice) for choice in choices]})


def _a_list(raw: Any, example: str) -> Any:
    value = bare(raw)
    if isinstance(value, list | tuple):
        return value
    if isinstance(value, str):
        raise mistake(f"must be a list, not {found(raw)}", f"write [{value}]" if len(value) < 40 else None)
    clause = yaml_reads(raw)
    raise mistake(f"must be a list such as {example}, " + (f"but {clause}" if clause else f"not {found(raw)}"))


def a_mapping(raw: Any, example: str) -> Any:
    """A mapping, passed on as it is. Raises a mistake with the example for anything else."""
    if isinstance(raw, Mapping):
        return raw
    raise mistake(f"must be a mapping such as {example}, not {found(raw)}")


def read_replicas(raw: Any) -> int:
    """How many tasks a role has, from 0 to 10,000. Raises a mistake for anything else."""
    count = read_whole_number(raw, wanted="a whole number of replicas")
    if count < 0:
        raise mistake(f"must be 0 or more, not {count}")
    if count > MOST_REPLICAS:
        raise mistake(f"must be at most {MOST_REPLICAS:,}, not {found(raw).removeprefix('the number ')}")
    return count


def _whole(raw: Any, wanted: str, most: int) -> int:
    count = read_whole_number(raw, wanted=wanted)
    if not 0 <= count <= most:
        raise mistake(f"must be from 0 to {most:,}, not {found(raw).removeprefix('the number ')}")
    return count


def _trackers(raw: Any) -> Any:
    """One tracker or a list of them, as a list; a list's words are read one by one."""
    value = bare(raw)
    if value is None or isinstance(value, list | tuple):
        return value or ()
    if isinstance(value, str) and "," in value:
        message = f"must be one of {', '.join(Tracker)}, or a list of them, not {found(raw)}"
        raise mistake(message, f"write [{value}]" if len(value) < 60 else None)
    return [names.read_choice(raw, Tracker)]


def _all_different(trackers: tuple[Tracker, ...]) -> tuple[Tracker, ...]:
    twice = next((tracker for tracker in trackers if trackers.count(tracker) > 1), None)
    if twice:
        raise mistake(f"names {twice} twice", "keep one of them")
    return trackers


def read_yes_no(raw: Any) -> bool:
    """True or false. Raises a mistake for anything else."""
    value = bare(raw)
    if not isinstance(value, bool):
        raise mistake(f"must be true or false, not {found(raw)}")
    return value


Name = Annotated[
    str,
    BeforeValidator(names.read_name),
    WithJsonSchema({"type": "string", "pattern": names.NAME_PATTERN, "maxLength": names.LONGEST_NAME}),
]
Command = Annotated[
    tuple[Annotated[str, BeforeValidator(command.read_word)], ...] | None,
    optional(command.read_command),
    AfterValidator(lambda words: None if words is None else command.finished(words)),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "string", "minLength": 1},
                {"type": "array", "items": _NUMBER_OR_TEXT, "minItems": 1},
                {"type": "null"},
            ]
        }
    ),
]
StrategyField = Annotated[Strategy, *_choice(Strategy, "none")]
RestartField = Annotated[RestartPolicy, *_choice(RestartPolicy, "never")]
SuccessField = Annotated[SuccessRule, *_choice(SuccessRule)]
KerasField = Annotated[
    KerasChoice,
    BeforeValidator(lambda raw: names.read_choice("off" if bare(raw) is False else raw, KerasChoice)),
    WithJsonSchema({"enum": [*map(str, KerasChoice), False]}),  # YAML reads a bare off as false
]
Track = Annotated[
    tuple[Annotated[Tracker, BeforeValidator(lambda raw: names.read_choice(raw, Tracker))], ...],
    BeforeValidator(_trackers),
    AfterValidator(_all_different),
    WithJsonSchema(
        {
            "anyOf": [
                {"enum": [*map(str, Tracker)]},
                {"type": "array", "items": {"enum": [*map(str, Tracker)]}, "uniqueItems": True},
                {"type": "null"},
            ]
        }
    ),
]
Replicas = Annotated[
    int,
    BeforeValidator(read_replicas),
    WithJsonSchema({"type": "integer", "minimum": 0, "maximum": MOST_REPLICAS}),
]
Cpus = Annotated[
    float | None,
    optional(units.read_cpus),
    WithJsonSchema({"type": ["number", "null"], "exclusiveMinimum": 0, "maximum": 100_000}),
]
Memory = Annotated[
    int | None,
    optional(units.read_memory),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "integer", "minimum": units.SMALLEST_MEMORY, "maximum": units.LARGEST_MEMORY},
                {"type": "string", "pattern": units.SIZE_PATTERN},
                {"type": "null"},
            ]
        }
    ),
]
Gpus = Annotated[
    int | None,
    optional(lambda raw: _whole(raw, "a whole number of GPUs", 1_000)),
    WithJsonSchema({"type": ["integer", "null"], "minimum": 0, "maximum": 1_000}),
]
YesNo = Annotated[bool, BeforeValidator(read_yes_no), WithJsonSchema({"type": "boolean"})]
Env = Annotated[
    Mapping[
        Annotated[str, BeforeValidator(names.read_env_name)],
        Annotated[str, BeforeValidator(names.read_env_value)],
    ],
    BeforeValidator(lambda raw: a_mapping(raw, "{TF_CPP_MIN_LOG_LEVEL: 2}")),
    AfterValidator(FrozenDict),
    WithJsonSchema(
        {
            "type": "object",
            "propertyNames": {"pattern": names.ENV_PATTERN, "not": {"pattern": "^(TF_CONFIG$|YURT_)"}},
            "additionalProperties": _NUMBER_OR_TEXT,
        }
    ),
]
Files = Annotated[
    tuple[Annotated[str, BeforeValidator(places.read_travelling)], ...],
    BeforeValidator(lambda raw: _a_list(raw, '[train.py, "*.csv"]')),
    WithJsonSchema({"type": "array", "items": {"type": "string", "minLength": 1}}),
]
Output = Annotated[
    str | None,
    optional(places.read_output),
    WithJsonSchema({"type": ["string", "null"], "minLength": 1}),
]
SavesTo = Annotated[
    str | None,
    optional(places.read_saves_to),
    WithJsonSchema({"type": ["string", "null"], "minLength": 1}),
]
Restarts = Annotated[
    int,
    BeforeValidator(lambda raw: _whole(raw, "a whole number of restarts", 1_000_000)),
    WithJsonSchema({"type": "integer", "minimum": 0, "maximum": 1_000_000}),
]
Image = Annotated[
    str | None,
    optional(places.read_image),
    WithJsonSchema({"type": ["string", "null"], "minLength": 1}),
]


def _duration_schema(*, zero: bool = False, null: bool = False) -> WithJsonSchema:
    forms: list[dict[str, Any]] = [
        {
            "type": "number",
            "minimum" if zero else "exclusiveMinimum": 0,
            "maximum": units.LONGEST_S,
        },
        {"type": "string", "pattern": units.DURATION_PATTERN},
    ]
    return WithJsonSchema({"anyOf": [*forms, {"type": "null"}] if null else forms})


Duration = Annotated[float, BeforeValidator(units.read_duration), _duration_schema()]
Grace = Annotated[
    float,
    BeforeValidator(lambda raw: units.read_duration(raw, zero=True)),
    _duration_schema(zero=True),
]
Deadline = Annotated[float | None, optional(units.read_duration), _duration_schema(null=True)]
