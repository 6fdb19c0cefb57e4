"""`training.save`: two workers call it, the leader's is kept, whole, and a call on one alone ends with a sentence."""

from __future__ import annotations

import pytest

from tests.training.pairs import alone, gang
from yurt.training.errors import TrainingError
from yurt.training.saving import save, write_whole

NAMES = ("model.keras", "model.h5", "deep/model.weights.h5", "serving")


@pytest.fixture(scope="module", params=["keras", "tf_keras"])
def told(request, tmp_path_factory):
    legacy = {"TF_USE_LEGACY_KERAS": "1"} if request.param == "tf_keras" else {}
    ended = gang("saving.py", tmp_path_factory.mktemp(request.param), PYTHONPATH="", **legacy)
    assert [each.code for each in ended.values()] == [0, 0], ended["worker-0"].errors[-2000:]
    return request.param, ended["worker-0"].cases(), ended["worker-1"].cases()


@pytest.mark.tensorflow
@pytest.mark.parametrize("name", NAMES)
def test_the_leaders_is_kept(told, name):
    _, first, second = told
    assert first[name]["value"] == [f"model/{name}", True]
    assert second[name]["value"] == [None, None]


@pytest.mark.tensorflow
def test_nothing_else_is_left(told):
    _, first, second = told
    assert first["left"]["value"] == [[], ["deep", "model.h5", "model.keras", "serving"]]
    assert second["left"]["value"] == [[], None]


@pytest.mark.tensorflow
def test_averages_are_those_of_all_workers(told):
    keras, first, second = told
    if keras == "tf_keras":
        assert "averages" not in first  # they are read over all workers by TensorFlow
        return
    (own, kept, loaded), (other, also, _) = first["averages"]["value"], second["averages"]["value"]
    mean = [(one + two) / 2 for one, two in zip(own, other, strict=True)]
    assert own != other
    assert kept == also == loaded == pytest.approx(mean, rel=1e-5)


@pytest.mark.tensorflow
def test_a_call_on_one_worker_alone_says_who_did_not_call(told):
    _, first, _ = told
    assert first["alone"]["value"] == (
        "worker/1 did not call training.save within 3 s "
        "(saving this model takes all workers: call it on all of them, not under `if`)"
    )


@pytest.mark.parametrize("name", ["", ".", "/tmp/model.keras", "../model.keras", "a/../../b"])
def test_a_name_outside_the_folder_is_refused(name):
    with pytest.raises(TrainingError, match="inside the model folder"):
        save(object(), name)


class Keras:
    """Looks like a model of Keras from far away; `save` fails half-way if it is told to."""

    def __init__(self, fails=False):
        self.fails = fails

    def save(self, path):
        with open(path, "w") as file:
            file.write("half")
            if self.fails:
                raise OSError("no space left on device")
            file.write(" and whole")


Keras.__module__ = "keras.src.models"


def test_a_save_that_fails_leaves_the_old_one_and_no_part(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TF_CONFIG", raising=False)
    assert save(Keras(), "m.keras").read_text() == "half and whole"
    with pytest.raises(OSError, match="no space"):
        save(Keras(fails=True), "m.keras")
    assert [file.name for file in (tmp_path / "model").iterdir()] == ["m.keras"]
    assert (tmp_path / "model/m.keras").read_text() == "half and whole"


def test_what_is_no_model_is_refused(tmp_path):
    with pytest.raises(TrainingError, match="no Keras model"):
        write_whole(object(), tmp_path / "m.keras")


@pytest.mark.tensorflow
def test_a_module_becomes_a_saved_model(tmp_path):
    script = tmp_path / "module.py"
    script.write_text(
        "import tensorflow as tf\nfrom yurt import training\n"
        "class Twice(tf.Module):\n    @tf.function(input_signature=[tf.TensorSpec([], tf.float32)])\n"
        "    def double(self, x):\n        return 2 * x\n"
        "path = training.save(Twice(), 'twice')\n"
        "print(float(tf.saved_model.load(path).double(4.0)), path)\n"
    )
    ended = alone(script, tmp_path / "work", PYTHONPATH="")
    assert (ended.code, ended.output) == (0, "8.0 model/twice\n"), ended.errors
