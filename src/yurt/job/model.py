"""`Job` and `Role`: what to run, as one value that cannot be changed.

The names of the attributes carry their units; the keys of the file are their aliases. Python takes
both. Every mistake is raised as one `yurt.errors.JobError`, never as pydantic's own error.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    WithJsonSchema,
    model_validator,
)
from pydantic.functional_validators import ModelWrapValidatorHandler

from yurt.errors import JobError
from yurt.job import fields as f
from yurt.job import places, units
from yurt.job.checks import cross_checks, default_strategy, shape_of
from yurt.job.command import write_command
from yurt.job.engine_options import read_engines
from yurt.job.findings import Finding, findings_of, mistake, raise_findings
from yurt.job.frozen import FrozenDict, freeze, thaw
from yurt.job.kinds import KerasChoice, RestartPolicy, RoleName, Strategy, SuccessRule, Tracker
from yurt.job.names import read_role_name, unknown_key
from yurt.job.positions import Reading
from yurt.job.schema import RolesSchema, described, without_default
from yurt.job.written import bare, found

_inside: ContextVar[bool] = ContextVar("inside another value of the job", default=False)


class _Value(BaseModel):
    """What jobs and roles share: all mistakes at once, and only in our words."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True, defer_build=True)

    @model_validator(mode="wrap")
    @classmethod
    def _all_mistakes(cls, data: Any, handler: ModelWrapValidatorHandler[Self], info: ValidationInfo) -> Self:
        if isinstance(data, cls):
            return data
        reading = info.context if isinstance(info.context, Reading) else Reading()
        findings: list[Finding] = []
        misfits: list[Finding] = []
        value = None
        outermost = not _inside.get()
        token = _inside.set(True)
        try:
            known = cls._known(data, findings, attributes=reading.positions is None)
            value = handler(cls._fitting(known, misfits))
        except ValidationError as error:
            findings += findings_of(error)
        finally:
            _inside.reset(token)
        findings += misfits
        if value is not None and not findings:
            return value
        if not outermost:
            raise_findings(findings)
        raise JobError(reading.problems(findings))

    @classmethod
    def _known(cls, data: Any, findings: list[Finding], *, attributes: bool) -> dict[str, Any]:
        """The data without unknown keys; `attributes` says whether names of attributes are known."""
        if not isinstance(data, Mapping):
            raise_findings([Finding((), f"must be a mapping, not {found(data)}")])
        keys = {info.alias or name: name for name, info in cls.model_fields.items()}
        known = {}
        for key, value in data.items():
            if key in keys or (attributes and key in keys.values()):
                known[key] = value
            else:
                findings.append(Finding((str(key),), *unknown_key(str(key), keys)))
        for key, name in keys.items():
            if key != name and key in known and name in known:
                del known[name]
                findings.append(Finding((name,), f"is given twice: it is the same as {key}", f"keep {key}"))
        return known

    @classmethod
    def _fitting(cls, data: dict[str, Any], misfits: list[Finding]) -> dict[str, Any]:
        """The data as the fields will read it, after noting what does not fit together."""
        raise NotImplementedError


class Role(_Value):
    """A set of identical tasks. Raises `yurt.errors.JobError` for values that make no role.

    `cpus`, `memory_bytes` and `gpus` are for each task; None leaves them to the engine. Without
    a `command` of its own a role runs the job's.
    """

    model_config = ConfigDict(json_schema_extra=described("A set of identical tasks; amounts are for each of them."))

    replicas: f.Replicas = Field(1, description="How many tasks the role has.")
    cpus: f.Cpus = Field(None, description="CPUs for each task, such as 2 or 0.5.")
    memory_bytes: f.Memory = Field(None, alias="memory", description="Memory for each task, such as 2GiB.")
    gpus: f.Gpus = Field(None, description="GPUs for each task.")
    env: f.Env = Field(default_factory=FrozenDict, description="Environment variables, added to those of the job.")
    command: f.Command = Field(None, description="The role's own command, if it differs from the job's.")
    standard_server: f.YesNo = Field(
        default=False,
        description="Run TensorFlow's own server instead of a command: for ps, and worker beside ps.",
    )

    if TYPE_CHECKING:

        def __init__(
            self,
            *,
            replicas: int = 1,
            cpus: float | None = None,
            memory: str | int | None = None,
            memory_bytes: int | None = None,
            gpus: int | None = None,
            env: Mapping[str, str | float] = ...,
            command: str | Sequence[str] | None = None,
            standard_server: bool = False,
        ) -> None: ...

    @classmethod
    def _fitting(cls, data: dict[str, Any], misfits: list[Finding]) -> dict[str, Any]:
        if bare(data.get("standard_server")) is True and bare(data.get("command")) is not None:
            message = "cannot stand beside a command: a task runs one or the other"
            misfits.append(Finding(("standard_server",), message, "remove one of them"))
        return data

    def as_file(self) -> dict[str, Any] | int:
        """The short written form: the count alone where nothing else is set."""
        written: dict[str, Any] = {"replicas": self.replicas}
        if self.cpus is not None:
            written["cpus"] = _short(self.cpus)
        if self.memory_bytes is not None:
            written["memory"] = units.write_memory(self.memory_bytes)
        if self.gpus is not None:
            written["gpus"] = self.gpus
        if self.env:
            written["env"] = dict(self.env)
        if self.command:
            written["command"] = write_command(self.command)
        if self.standard_server:
            written["standard_server"] = True
        if len(written) == 1:
            return self.replicas
        if self.replicas == 1:
            del written["replicas"]
        return written


def _short(number: float) -> float:
    return int(number) if number == int(number) else number


def _read_role(raw: Any) -> Any:
    value = bare(raw)
    if isinstance(raw, Mapping | Role):
        return raw
    if isinstance(value, int) and not isinstance(value, bool):
        return {"replicas": f.read_replicas(raw)}
    hint = f"write {value.strip()} without quotes" if isinstance(value, str) and value.isdecimal() else None
    raise mistake(f"must be a count such as 2, or a mapping such as {{replicas: 2}}, not {found(raw)}", hint)


def _in_order(roles: Mapping[RoleName, Role]) -> FrozenDict[RoleName, Role]:
    """The roles that have tasks, in the order of `RoleName`."""
    return FrozenDict({name: roles[name] for name in RoleName if name in roles and roles[name].replicas})


Roles = Annotated[
    Mapping[Annotated[RoleName, BeforeValidator(read_role_name)], Annotated[Role, BeforeValidator(_read_role)]],
    BeforeValidator(lambda raw: f.a_mapping(raw, "{worker: 2}")),
    AfterValidator(_in_order),
    RolesSchema(),
]


def _engines(raw: Any, info: ValidationInfo) -> Any:
    return read_engines(raw, info.context.engine_options if isinstance(info.context, Reading) else {})


class Job(_Value):
    """What to run: one frozen value, the same whether it comes from a file or from Python.

    Raises `yurt.errors.JobError`, which holds all mistakes at once. Times are in seconds, memory in
    bytes. `roles` holds only roles with tasks, and `strategy` is never left open.
    """

    model_config = ConfigDict(
        title="Yurt job", json_schema_extra=described("What to run with Yurt, and on which roles.")
    )

    name: f.Name = Field(description="The job's name: small letters, digits and -, at most 36 characters.")
    command: f.Command = Field(None, description="What every task runs: a script with arguments, or any command.")
    strategy: f.StrategyField = Field(
        Strategy.NONE,
        description="How TensorFlow spreads the training; follows from the roles if left out.",
        json_schema_extra=without_default,
    )
    roles: Roles = Field(
        default_factory=lambda: FrozenDict({RoleName.WORKER: Role()}),
        description="The roles, each a count or a mapping.",
    )
    env: f.Env = Field(default_factory=FrozenDict, description="Environment variables of every task.")
    files: f.Files = Field((".",), description="Paths and patterns beside the job file that travel with it.")
    output: f.Output = Field(
        None, description="Where the model goes: a path, or a URL of file, s3, gs or az. Empty publishes nothing."
    )
    saves_to: f.SavesTo = Field(
        None, description="Where the script saves, in the task's folder, if not where YURT_MODEL_DIR says."
    )
    restart: f.RestartField = Field(RestartPolicy.EXIT_CODE, description="When an ended task starts again.")
    max_restarts: f.Restarts = Field(3, description="How many restarts the whole run may have.")
    success: f.SuccessField = Field(SuccessRule.CHIEF, description="Whose exit decides that the run succeeded.")
    start_deadline_s: f.Duration = Field(
        600.0, alias="start_deadline", description="How long the tasks may take to find each other, as in 5m."
    )
    deadline_s: f.Deadline = Field(None, alias="deadline", description="How long the whole run may take, as in 2h.")
    grace_s: f.Grace = Field(30.0, alias="grace", description="How long a task may take to end after it is asked to.")
    keras: f.KerasField = Field(KerasChoice.AUTO, description="Which Keras an unchanged script gets on many machines.")
    track: f.Track = Field((), description="What follows the training: tensorboard, mlflow, wandb, one or a list.")
    image: f.Image = Field(None, description="The container image, for engines that use one.")
    engines: Annotated[
        Mapping[str, Mapping[str, Any]],
        BeforeValidator(_engines),
        AfterValidator(freeze),
        WithJsonSchema({"type": "object", "additionalProperties": {"type": "object"}}),
    ] = Field(default_factory=FrozenDict, description="Options of one engine each, by its name.")

    if TYPE_CHECKING:

        def __init__(
            self,
            *,
            name: str,
            command: str | Sequence[str] | None = None,
            strategy: Strategy | str | None = None,
            roles: Mapping[str, int | Mapping[str, Any] | Role] = ...,
            env: Mapping[str, str | float] = ...,
            files: Sequence[str] = (".",),
            output: str | None = None,
            saves_to: str | None = None,
            restart: RestartPolicy | str = RestartPolicy.EXIT_CODE,
            max_restarts: int = 3,
            success: SuccessRule | str = SuccessRule.CHIEF,
            start_deadline: str | float = 600,
            start_deadline_s: float = 600,
            deadline: str | float | None = None,
            deadline_s: float | None = None,
            grace: str | float = 30,
            grace_s: float = 30,
            keras: KerasChoice | str = KerasChoice.AUTO,
            track: Tracker | str | Sequence[Tracker | str] | None = None,
            image: str | None = None,
            engines: Mapping[str, Mapping[str, Any]] = ...,
        ) -> None: ...

    @classmethod
    def _fitting(cls, data: dict[str, Any], misfits: list[Finding]) -> dict[str, Any]:
        shape = shape_of(data)
        misfits += cross_checks(shape)
        if bare(data.get("track")) and bare(data.get("keras")) in (False, KerasChoice.OFF):
            message = "needs Yurt's part in `fit`, which `keras: off` leaves out"
            hint = "remove one of them, or call yurt.training.trackers() in the script"
            misfits.append(Finding(("track",), message, hint))
        if not shape.strategy_written:
            data = {**data, "strategy": shape.strategy}
        return data

    def command_for(self, role: RoleName) -> tuple[str, ...] | None:
        """The words that a task of this role runs; None for TensorFlow's standard server."""
        own = self.roles[role]
        return None if own.standard_server else own.command or self.command

    def env_for(self, role: RoleName) -> Mapping[str, str]:
        """The environment that the job gives a task of this role: the role's own wins over the job's."""
        return FrozenDict({**self.env, **self.roles[role].env})

    def in_folder(self, folder: Path) -> Job:
        """The same job with an `output` that is a path made a ``file://`` URL, relative to `folder`."""
        if self.output is None:
            return self
        return self.model_copy(update={"output": places.output_in(self.output, folder.absolute())})

    def as_file(self) -> dict[str, Any]:
        """The short written form, as plain data: what equals a default is left out.

        ``Job(**job.as_file()) == job``, and so for a file that holds it, if `output` is a URL.
        """
        written: dict[str, Any] = {"name": self.name}
        if self.command:
            written["command"] = write_command(self.command)
        roles = {str(name): role.as_file() for name, role in self.roles.items()}
        if self.strategy != default_strategy(shape_of({"roles": self.roles}).roles):
            written["strategy"] = str(self.strategy)
        if roles != {"worker": 1}:
            written["roles"] = roles
        plain = {
            "env": dict(self.env),
            "files": list(self.files),
            "output": self.output,
            "saves_to": self.saves_to,
            "restart": str(self.restart),
            "max_restarts": self.max_restarts,
            "success": str(self.success),
            "start_deadline": units.write_duration(self.start_deadline_s),
            "deadline": None if self.deadline_s is None else units.write_duration(self.deadline_s),
            "grace": units.write_duration(self.grace_s),
            "keras": str(self.keras),
            "track": str(self.track[0]) if len(self.track) == 1 else [str(tracker) for tracker in self.track],
            "image": self.image,
            "engines": thaw(self.engines),
        }
        for name, info in Job.model_fields.items():
            if getattr(self, name) == info.get_default(call_default_factory=True):
                plain.pop(info.alias or name, None)
        return written | plain
