"""What this process knows of its task: its place in the cluster, its strategy, and how it says something to people."""

import json
import os
import sys

_said = set()


def cluster():
    """TF_CONFIG's cluster and task as they stand there now; empty where it is missing or no JSON."""
    try:
        config = json.loads(os.environ.get("TF_CONFIG") or "{}")
        return config.get("cluster") or {}, config.get("task") or {}
    except (ValueError, AttributeError):
        return {}, {}


def workers():
    """How many tasks train: chief and workers."""
    return sum(len(cluster()[0].get(role, ())) for role in ("chief", "master", "worker"))


def several():
    """Whether this is one of several tasks that train one model in step: multi-worker, not parameter server."""
    spec, task = cluster()
    return "ps" not in spec and workers() > 1 and task.get("type") in ("chief", "master", "worker")


def leads():
    """Whether this task is the chief, or worker 0 where there is no chief; true outside any cluster."""
    spec, task = cluster()
    if not task:
        return True
    if task.get("type") == "worker":
        return str(task.get("index", 0)) == "0" and not spec.get("chief") and not spec.get("master")
    return task.get("type") in ("chief", "master")


def multi_worker(strategy):
    """Whether this is MultiWorkerMirroredStrategy with more than one worker."""
    if strategy is None:
        return False
    import tensorflow as tf

    return isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy) and strategy.extended._in_multi_worker_mode()


def parameter_server(strategy):
    """Whether this is ParameterServerStrategy."""
    if strategy is None:
        return False
    from tensorflow.python.distribute import parameter_server_strategy_v2

    return isinstance(strategy, parameter_server_strategy_v2.ParameterServerStrategyV2)


def say(text, everyone=False):
    """One line on standard error, each text once; the leader speaks for all unless it concerns this task alone."""
    if text not in _said and (everyone or leads()):
        _said.add(text)
        print(f"yurt: {text}", file=sys.stderr, flush=True)
