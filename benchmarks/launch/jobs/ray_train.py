"""The same two workers under Ray Train, on a Ray of their own that lives as long as this program."""

import os

import ray
from ray.train import RunConfig, ScalingConfig
from ray.train.tensorflow import TensorflowTrainer


def loop():
    """What each of Ray's workers runs."""
    from train import main

    main()


ray.init()
TensorflowTrainer(
    loop,
    scaling_config=ScalingConfig(num_workers=2, resources_per_worker={"CPU": 1}),
    run_config=RunConfig(storage_path=os.path.join(os.environ["BENCH_MARKS"], "ray")),
).fit()
