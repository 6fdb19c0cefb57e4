"""The wait after the last step of `fit`: the threads that cause it are not started in a gang, and are left alone elsewhere."""

from __future__ import annotations

import json

import pytest

from tests.training.test_keras_hook import python

pytestmark = pytest.mark.tensorflow

SEEN = """
import tensorflow as tf
from tensorflow.python.data.ops import multi_device_iterator_ops as ops

own = tf.data.Options()
own.autotune.enabled = True
data = tf.data.Dataset.range(4)
print(ops._create_device_dataset.__module__)
if ops._create_device_dataset.__module__ == "_yurt_input":
    import _yurt_input
    print([_yurt_input.untuned(each).options().autotune.enabled for each in (data, data.with_options(own))])
iterator = ops.OwnedMultiDeviceIterator(data, devices=["/cpu:0"], source_device="/cpu:0")
print([int(iterator.get_next()[0]) for _ in range(4)])
"""


def cluster(workers: int) -> str:
    addresses = [f"127.0.0.1:{40000 + index}" for index in range(workers)]
    return json.dumps({"cluster": {"worker": addresses}, "task": {"type": "worker", "index": 0}})


def test_in_a_gang_nothing_tunes_what_is_iterated_unless_the_script_wants_it():
    told = python(SEEN, TF_CONFIG=cluster(2), TF_CPP_MIN_LOG_LEVEL="3").stdout
    assert told.splitlines() == ["_yurt_input", "[False, True]", "[0, 1, 2, 3]"]


def test_a_task_alone_is_left_alone():
    told = python(SEEN, TF_CONFIG=cluster(1), TF_CPP_MIN_LOG_LEVEL="3").stdout
    assert told.splitlines() == ["tensorflow.python.data.ops.multi_device_iterator_ops", "[0, 1, 2, 3]"]
