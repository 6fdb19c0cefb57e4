"""Training on a chief and a worker that leaves a checkpoint after each epoch; evaluate.py looks at them meanwhile."""

import os

import tensorflow as tf
from curve import build, data

EPOCHS = int(os.environ.get("EPOCHS", "6"))


def main():
    """Train; every member saves, since reading the model takes all of them, and the chief's folder is published."""
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    with strategy.scope():
        model = build()
    epoch = tf.Variable(0, trainable=False, dtype=tf.int64)
    checkpoint = tf.train.Checkpoint(model=model, epoch=epoch)
    leads = strategy.extended.should_checkpoint
    place = os.environ.get("YURT_CHECKPOINT_DIR", "checkpoints")
    own = os.path.join(place, "all" if leads else f"scratch-{strategy.cluster_resolver.task_id}")
    manager = tf.train.CheckpointManager(checkpoint, own, max_to_keep=3)
    checkpoint.restore(tf.train.latest_checkpoint(os.path.join(place, "all")))

    class Keep(tf.keras.callbacks.Callback):
        def on_epoch_end(self, number, logs=None):  # noqa: ARG002 - Keras calls it so
            epoch.assign(number + 1)
            manager.save(checkpoint_number=number + 1)

    model.fit(data(), epochs=EPOCHS, initial_epoch=int(epoch.numpy()), verbose=2, callbacks=[Keep()])
    if leads:
        with open(os.path.join(place, "finished"), "w", encoding="utf-8") as file:
            file.write(str(EPOCHS))
    model.save(os.path.join(os.environ.get("YURT_MODEL_DIR", "."), "curve.keras"))


if __name__ == "__main__":
    main()
