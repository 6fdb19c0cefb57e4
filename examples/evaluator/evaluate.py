"""The evaluator: evaluates each checkpoint once on data that training has not seen, and ends after the last."""

from curve import build, data

from yurt import training

if __name__ == "__main__":
    with training.strategy().scope():
        model = build()
    training.Evaluator(model, data(seed=7), best="loss").run()
