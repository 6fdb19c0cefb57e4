"""A recurrent autoencoder: it reads 36 hours of weather, keeps a few numbers, and writes the 36 hours again."""

from __future__ import annotations

import tensorflow as tf


def build(
    hours: int = 36,
    features: int = 10,
    units: tuple[int, ...] = (128, 32),
    dropout: float = 0.02,
    momentum: float = 0.9,
    hand_over_states: bool = True,
) -> tf.keras.Model:
    """Build the autoencoder: GRU layers of `units`, and the same in reverse.

    The encoder's output, one vector, is repeated for every hour and feeds the decoder. Each decoder layer starts
    from the final state of the encoder layer of its own width: the first (32) from the encoder's last (32), the
    last (128) from the encoder's first (128).

    So what can pass from the encoder to the decoder is not the vector alone but the states too. The vector is
    the last layer's state once more (normalised), so for (128, 32) it is 128 + 32 = 160 numbers for a window of
    36 x 10 = 360: the 128 that go round the bottleneck are most of it. `hand_over_states=False` closes that way
    and leaves 32 numbers.

    `momentum` is that of the averages of BatchNormalization. Its usual 0.99 needs hundreds of steps to settle,
    and an epoch here has eight.
    """
    layers = tf.keras.layers

    def settle(x: tf.Tensor, name: str) -> tf.Tensor:
        x = layers.BatchNormalization(momentum=momentum, name=f"{name}_norm")(x)
        return layers.Dropout(dropout, name=f"{name}_dropout")(x)

    window = x = tf.keras.Input((hours, features), name="window")
    states = []
    for level, width in enumerate(units):
        last = level == len(units) - 1
        name = f"encoder_{level}"
        x, state = layers.GRU(width, return_sequences=not last, return_state=True, name=name)(x)
        states.append(state)
        x = settle(x, name)

    x = layers.RepeatVector(hours, name="code_for_every_hour")(x)

    for level, (width, state) in enumerate(zip(reversed(units), reversed(states), strict=True)):
        last = level == len(units) - 1
        name = f"decoder_{level}"
        gru = layers.GRU(width, return_sequences=True, name=name)
        x = gru(x, initial_state=state) if hand_over_states else gru(x)
        if not last:
            x = settle(x, name)

    return tf.keras.Model(window, layers.Dense(features, name="hours")(x), name="weather")
