"""The least that a person, and the pod that keeps a run's state, must be allowed; and what is missing of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final

from yurt.engines.finding import Finding, good, problem, warning
from yurt.engines.kubernetes import kinds
from yurt.engines.kubernetes.kinds import Kind
from yurt.engines.kubernetes.names import KEEPER_ACCOUNT
from yurt.engines.kubernetes.prepare.reading import Reading

CHECK: Final = "rights"
#: The names of the roles, and of the account of the pod that keeps a run's state.
USER: Final = "yurt-user"
KEEPER: Final = KEEPER_ACCOUNT
#: Asked at once: each is a small request.
_AT_ONCE: Final = 8


@dataclass(frozen=True, slots=True)
class Right:
    """What may be done with one kind of object, and why it is needed. `part` is a sub-resource such as ``log``."""

    kind: Kind
    verbs: tuple[str, ...]
    why: str
    part: str = ""
    #: Whether every run needs it; without one that is not, runs work, but not all that belongs to them.
    always: bool = True

    @property
    def resource(self) -> str:
        """As rules name it: ``pods/log``."""
        return f"{self.kind.plural}/{self.part}" if self.part else self.kind.plural

    def as_rule(self) -> dict[str, Any]:
        """Of a Role."""
        return {"apiGroups": [self.kind.group], "resources": [self.resource], "verbs": list(self.verbs)}


#: Of whoever runs jobs.
OF_USERS: Final = (
    Right(kinds.POD, ("list", "watch"), "the tasks are watched by their pods"),
    Right(kinds.POD, ("get",), "without it the last lines of a task that has ended may be missed", always=False),
    Right(kinds.POD, ("get",), "without it nobody sees what tasks print", part="log", always=False),
    Right(
        kinds.POD,
        ("create", "get"),
        "without it nobody sees how far a run is before it has ended",
        part="portforward",
        always=False,
    ),
    Right(kinds.JOB, ("create",), "a run is made of Jobs, and goes with the first of them"),
    Right(kinds.JOB, ("get",), "without it nobody notices that a run was removed from the cluster", always=False),
    Right(kinds.JOB, ("delete",), "without it a run stays in the cluster when it is over, or stopped", always=False),
    Right(kinds.JOB, ("list",), "without it yurt ls --on kubernetes shows nothing", always=False),
    Right(kinds.SERVICE, ("create",), "tasks find each other by a service"),
    Right(kinds.SECRET, ("create",), "a run's order and token are in a secret"),
    Right(kinds.SECRET, ("get",), "without it runs that others have submitted cannot be looked at", always=False),
    Right(kinds.CONFIG_MAP, ("create",), "the job's files travel in config maps"),
    Right(kinds.SERVICE_ACCOUNT, ("get",), "without it a TFJob's keeper gets no account to act by", always=False),
    Right(kinds.EVENT, ("list",), "without it nobody is told why a pod does not start", always=False),
    Right(kinds.CLAIM, ("list",), "without it nobody is told why a claim is not bound", always=False),
)
#: Of whoever runs jobs as TFJobs, beside that.
OF_OPERATOR_USERS: Final = (
    Right(kinds.TFJOB, ("create",), "a run goes as a TFJob by it: a TFJob file, or operator: tfjob", always=False),
    Right(
        kinds.TFJOB,
        ("delete", "list"),
        "without it a TFJob that loses a pod is submitted again by its keeper's account alone",
        always=False,
    ),
)
#: Of the pod that keeps a run's state: it submits a lost TFJob again, and removes what is left at the end.
OF_KEEPERS: Final = (
    Right(kinds.TFJOB, ("get", "list", "watch", "create", "delete"), "it submits a lost TFJob again"),
    Right(kinds.JOB, ("get", "list", "delete"), "it removes what is left of an ended run"),
    Right(kinds.POD, ("get", "list"), "it sees which pods are left"),
)


def check(reading: Reading) -> Iterator[Finding]:
    """Each right that this account lacks, by its name; then the account of the keeper."""
    wanted = OF_USERS + (OF_OPERATOR_USERS if reading.operator_served else ())
    missing = lacking(reading, wanted)
    for right, verb in missing:
        what = f"this account may not {verb} {right.resource} in the namespace {reading.namespace}"
        mend = f"{reading.command('--user', 'NAME')}   # as an administrator"
        yield (problem if right.always else warning)(CHECK, what, right.why, mend)
    if not missing:
        yield good(CHECK, f"this account may do in the namespace {reading.namespace} all that a run needs")
    if not any(right.kind is kinds.SERVICE_ACCOUNT for right, _ in missing):
        yield from _keeper(reading)


def lacking(reading: Reading, wanted: Sequence[Right], account: str | None = None) -> list[tuple[Right, str]]:
    """The rights that `account` (this one unless said) does not have, each with its verb."""
    asked = [(right, verb) for right in wanted for verb in right.verbs]

    def may(one: tuple[Right, str]) -> bool:
        right, verb = one
        return reading.client.may(verb, right.kind, right.part, account=account)

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return [one for one, allowed in zip(asked, pool.map(may, asked), strict=True) if not allowed]


def _keeper(reading: Reading) -> Iterator[Finding]:
    """Only a TFJob needs it: without the operator the cluster itself brings pods back."""
    if reading.no_space:
        return
    if reading.client.get(kinds.SERVICE_ACCOUNT, KEEPER) is None:
        what = f"there is no service account {KEEPER} in the namespace {reading.namespace}"
        why = "a TFJob that loses a pod is only submitted again while somebody watches the run"
        yield warning(CHECK, what, why, reading.command())
        return
    if not reading.client.may("create", kinds.ACCESS_REVIEW):
        return
    account = f"system:serviceaccount:{reading.namespace}:{KEEPER}"
    missing = lacking(reading, OF_KEEPERS, account)
    for right, verb in missing:
        yield warning(CHECK, f"the account {KEEPER} may not {verb} {right.resource}", right.why, reading.command())
    if not missing:
        yield good(CHECK, f"the account {KEEPER} may submit a lost TFJob again and clear up after a run")
