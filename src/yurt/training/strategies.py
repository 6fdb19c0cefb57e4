"""``strategy``: the tf.distribute strategy that is right for this task. So a script needs no branch on its role."""

from __future__ import annotations

import difflib
import os
import sys
from typing import Any, Final, NoReturn

from yurt.contract import names
from yurt.contract.spec import CHIEF, EVALUATOR, MULTI_WORKER, PARAMETER_SERVER, PS
from yurt.training.errors import TrainingError
from yurt.training.place import Place, place, tell_tensorflow
from yurt.training.waiting import telling_who_is_missing

MIRRORED: Final = "mirrored"
ONE_DEVICE: Final = "one-device"
NONE: Final = "none"
_NAMES: Final = (MULTI_WORKER, PARAMETER_SERVER, MIRRORED, ONE_DEVICE, NONE)
_INTER_OP: Final = "TF_NUM_INTEROP_THREADS"

_made: tuple[str, Any] | None = None


def strategy(name: str | None = None, *, dead_after_s: float | None = 5.0, variable_partitioner: Any = None) -> Any:
    """The tf.distribute.Strategy of this task. Call it before anything else of TensorFlow computes.

    By `name` (one of ``multi-worker-mirrored``, ``parameter-server``, ``mirrored``, ``one-device``, ``none``), else by
    what the run says (YURT_STRATEGY), else by TF_CONFIG alone: parameter servers in the cluster mean
    ParameterServerStrategy, several of chief and workers MultiWorkerMirroredStrategy, one task MirroredStrategy where
    it has several GPUs and TensorFlow's default where not. An evaluator trains with nobody: it gets one of the last
    two. On the workers and servers of a parameter-server cluster this runs TensorFlow's server and never returns.

    `dead_after_s` is after how many seconds without a heartbeat a peer of MultiWorkerMirroredStrategy counts as dead
    (None: TensorFlow's own, about 10). `variable_partitioner` is ParameterServerStrategy's. A second call gives the
    same strategy. Raises TrainingError for a TF_CONFIG or a name that cannot be right, or if it comes too late.
    """
    global _made  # noqa: PLW0603 - TensorFlow's runtime takes one cluster, once in a process
    if dead_after_s is not None and dead_after_s < 1:
        raise TrainingError(f"dead_after_s={dead_after_s!r} is too short", hint="1 or more seconds, or None")
    here = place()
    wanted = _wanted(name, here)
    if _made is None:
        tell_tensorflow(here)
        _made = wanted, _make(wanted, here, dead_after_s, variable_partitioner)
    elif name is not None and wanted != _made[0]:
        raise TrainingError(f"this process has {_made[0]} already, and cannot have {name} as well")
    return _made[1]


def coordinator(of: Any = None) -> Any:
    """The tf.distribute.coordinator.ClusterCoordinator of a ParameterServerStrategy, this task's unless it is given.

    Raises TrainingError for another strategy: there is nothing to coordinate.
    """
    import tensorflow as tf

    its = strategy() if of is None else of
    if not isinstance(its, tf.distribute.ParameterServerStrategy):
        raise TrainingError(
            f"{type(its).__name__} has no coordinator",
            hint="parameter-server has one; otherwise strategy.run makes a step",
        )
    return tf.distribute.coordinator.ClusterCoordinator(its)


def _wanted(name: str | None, here: Place) -> str:
    """One of _NAMES."""
    chosen = name if name is not None else os.environ.get(names.STRATEGY)
    if chosen is not None and chosen not in _NAMES:
        near = difflib.get_close_matches(chosen, _NAMES, n=1)
        hint = f"did you mean {near[0]}?" if near else f"one of {', '.join(_NAMES)}"
        raise TrainingError(f"there is no strategy {chosen!r}", hint=hint)
    servers = bool(here.cluster.get(PS))
    if here.role == EVALUATOR:
        return chosen if chosen in (MIRRORED, ONE_DEVICE, NONE) else _local()
    if chosen is None or (name is None and chosen == NONE and here.training <= 1):  # a job without a strategy has none
        return PARAMETER_SERVER if servers else MULTI_WORKER if here.training > 1 else _local()
    if chosen == PARAMETER_SERVER and not servers:
        raise TrainingError("parameter-server needs parameter servers, and TF_CONFIG's cluster has no ps")
    if chosen != PARAMETER_SERVER and servers:
        raise TrainingError(f"TF_CONFIG's cluster has ps tasks, which {chosen} does not know", hint=PARAMETER_SERVER)
    if chosen in (MIRRORED, ONE_DEVICE) and here.training > 1:
        raise TrainingError(
            f"{chosen} trains in one task, and TF_CONFIG names {here.training}: each would train a model of its own",
            hint=MULTI_WORKER,
        )
    return chosen


def _local() -> str:
    return MIRRORED if _gpus() > 1 else ONE_DEVICE


def _gpus() -> int:
    """How many GPUs this process sees. Listing them does not start TensorFlow's runtime, as placing a tensor would."""
    import tensorflow as tf

    return len(tf.config.list_physical_devices("GPU"))


def _make(wanted: str, here: Place, dead_after_s: float | None, variable_partitioner: Any) -> Any:
    import tensorflow as tf

    if wanted == MULTI_WORKER:
        return _multi_worker(here, dead_after_s)
    if wanted == PARAMETER_SERVER:
        return _parameter_server(here, variable_partitioner)
    return tf.distribute.MirroredStrategy() if wanted == MIRRORED else tf.distribute.get_strategy()


def _multi_worker(here: Place, dead_after_s: float | None) -> Any:
    import tensorflow as tf

    communication = tf.distribute.experimental.CommunicationImplementation
    options = tf.distribute.experimental.CommunicationOptions(
        implementation=communication.NCCL if _gpus() else communication.RING
    )
    if here.training <= 1:
        return tf.distribute.MultiWorkerMirroredStrategy(communication_options=options)
    _refuse_a_runtime_that_runs()
    if dead_after_s is not None:
        _sharpen_heartbeat(here, dead_after_s)
    with telling_who_is_missing(here):
        return tf.distribute.MultiWorkerMirroredStrategy(communication_options=options)


def _refuse_a_runtime_that_runs() -> None:
    """TensorFlow says "Collective ops must be configured at program startup", which tells nobody what to do."""
    from tensorflow.python.eager import context

    if getattr(context.context(), "_context_handle", None) is not None:
        raise TrainingError(
            "TensorFlow has computed something before training.strategy() was called",
            hint="call it right after the imports: before every tensor, variable, dataset and model",
        )


def _sharpen_heartbeat(here: Place, dead_after_s: float) -> None:
    """Tell the coordination service when a silent peer is dead, before the strategy sets it up with its own default.

    TensorFlow's public API has no word for it (2.21). Where its private one is another, its default stays.
    """
    try:
        from tensorflow.compiler.xla.tsl.protobuf import coordination_config_pb2
        from tensorflow.python.eager import context

        jobs = [
            coordination_config_pb2.CoordinatedJob(name=role, num_tasks=len(addresses))
            for role, addresses in here.cluster.items()
        ]
        context.context().configure_coordination_service(
            service_type="standalone",
            service_leader=f"/job:{CHIEF if here.cluster.get(CHIEF) else 'worker'}/replica:0/task:0",
            coordinated_jobs=jobs,
            heartbeat_timeout_in_ms=int(dead_after_s * 1000),
        )
    except (ImportError, AttributeError, TypeError):
        pass


def _parameter_server(here: Place, variable_partitioner: Any) -> Any:
    import tensorflow as tf

    if not here.cluster.get(CHIEF):
        raise TrainingError("parameter-server needs a chief, which coordinates, and TF_CONFIG's cluster has none")
    # With one thread a server never answers while it waits (TensorFlow 2.21); read when the runtime starts.
    if int(os.environ.get(_INTER_OP) or os.cpu_count() or 1) < 2:
        os.environ[_INTER_OP] = "2"
    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    if here.role != CHIEF:
        _serve(here, resolver)
    with telling_who_is_missing(here):
        return tf.distribute.ParameterServerStrategy(resolver, variable_partitioner=variable_partitioner)


def _serve(here: Place, resolver: Any) -> NoReturn:
    """Do what the chief asks, until whoever started this task ends it: TensorFlow's server does not end by itself."""
    import tensorflow as tf

    server = tf.distribute.Server(
        resolver.cluster_spec(), job_name=here.role, task_index=here.index, protocol="grpc", start=True
    )
    print(f"{here.task} serves", flush=True)
    server.join()
    sys.exit(0)
