"""The trackers of the job file's `track`: TensorBoard, MLflow, Weights & Biases, each by its own Keras callback.

Every `fit` of the leading task gets them; one that the script adds itself is not added again. They log into
YURT_TRACKING_DIR, which is the run's and survives its restarts; MLflow and W&B go where their own variables say, if
they say something. One run of the job is one run of the tracker, over all restarts. A tracker that does not work is
told in one line, and training goes on.
"""

import atexit
import os
import sys

import _yurt_leaving
from _yurt_task import leads, say, workers

TRACKERS = ("tensorboard", "mlflow", "wandb")
#: What MLflow is told unless somebody else has: seconds and tries for an answer of its server, and that a folder may be
#: the store, which MLflow 3 refuses without a word from the user (a database would not do on a shared file system).
MLFLOW = {
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "20",
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2",
    "MLFLOW_ALLOW_FILE_STORE": "true",
}
#: Letters of an error that are told.
TOLD = 300


def names():
    """The trackers that the job asks for."""
    return [name for name in os.environ.get("YURT_TRACK", "").split(",") if name]


def folder(*below):
    """A folder of the run for its trackers; it is made."""
    path = os.path.join(os.environ.get("YURT_TRACKING_DIR") or "tracking", *below)
    os.makedirs(path, exist_ok=True)
    return os.path.abspath(path)


def facts():
    """What is worth knowing of the job, beside what the script logs itself."""
    told = {"job": "YURT_JOB", "run": "YURT_RUN_ID", "strategy": "YURT_STRATEGY"}
    found = {name: os.environ[variable] for name, variable in told.items() if os.environ.get(variable)}
    return {**found, "workers": max(workers(), 1)}


def callbacks(wanted, given=(), legacy=False):
    """New callbacks of the wanted trackers, without those that are among the given callbacks; none but on the leader.

    `legacy` says that they are for tf_keras.
    """
    made = []
    for name in wanted if leads() else ():
        if any(is_of(callback, name) for callback in given):
            continue
        try:
            made.append({"tensorboard": tensorboard, "mlflow": mlflow, "wandb": wandb}[name](legacy))
        except Exception as error:
            first = str(error).strip().partition("\n")[0][:TOLD]
            say(f"nothing is logged to {name}: {first or repr(error)}")
    return made


def is_of(callback, name):
    """Whether a callback is this tracker's, of whatever class."""
    for cls in type(callback).__mro__:
        if name == "tensorboard" and cls.__name__ == "TensorBoard":
            return True
        if cls.__module__.partition(".")[0] == name:
            return True
    return False


def tensorboard(legacy):
    """TensorBoard: its files lie in the run's folder."""
    import tensorboard  # noqa: F401 - without it Keras says so in the middle of fit

    if legacy:
        from tf_keras.callbacks import TensorBoard
    else:
        from keras.callbacks import TensorBoard
    return TensorBoard(log_dir=folder("tensorboard"), write_graph=False)


def mlflow(legacy):
    """MLflow: into the active run, or one run for all starts of this one."""
    for name, value in MLFLOW.items():
        os.environ.setdefault(name, value)
    import mlflow

    if mlflow.active_run() is None:
        if not mlflow.is_tracking_uri_set():
            mlflow.set_tracking_uri("file://" + folder("mlflow"))
        told = facts()
        if not os.environ.get("MLFLOW_EXPERIMENT_NAME") and not os.environ.get("MLFLOW_EXPERIMENT_ID"):
            mlflow.set_experiment(told.get("job", "training"))
        continue_or_start(mlflow, told)
        _yurt_leaving.before.append(lambda: mlflow.end_run("KILLED"))
        atexit.register(end_of, mlflow)
    if legacy:
        from mlflow.tensorflow import MlflowCallback
    else:
        from mlflow.keras import MlflowCallback
    return MlflowCallback()


def continue_or_start(mlflow, told):
    """Go on with the run whose id the last start left, or start one and leave its id."""
    kept = os.path.join(folder(), "mlflow-run")
    if os.path.exists(kept):
        with open(kept, encoding="utf-8") as file:
            mlflow.start_run(run_id=file.read().strip())
        return
    started = mlflow.start_run(run_name=told.get("run"))
    with open(kept + ".part", "w", encoding="utf-8") as file:
        file.write(started.info.run_id)
    os.replace(kept + ".part", kept)
    mlflow.log_params(told)


def end_of(mlflow):
    """A script that ends by an error has a failed run; MLflow itself would say that it finished."""
    mlflow.end_run("FAILED" if getattr(sys, "last_value", None) is not None else "FINISHED")


def wandb(legacy):
    """Weights & Biases: into the script's own run, or one run for all starts of this one."""
    import wandb

    if wandb.run is None:
        told = facts()
        run = os.environ.get("WANDB_RUN_ID") or told.get("run")
        wandb.init(
            project=os.environ.get("WANDB_PROJECT") or told.get("job"),
            id=run,
            name=os.environ.get("WANDB_NAME") or run,
            resume="allow" if run else None,
            dir=os.environ.get("WANDB_DIR") or folder(),
            config=told,
        )
        _yurt_leaving.before.append(lambda: wandb.finish(exit_code=_yurt_leaving.EXIT_CODE))
    from wandb.integration.keras import WandbMetricsLogger

    return WandbMetricsLogger()
