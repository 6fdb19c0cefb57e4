"""Environment variables and keys, each written once.

Environment of a task (what a training script may read)::

    TF_CONFIG             {"cluster": {"worker": ["10.0.0.1:4000", ...]}, "task": {"type": "worker", "index": 0}}
    YURT_RUN_ID           weather-k3f9qa
    YURT_ROLE             worker
    YURT_INDEX            0
    YURT_GENERATION       0        the n-th start of the gang
    YURT_ATTEMPT          0        the n-th execution of this task, over all generations
    YURT_STRATEGY         multi-worker-mirrored
    YURT_MODEL_DIR        /.../model         what the deciding task leaves here is published
    YURT_CHECKPOINT_DIR   /.../checkpoints   the same for all tasks and generations of a run
    YURT_TRACKING_DIR     /.../tracking      the same for all tasks and generations of a run
    YURT_TRACK            tensorboard,mlflow the job's `track`
    YURT_JOB              weather            the job's name
    YURT_PROGRESS_FILE    /.../progress.json see `yurt.contract.progress`
    YURT_TF_CONFIG_FILE   /.../tf_config.json  the same text as TF_CONFIG
    YURT_PACKAGES         /.../agent.pyz      the Yurt that travels with the run: the hook puts it last on sys.path
    YURT_PROCESS          weather-k3f9qa/worker/0   marks every process of a task, so that none is left behind

Keys of a run, below ``yurt/runs/<run>/``::

    state                 RunState: one JSON value, moved on by compare-and-set; stays when the run is over
    members/<g>/<task>    Member of generation g; task is worker/0
    beats/<task>          Beat: still alive, and how far
    done/<task>           {"generation": 0, "attempt": 0}: this task exited 0 and is not run again

and, where the store outlives the launcher (Consul), for machines that know nothing of the run (`yurt.kv.run_index`)::

    spec                  the run as submitted, a role once, without secrets
    engine                what the engine needs to find it again: `Adopts.handle` as of the submission
    end                   the last that was seen of its tasks; members, beats and done are removed for it

and, on Kubernetes, from the run's keeper::

    keeper                {"may_submit": false, "why": "..."}: whether it submits a lost TFJob again

``yurt/index/<run>`` is one small value a run, so that all runs can be listed by one request. Who writes, reads and
removes which key, and when, is the table of docs/store.md.
"""

from __future__ import annotations

from typing import Final

TF_CONFIG: Final = "TF_CONFIG"
RUN_ID: Final = "YURT_RUN_ID"
ROLE: Final = "YURT_ROLE"
INDEX: Final = "YURT_INDEX"
GENERATION: Final = "YURT_GENERATION"
ATTEMPT: Final = "YURT_ATTEMPT"
STRATEGY: Final = "YURT_STRATEGY"
MODEL_DIR: Final = "YURT_MODEL_DIR"
CHECKPOINT_DIR: Final = "YURT_CHECKPOINT_DIR"
TRACKING_DIR: Final = "YURT_TRACKING_DIR"
TRACK: Final = "YURT_TRACK"
JOB: Final = "YURT_JOB"
PROGRESS_FILE: Final = "YURT_PROGRESS_FILE"
TF_CONFIG_FILE: Final = "YURT_TF_CONFIG_FILE"
PACKAGES: Final = "YURT_PACKAGES"
PROCESS: Final = "YURT_PROCESS"
#: 0 leaves out all of the hook, also where a script imports `yurt.training` (`keras: off` in a job file).
HOOK: Final = "YURT_HOOK"

PREFIX: Final = "yurt/runs/"
INDEX_PREFIX: Final = "yurt/index/"


def run_prefix(run_id: str) -> str:
    """All keys of a run."""
    return f"{PREFIX}{run_id}/"


def state_key(run_id: str) -> str:
    """The run's state."""
    return f"{run_prefix(run_id)}state"


def spec_key(run_id: str) -> str:
    """The run as submitted."""
    return f"{run_prefix(run_id)}spec"


def engine_key(run_id: str) -> str:
    """How the engine finds the run again."""
    return f"{run_prefix(run_id)}engine"


def keeper_key(run_id: str) -> str:
    """Whether the run's keeper acts in the cluster."""
    return f"{run_prefix(run_id)}keeper"


def end_key(run_id: str) -> str:
    """What was last seen of its tasks."""
    return f"{run_prefix(run_id)}end"


def index_key(run_id: str) -> str:
    """The run in the list of all runs."""
    return f"{INDEX_PREFIX}{run_id}"


def members_prefix(run_id: str, generation: int) -> str:
    """The members of one generation."""
    return f"{run_prefix(run_id)}members/{generation}/"


def member_key(run_id: str, generation: int, task: str) -> str:
    """One member; `task` is written ``worker/0``."""
    return f"{members_prefix(run_id, generation)}{task}"


def beats_prefix(run_id: str) -> str:
    """The heartbeats of a run."""
    return f"{run_prefix(run_id)}beats/"


def beat_key(run_id: str, task: str) -> str:
    """One task's heartbeat."""
    return f"{beats_prefix(run_id)}{task}"


def done_prefix(run_id: str) -> str:
    """The marks of all tasks that have exited 0."""
    return f"{run_prefix(run_id)}done/"


def done_key(run_id: str, task: str) -> str:
    """The mark that a task exited 0."""
    return f"{done_prefix(run_id)}{task}"
