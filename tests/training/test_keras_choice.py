"""Which Keras a script gets, as a table."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.contract.test_decide import run
from tests.training.pairs import HOOK
from yurt.agent.foreign_source import HOOK_FILES, hook_folder
from yurt.agent.keras_choice import choose, proven
from yurt.agent.verdicts import classify, wanting_legacy_keras

KERAS_2 = [["train.py:3", "optimizer.lr", True]]
KERAS_2_NO_MANNERS = [["train.py:3", "fit(workers=)", False]]
FOUND = {"tensorflow": "2.21.0", "keras": "3.15.1", "tf_keras": "2.21.0", "executable": "python"}
NEEDS = {"fits": "train.py:9", "keras2": KERAS_2, "gone": []}


def chosen(spec=None, environment=None, *, again=False, task=None, source=None, **found):
    spec = spec or run()
    values = {**FOUND, "source": source or {"fits": "train.py:9", "keras2": [], "gone": []}, **found}
    return choose(spec, spec.task(task or spec.deciding), values, environment or {}, again=again)


def test_the_table_of_the_hook_is_read():
    assert proven() == ("3.10", "3.12", "3.13", "3.15")


CHOICES = [
    # keras, source's wish, Keras, tf_keras: what follows
    ("auto", None, "3.15.1", "2.21.0", "mended"),
    ("auto", None, "3.15.1", None, "mended"),
    ("auto", KERAS_2, "3.15.1", "2.21.0", "legacy"),
    ("auto", KERAS_2, "3.15.1", None, "manners"),
    ("auto", KERAS_2_NO_MANNERS, "3.15.1", None, "refused"),
    ("auto", None, "3.9.2", "2.21.0", "legacy"),
    ("auto", None, "3.14.0", None, "refused"),
    ("auto", None, "2.15.0", None, "nothing"),
    ("patched", None, "3.15.1", "2.21.0", "mended"),
    ("patched", KERAS_2, "3.15.1", "2.21.0", "manners"),
    ("patched", None, "3.9.2", "2.21.0", "refused"),
    ("legacy", None, "3.15.1", "2.21.0", "legacy"),
    ("legacy", None, "3.15.1", None, "refused"),
    ("off", KERAS_2, "3.9.2", None, "off"),
]


@pytest.mark.parametrize(("keras", "wish", "version", "tf_keras", "follows"), CHOICES)
def test_the_choice(keras, wish, version, tf_keras, follows):
    source = {"fits": "train.py:9", "keras2": wish or [], "gone": []}
    choice = chosen(run(keras=keras), keras=version, tf_keras=tf_keras, source=source)
    seen = (
        "refused"
        if choice.problem
        else "off"
        if not choice.hook
        else "legacy"
        if choice.environment.get("TF_USE_LEGACY_KERAS") == "1"
        else "manners"
        if choice.environment.get("YURT_HOOK_MANNERS") == "1"
        else "mended"
        if any("mended" in note for note in choice.notes)
        else "nothing"
    )
    assert seen == follows
    if follows == "refused":
        assert "pip install tf_keras~=2.21.0" in choice.hint


def test_what_is_said_names_the_place_and_the_reason():
    assert chosen().notes == ("Keras 3.15.1, mended for multi-worker-mirrored",)
    note = chosen(source=NEEDS).notes[0]
    assert note == "legacy Keras 2.21.0 (TF_USE_LEGACY_KERAS=1): train.py:3: optimizer.lr"
    refused = chosen(source={**NEEDS, "keras2": KERAS_2_NO_MANNERS}, tf_keras=None)
    assert refused.problem == "this job needs legacy Keras (train.py:3: fit(workers=)), which is not installed"


def test_what_tensorflow_has_no_more_is_refused():
    choice = chosen(source={"keras2": [], "gone": [["train.py:4", "tf.estimator"]]})
    assert choice.problem == "train.py:4 uses tf.estimator, which TensorFlow 2.21.0 has no more"


@pytest.mark.parametrize(
    ("facts", "why"),
    [
        ({"wants_legacy": ["train.py:2", True]}, "train.py:2 sets TF_USE_LEGACY_KERAS"),
        ({"imports_tf_keras": "train.py:3"}, "train.py:3 imports it"),
    ],
)
def test_a_script_that_asks_for_legacy_keras_gets_it(facts, why):
    choice = chosen(source={"keras2": [], "gone": [], **facts})
    assert choice.notes == (f"legacy Keras 2.21.0 (TF_USE_LEGACY_KERAS=1): {why}",)
    assert choice.environment["YURT_HOOK_ALIAS"] == "0" if "wants_legacy" in facts else True
    assert "is not installed" in chosen(source={"keras2": [], "gone": [], **facts}, tf_keras=None).problem


@pytest.mark.parametrize(("installed", "said"), [(None, True), ("2.21.0", False)])
def test_a_missing_tensorboard_is_said_before_the_script_fails_at_it(installed, said):
    source = {"keras2": [], "gone": [], "tensorboard": "train.py:8"}
    note = "train.py:8 writes for TensorBoard, which is not installed: python -m pip install tensorboard"
    assert (note in chosen(source=source, tensorboard=installed).notes) is said
    assert note not in chosen(tensorboard=installed).notes


def test_a_script_with_things_of_both_kerases_stays_with_keras_3():
    choice = chosen(source={**NEEDS, "keras3": "train.py:7"})
    assert choice.environment == {"YURT_HOOK_MANNERS": "1"}
    assert "(train.py:3: optimizer.lr), since train.py:7 needs Keras 3" in choice.notes[0]


def test_no_trained_model_is_lost_to_the_ending_of_its_path():
    assert chosen().environment == {"YURT_HOOK_MANNERS": "saving"}
    assert chosen(run(keras="patched")).environment == {}


def test_a_choice_of_the_persons_own_is_left_alone():
    choice = chosen(environment={"TF_USE_LEGACY_KERAS": "0"}, source=NEEDS)
    assert (choice.environment, choice.notes, choice.hook) == ({}, (), True)


@pytest.mark.parametrize("roles", [{"worker": 1}, {"worker": 1, "evaluator": 1}])
def test_one_worker_takes_keras_as_it_is(roles):
    choice = chosen(run(roles), source=NEEDS)
    assert (choice.environment, choice.notes, choice.hook, choice.may_turn) == ({}, (), True, True)


def test_a_standard_server_gets_no_hook():
    spec = run({"chief": 1, "worker": 1, "ps": 1})
    spec = replace(spec, tasks=tuple(replace(t, command=None) if t.role != "chief" else t for t in spec.tasks))
    assert not chosen(spec, task="ps/0").hook
    assert chosen(spec, task="chief/0").notes == ("Keras 3.15.1, mended for parameter-server",)


def test_a_python_that_reads_no_pythonpath_cannot_be_mended():
    spec = run()
    spec = replace(spec, tasks=tuple(replace(t, command=("python", "-uE", "train.py")) for t in spec.tasks))
    assert "legacy Keras" in chosen(spec).notes[0]
    assert "-uE" in chosen(spec).notes[0]


def test_a_loop_of_its_own_is_not_refused():
    choice = chosen(source={"keras2": [], "gone": []}, keras="3.14.0", tf_keras=None)
    assert choice.problem is None


def test_the_second_try_is_legacy_for_every_task():
    choice = chosen(again=True)
    assert choice.environment == {"TF_USE_LEGACY_KERAS": "1"}
    assert not choice.may_turn
    assert chosen(again=True, tf_keras=None).problem


def test_an_evaluator_never_turns_the_run():
    assert not chosen(run({"worker": 2, "evaluator": 1}), task="evaluator/0").may_turn


TEXTS = [
    "ValueError: The filepath provided must end in `.keras` (Keras model format). Received: filepath=a",
    "ValueError: Invalid filepath extension for saving. Please add either a `.keras` extension",
    "AttributeError: module 'keras.api.utils' has no attribute 'experimental'",
    "AttributeError: module 'keras._tf_keras.keras.backend' has no attribute 'set_session'",
    "ImportError: `keras.optimizers.legacy` is not supported in Keras 3. When using `tf.keras`",
    "ValueError: A KerasTensor cannot be used as input to a TensorFlow function.",
    "AttributeError: 'SGD' object has no attribute 'lr'",
    "TypeError: TensorFlowTrainer.fit() got an unexpected keyword argument 'workers'",
    "TypeError: ModelCheckpoint.__init__() got an unexpected keyword argument 'period'",
    "ValueError: Argument(s) not recognized: {'lr': 0.1}",
    "AttributeError: 'Mean' object has no attribute 'reset_states'. Did you mean: 'reset_state'?",
    "AttributeError: 'Adam' object has no attribute 'minimize'",
    "AttributeError: module 'tensorflow.keras.layers' has no attribute 'DenseFeatures'",
    "ImportError: cannot import name 'DenseFeatures' from 'tensorflow.keras.layers' (/x/__init__.py)",
    "ModuleNotFoundError: No module named 'tensorflow.keras.experimental'",
    "ModuleNotFoundError: No module named 'keras.preprocessing.text'",
    "ValueError: The filename must end in `.weights.h5`. Received: filepath=/tmp/ckpt",
    "ValueError: The `save_format` argument is deprecated in Keras 3.",
    "ValueError: File format not supported: filepath=a/b. Keras 3 only supports V3 `.keras` files",
    "NotImplementedError: Layer `add_metric()` method is deprecated.",
    "TypeError: Trainer.compile() got an unexpected keyword argument 'experimental_run_tf_function'",
    "TypeError: TensorBoard.__init__() got an unexpected keyword argument 'write_grads'",
    "ValueError: Unrecognized keyword arguments passed to BatchNormalization: {'fused': True}",
    "ValueError: Invalid value for argument `reduction`. Expected one of {'sum'}. Received: reduction=auto",
]


@pytest.mark.parametrize("text", TEXTS)
def test_an_error_of_a_script_of_the_keras_2_years_asks_for_legacy_keras(text):
    end = classify(1, stopped=False, out_of_memory=False, lines=("Traceback", text, "bye"), attempt=0)
    wanting = wanting_legacy_keras(end, {"epoch": 1, "step": 3, "steps": 8})
    assert (wanting.reason, wanting.message) == ("wants-legacy-keras", text)


def test_set_value_counts_only_where_keras_itself_fails():
    text = "AttributeError: 'str' object has no attribute 'name'"
    for lines, reason in [
        ((text,), "exit"),
        (('  File "/x/keras/src/legacy/backend.py", line 1', text), "wants-legacy-keras"),
    ]:
        end = classify(1, stopped=False, out_of_memory=False, lines=lines, attempt=0)
        assert wanting_legacy_keras(end, {}).reason == reason


@pytest.mark.parametrize(
    ("code", "stopped", "text", "progress"),
    [
        (1, False, "ValueError: something else", {}),
        (1, False, "ModuleNotFoundError: No module named 'keras_tuner'", {}),
        (1, False, "ImportError: cannot import name 'x' from 'kerastools'", {}),
        (1, False, TEXTS[0], {"epoch": 2}),
        (1, False, TEXTS[0], {"epoch": 1, "step": 8, "steps": 8}),
        (0, False, TEXTS[0], {}),
        (1, True, TEXTS[0], {}),
        (-9, False, TEXTS[0], {}),
    ],
)
def test_nothing_else_asks_for_it(code, stopped, text, progress):
    end = classify(code, stopped=stopped, out_of_memory=False, lines=(text,), attempt=0)
    assert wanting_legacy_keras(end, progress) == end


def test_the_hook_travels_whole(tmp_path):
    assert set(HOOK_FILES) == {file.name for file in HOOK.glob("*.py")}
    folder = hook_folder(str(tmp_path))
    for name in HOOK_FILES:
        assert (tmp_path / "hook" / name).read_bytes() == (HOOK / name).read_bytes()
    assert folder == str(tmp_path / "hook")
