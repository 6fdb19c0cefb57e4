"""How often Nomad starts a task again, and the rule and limit of Yurt that come nearest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from yurt.convert.converted import Note
from yurt.convert.nomad.durations import seconds
from yurt.convert.nomad.parts import Part
from yurt.job import RestartPolicy

if TYPE_CHECKING:
    from yurt.convert.nomad.roles import Seat
    from yurt.convert.nomad.tasks import RoleRead

_DAY_S: Final = 86_400
#: Nomad's own blocks for batch and service jobs (Nomad 1.0 to 1.10): attempts and interval in seconds.
_RESTART_DEFAULTS: Final = ((3, _DAY_S), (2, 1800))
_RESCHEDULE_DEFAULTS: Final = ((1, _DAY_S), (0, 0))


@dataclass(frozen=True, slots=True)
class Restarts:
    """How often a task may start again: in its place, and elsewhere; None where nothing is written."""

    in_place: int | None
    elsewhere: int | None

    @property
    def most(self) -> int:
        """All restarts together: each new place has those in place again. Nomad's own one new place is not counted."""
        in_place = _RESTART_DEFAULTS[0][0] if self.in_place is None else self.in_place
        return (in_place + 1) * ((self.elsewhere or 0) + 1) - 1


def restarts_of(seat: Seat, notes: list[Note]) -> Restarts | None:
    """What the restart and reschedule blocks say; the task's wins over the group's. None where all is default."""
    job, group, task = seat.job, seat.group, seat.task
    own, outer = task.get("restart"), group.get("restart")
    # `nomad job inspect` prints the group's block a second time, as the task's.
    if own and own.peek("attempts") and outer and outer.plain() != own.look():
        notes.append(outer.note("is left out: the task has its own"))
    in_place = _attempts(own if own and own.peek("attempts") else outer, _RESTART_DEFAULTS)
    reschedule = group.get("reschedule") or job.get("reschedule")
    elsewhere = _attempts(reschedule, _RESCHEDULE_DEFAULTS)
    if reschedule and (unlimited := reschedule.get("unlimited")) and unlimited.value is True and elsewhere is not None:
        notes.append(unlimited.note("starts a task elsewhere without end; Yurt stops at max_restarts"))
    return None if in_place is None and elsewhere is None else Restarts(in_place, elsewhere)


def _attempts(block: Part | None, defaults: tuple[tuple[int, int], ...]) -> int | None:
    """The attempts of a block; None if there is no block, or it is what Nomad puts there itself."""
    if block is None:
        return None
    attempts, interval = block.get("attempts"), block.peek("interval")
    count = attempts.value if attempts and isinstance(attempts.value, int) else 0
    if interval and (count, seconds(interval.value)) in defaults:
        for inner in block.value.values():
            inner.taken = True
        return None
    return count if attempts else None


def restarts_of_jobs(roles: Sequence[RoleRead], notes: list[Note]) -> dict[str, Any]:
    """`restart` and `max_restarts` of the whole job; empty where Nomad's defaults stand, which become Yurt's."""
    said = [(role, role.restarts) for role in roles if role.restarts is not None]
    if not said:
        return {}
    most = max(restarts.most for _, restarts in said)
    if not most:
        return {"restart": str(RestartPolicy.NEVER)}
    role = next(role for role, restarts in said if restarts.most == most)
    notes.append(
        role.part.note(
            f"each task could start again {most} times; in Yurt that is the limit of the whole run", "restart"
        )
    )
    return {"restart": str(RestartPolicy.ON_FAILURE), "max_restarts": most}
