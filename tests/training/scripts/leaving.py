"""A plain `fit` under MultiWorkerMirroredStrategy that goes on for ever; READY in the output says that it trains.

DEAF makes an epoch wait in C for a minute, as a worker in a collective does, with output that is not flushed.
ANSWER says who answers SIGTERM: nobody, or TensorFlow's preemption handler.
"""

import os
import signal
import sys
import threading
import time

import tensorflow as tf

keras = tf.keras
answer = os.environ.get("ANSWER", "nobody")
strategy = tf.distribute.MultiWorkerMirroredStrategy()
with strategy.scope():
    model = keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    if answer == "preemption":
        resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
        checkpoint = tf.train.Checkpoint(step=tf.Variable(0))
        tf.distribute.experimental.PreemptionCheckpointHandler(resolver, checkpoint, "here")


class Ready(keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        if epoch == 0:
            handler = signal.getsignal(signal.SIGTERM)
            print("READY", handler is signal.SIG_DFL, getattr(handler, "__module__", None), flush=True)
            if "DEAF" in os.environ:
                sys.stdout.write("not flushed yet")
                signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])  # another thread takes it
                lock = threading.Lock()
                with lock:
                    lock.acquire(timeout=60)
        time.sleep(0.05)


data = tf.data.Dataset.from_tensor_slices((tf.zeros((8, 4)), tf.zeros((8, 1)))).batch(4).repeat()
model.fit(data, steps_per_epoch=2, epochs=int(os.environ.get("EPOCHS", "100000")), verbose=0, callbacks=[Ready()])
print("AFTER", signal.getsignal(signal.SIGTERM) is signal.SIG_DFL, signal.set_wakeup_fd(-1), flush=True)
