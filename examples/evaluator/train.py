"""Training on a chief and a worker that leaves a checkpoint after each epoch; evaluate.py looks at them meanwhile."""

import os

from curve import build, data

from yurt import training

EPOCHS = int(os.environ.get("EPOCHS", "5"))


def main():
    """Train; the chief's model is published."""
    strategy = training.strategy()
    with strategy.scope():
        model = build()
    model.fit(data(), epochs=EPOCHS, verbose=2, callbacks=[training.Checkpoint()])
    training.save(model, "curve.keras")


if __name__ == "__main__":
    main()
