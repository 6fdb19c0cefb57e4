"""An ordinary Keras 3 script for a parameter server; knows nothing of Yurt. SERVE: worker and ps only serve."""

import json
import os
import time
import traceback

import numpy as np
import tensorflow as tf

if os.environ.get("TF_USE_LEGACY_KERAS") == "1":
    keras = tf.keras
else:
    import keras

layers = keras.layers
PARTITIONED = os.environ.get("PARTITIONED") == "1"
strategy = tf.distribute.get_strategy()
if "TF_CONFIG" in os.environ:
    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    if resolver.task_type in ("worker", "ps"):
        tf.distribute.Server(
            resolver.cluster_spec(), job_name=resolver.task_type, task_index=resolver.task_id, protocol="grpc"
        ).join()
    partitioner = tf.distribute.experimental.partitioners.MinSizePartitioner(64, 2) if PARTITIONED else None
    strategy = tf.distribute.ParameterServerStrategy(resolver, variable_partitioner=partitioner)
x = np.random.RandomState(0).rand(512, 20).astype("float32")
y = (x.sum(1) > x.sum(1).mean()).astype("int32")
CASES = {}


def case(function):
    CASES[function.__name__] = function
    return function


def dataset(*, repeat=True, shuffle=True):
    data = tf.data.Dataset.from_tensor_slices((x, y))
    data = data.shuffle(512, seed=1) if shuffle else data
    return (data.repeat() if repeat else data).batch(32)


def made(optimizer=None, **options):
    keras.utils.set_random_seed(1)
    with strategy.scope():
        model = keras.Sequential(
            [layers.Input((20,)), layers.Dense(16, activation="relu"), layers.Dense(2, activation="softmax")]
        )
        chosen = optimizer() if optimizer else keras.optimizers.Adam(1e-2)
        model.compile(chosen, "sparse_categorical_crossentropy", metrics=["accuracy"], **options)
    return model


def fitted(model, data=None, steps=16, epochs=2, **options):
    history = model.fit(data or dataset(), steps_per_epoch=steps, epochs=epochs, verbose=0, **options).history
    return history, int(model.optimizer.iterations.numpy())


@case
def steps():
    return fitted(made(), epochs=3)


@case
def steps_per_execution():
    return fitted(made(steps_per_execution=8))


@case
def validation_and_evaluate():
    model = made()
    # Not shuffled: an iterator that is made anew goes on with another order in one process, and begins again on a worker.
    history, count = fitted(model, validation_data=dataset(shuffle=False), validation_steps=8)
    return history, count, model.evaluate(dataset(shuffle=False), steps=16, verbose=0, return_dict=True)


@case
def finite_data():
    return fitted(made(), dataset(repeat=False), steps=None)


@case
def arrays():
    model = made()
    history = model.fit(x, y, batch_size=32, epochs=2, verbose=0).history
    return history, int(model.optimizer.iterations.numpy())


@case
def predict_in_order():
    model = made()
    fitted(model, epochs=1)
    told = model.predict(x[:200], verbose=0)
    return list(told.shape), float(np.abs(told - np.array(model(x[:200]))).max() < 1e-5)


@case
def saving_and_callbacks():
    model = made()
    callbacks = [
        keras.callbacks.ModelCheckpoint("saved/{epoch}.keras"),
        keras.callbacks.BackupAndRestore("saved/backup"),
        keras.callbacks.EarlyStopping(monitor="loss", patience=5),
    ]
    fitted(model, callbacks=callbacks)
    model.save("model.keras")
    again = keras.models.load_model("model.keras")
    return sorted(os.listdir("saved")), float(np.allclose(again(x[:4]), model(x[:4])))


@case
def clipping():
    return fitted(made(lambda: keras.optimizers.SGD(0.5, clipnorm=0.05)))


@case
def gradient_accumulation():
    return fitted(made(lambda: keras.optimizers.Adam(1e-2, gradient_accumulation_steps=2)))


@case
def train_on_batch():
    return made().train_on_batch(x[:32], y[:32])


@case
def own_loop_counts_every_step():
    """Keras 3's metrics and optimizer in a loop of the script's own."""
    with strategy.scope():
        mean = keras.metrics.Mean()
        optimizer = keras.optimizers.SGD(0.1)
        variable = keras.Variable(np.zeros(4, "float32"))
        optimizer.build([variable])

    @tf.function
    def step():
        def replica():
            mean.update_state(1.0)
            optimizer.apply([tf.ones(4)], [variable])

        strategy.run(replica)

    if "TF_CONFIG" in os.environ:
        coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
        for _ in range(60):
            coordinator.schedule(step)
        coordinator.join()
    else:
        for _ in range(60):
            step()
    return int(mean.count.numpy()), int(optimizer.iterations.numpy()), variable.numpy().tolist()


if __name__ == "__main__":
    for name in (os.environ.get("CASES") or ",".join(CASES)).split(","):
        began = time.monotonic()
        try:
            told = {"value": CASES[name]()}
        except BaseException as error:
            told = {"error": f"{type(error).__name__}: {error}"[-600:]}
            traceback.print_exc()
        print("CASE", json.dumps({"name": name, "seconds": time.monotonic() - began, **told}), flush=True)
    os._exit(0)  # TensorFlow 2.21's chief may hang at its exit
