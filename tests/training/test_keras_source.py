"""What the source tells of the Keras it was written for."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from yurt.agent.foreign_source import probe_program, source


def facts(folder, text, **modules):
    (folder / "train.py").write_text(text)
    for name, module in modules.items():
        (folder / f"{name}.py").write_text(module)
    result = subprocess.run(
        [sys.executable, "-c", probe_program(), str(folder / "train.py")], capture_output=True, text=True, check=True
    )
    return json.loads(result.stdout)["source"]


HEAD = "import os\nimport tensorflow as tf\nfrom tensorflow import keras\nfrom tensorflow.keras import backend as K\n"

KERAS_2 = [
    ("tf.keras.callbacks.ModelCheckpoint('a/b')", "ModelCheckpoint to a path without .keras or .h5"),
    ("keras.callbacks.ModelCheckpoint(filepath=os.path.join('a', 'ckpt-{epoch}'))", "ModelCheckpoint to a path"),
    (
        "keras.callbacks.ModelCheckpoint('w.h5', save_weights_only=True)",
        "ModelCheckpoint to a path without .weights.h5",
    ),
    ("keras.callbacks.ModelCheckpoint('m.keras', period=2)", "ModelCheckpoint(period=)"),
    ("model = keras.Sequential()\nmodel.save('a/saved')", "model.save to a path without .keras or .h5"),
    ("path = 'a/saved'\nmy_model.save(path)", "model.save to a path without .keras or .h5"),
    ("path = '/tmp/x'\ndef own(p): return p\nwhere = own(path)\nmodel.save(where)", "model.save to a path"),
    ("model.save('m.h5', save_format='h5')", "save(save_format=)"),
    ("tf.keras.models.save_model(model, f'{a}/model')", "model.save to a path without .keras or .h5"),
    ("print(model.optimizer.lr)", "optimizer.lr"),
    ("opt.lr = 2", "optimizer.lr"),
    ("K.set_value(a, 1)", "keras.backend.set_value"),
    ("tf.keras.backend.learning_phase()", "keras.backend.learning_phase"),
    ("tf.keras.optimizers.legacy.SGD()", "optimizers.legacy"),
    ("from tensorflow.keras.optimizers.legacy import Adam", "optimizers.legacy"),
    ("tf.keras.utils.experimental.DatasetCreator(f)", "utils.experimental"),
    ("keras.layers.experimental.preprocessing.Normalization()", "layers.experimental"),
    ("model.fit(x, y, workers=4)", "fit(workers=)"),
    ("model.fit(x, y, use_multiprocessing=True)", "fit(use_multiprocessing=)"),
    ("keras.optimizers.Adam(lr=0.1)", "Adam(lr=)"),
    ("keras.optimizers.SGD(0.1, decay=1e-6)", "SGD(decay=)"),
    ("print(model.optimizer.lr.numpy())", "optimizer.lr"),
    ("accuracy.reset_states()", "reset_states()"),
    ("model.save_weights('a/ckpt')", "save_weights to a path without .weights.h5"),
    ("tf.keras.utils.SidecarEvaluator(model, data, 'a')", "utils.SidecarEvaluator"),
    ("from tensorflow.keras.experimental import WideDeepModel", "experimental"),
    ("tf.keras.layers.DenseFeatures(columns)", "layers.DenseFeatures"),
    ("tf.keras.losses.mean_squared_error(a, b)", "losses.mean_squared_error"),
    ("tf.keras.saving.register_keras_serializable()", "saving"),
    ("K.learning_phase()", "keras.backend.learning_phase"),
    ("model.save(args.model_dir)", "model.save to a path"),
    ("model.save(os.environ['AIP_MODEL_DIR'])", "model.save to a path"),
    ("model.save(os.getenv('SM_MODEL_DIR', 'x'))", "model.save to a path"),
    ("out = args.export_dir\nif b:\n    out = args.export_dir + '/tmp'\nmodel.save(out)", "model.save to a path"),
    ("p.add_argument('--to', default='saved')\nmodel.save(args.to)", "model.save to a path"),
    ("p.add_argument('--v', type=int)\nmodel.save(os.path.join(a, str(args.v)))", "model.save to a path"),
]


@pytest.mark.parametrize(("line", "what"), KERAS_2)
def test_things_of_keras_2_are_seen(tmp_path, line, what):
    found = facts(tmp_path, f"{HEAD}{line}\n")["keras2"]
    assert [each[1].startswith(what) for each in found] == [True], found
    place = found[0][0]
    assert place.startswith("train.py:")
    assert int(place.split(":")[1]) == len(HEAD.splitlines()) + len(line.splitlines())


KERAS_3 = [
    "keras.callbacks.ModelCheckpoint('a/b.keras')",
    "keras.callbacks.ModelCheckpoint(os.path.join(folder, 'w.weights.h5'), save_weights_only=True)",
    "keras.callbacks.ModelCheckpoint(sys.argv[1])",
    "checkpoint = tf.train.Checkpoint()\ncheckpoint.save('a/b')",
    "model.save('m.keras')",
    "model.save(os.path.join(os.environ['YURT_MODEL_DIR'], 'model.keras'))",
    "image.save('picture.png')",
    "keras.optimizers.SGD(learning_rate=0.1)",
    "keras.optimizers.schedules.ExponentialDecay(0.1, 10, decay_rate=0.9)",
    "keras.backend.clear_session()",
    "K.clear_session()",
    "args.lr = 3",
    "opt = parser.parse_args()\nprint(opt.lr)",
    "from torch.optim import Adam\nAdam(lr=0.1)",
    "model.fit(x, y, epochs=2)",
    "pool = Pool(workers=3)",
    "K.mean(a)",
    "tf.keras.losses.mse(a, b)",
    "def reset_states(): pass\nthing.reset_states()",
    "model.save_weights('a.weights.h5')",
    "model.save(args.output)",
    "model.save(os.path.join(args.model_dir, args.name))",
    "p.add_argument('--model', default='m.keras')\nmodel.save(args.model)",
    "out = args.model_dir\nout = os.path.join(out, 'm.keras')\nmodel.save(out)",
]


@pytest.mark.parametrize("line", KERAS_3)
def test_what_keras_3_takes_is_no_reason(tmp_path, line):
    assert facts(tmp_path, f"{HEAD}{line}\n")["keras2"] == []


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("import tensorflow as tf\ntf.estimator.train_and_evaluate(a, b, c)", ["tf.estimator"]),
        ("import tensorflow as tf\ndef main():\n    with tf.Session() as s: pass\nmain()", ["tf.Session"]),
        ("import tensorflow as tf\ntf.contrib.layers.flatten(x)", ["tf.contrib"]),
        ("from tensorflow_core.python.keras import layers", ["tensorflow_core"]),
        ("import tensorflow as tf\nif __name__ == '__main__':\n    tf.estimator.RunConfig()", ["tf.estimator"]),
        ("import tensorflow.compat.v1 as tf\ntf.Session()", []),
        ("import tensorflow as tf\nif old:\n    tf.Session()", []),
        ("try:\n    from tensorflow_core import x\nexcept ImportError:\n    pass", []),
        ("import tensorflow as tf\ntf.compat.v1.Session()", []),
    ],
)
def test_what_tensorflow_has_no_more(tmp_path, text, what):
    assert [each[1] for each in facts(tmp_path, text)["gone"]] == what


def test_modules_beside_the_script_are_read_too(tmp_path):
    found = facts(
        tmp_path,
        "import parts.model\nfrom helper import train\n",
        helper="def train(model):\n    model.fit(1)\n    model.optimizer.lr = 2\n",
    )
    assert found["fits"] == "helper.py:2"
    assert found["keras2"] == [["helper.py:3", "optimizer.lr", True]]


@pytest.mark.parametrize("text", ["def (:", "\0", "é = 1\n", "x = " + "(" * 3000])
def test_a_source_that_cannot_be_read_tells_nothing(tmp_path, text):
    assert facts(tmp_path, text) == {"keras2": [], "gone": []}


def test_imports_are_told_with_their_place(tmp_path):
    found = facts(tmp_path, "import keras\nfrom tf_keras import layers\n")
    assert (found["imports_keras"], found["imports_tf_keras"]) == ("train.py:1", "train.py:2")


@pytest.mark.parametrize(
    ("line", "place"),
    [
        ("keras.losses.Reduction.NONE", "losses.Reduction"),
        ("keras.preprocessing.image.ImageDataGenerator()", "preprocessing.image.ImageDataGenerator"),
        ("from keras.preprocessing.text import Tokenizer", "preprocessing.text"),
        ("keras.backend.mean(a)", "keras.backend.mean"),
        ("keras.losses.mean_squared_error(a, b)", None),
    ],
)
def test_import_keras_has_other_names_than_tf_keras(tmp_path, line, place):
    found = facts(tmp_path, f"import keras\n{line}\n")["keras2"]
    assert [each[1] for each in found] == ([place] if place else [])


@pytest.mark.parametrize(
    ("line", "wants"),
    [
        ("os.environ['TF_USE_LEGACY_KERAS'] = '1'", ["train.py:1", True]),
        ("os.environ.setdefault('TF_USE_LEGACY_KERAS', 'True')", ["train.py:1", True]),
        ("os.environ['TF_USE_LEGACY_KERAS'] = '0'", ["train.py:1", False]),
        ("os.environ['TF_USE_LEGACY_KERAS'] = chosen", None),
        ("os.environ['KERAS_BACKEND'] = 'tensorflow'", None),
    ],
)
def test_a_script_that_chooses_its_keras_itself(tmp_path, line, wants):
    assert facts(tmp_path, line).get("wants_legacy") == wants


@pytest.mark.parametrize("line", ["keras.ops.relu(x)", "from keras import ops", "keras.random.normal((2,))"])
def test_what_only_keras_3_has_is_told(tmp_path, line):
    assert facts(tmp_path, f"import keras\n{line}\n")["keras3"] == "train.py:2"


@pytest.mark.parametrize(
    ("line", "place"),
    [
        ("tf.keras.callbacks.TensorBoard('logs')", "train.py:2"),
        ("tf.summary.scalar('a', 1, step=0)", "train.py:2"),
        ("if args.logs:\n    tf.keras.callbacks.TensorBoard('logs')", None),
        ("tf.summary.create_file_writer('a')", None),
    ],
)
def test_summaries_are_told_where_they_are_sure(tmp_path, line, place):
    assert facts(tmp_path, f"import tensorflow as tf\n{line}\n").get("tensorboard") == place


def test_the_names_are_those_of_the_installed_kerases():
    program = (
        source("keras_names.py").decode()
        + """
import keras, keras._tf_keras.keras as of_tf, tf_keras

def has(module, place, name):
    for part in [*place.split("."), name]:
        module = getattr(module, part, None) if part else module
    return module is not None

legacy = {"legacy"}  # Keras 3 has the module, whose classes only raise
wrong = []
for table, module in ((ONLY_IN_2, of_tf), (ONLY_IN_2_OF_KERAS, keras)):
    for place, names in table.items():
        for name in names.split():
            if not has(tf_keras, place, name) or (has(module, place, name) and name not in legacy):
                wrong.append((module.__name__, place, name))
print(wrong, [name for name in ONLY_IN_3 if not hasattr(keras, name) or hasattr(tf_keras, name)])
"""
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert result.stdout.splitlines()[-1] == "[] []"
