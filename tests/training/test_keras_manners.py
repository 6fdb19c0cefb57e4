"""What Keras 2 took, where only Keras 3 is."""

from __future__ import annotations

import pytest

from tests.training.pairs import alone

pytestmark = pytest.mark.tensorflow


def test_what_keras_2_took_is_taken_and_each_time_said(tmp_path):
    ended = alone("manners.py", tmp_path, YURT_HOOK_MANNERS="1")
    assert ended.code == 0, ended.errors
    assert ended.cases()["manners"]["value"] == [0.5, 0.125, ["1.keras"], ["1.weights.h5"], True]
    said = [line for line in ended.errors.splitlines() if line.startswith("yurt: Keras 3: ")]
    assert [line.removeprefix("yurt: Keras 3: ") for line in said] == [
        "optimizers.legacy.SGD is Keras 3's SGD",
        "ModelCheckpoint's path 'saved/{epoch}' gets the ending .keras",
        "ModelCheckpoint's period is ignored",
        "ModelCheckpoint's path 'weights/{epoch}' gets the ending .weights.h5",
        "model.save('served') writes a SavedModel for serving, without the optimizer",
    ]
