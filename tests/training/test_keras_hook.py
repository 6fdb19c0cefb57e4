"""The hook's own ways: it hides nothing, breaks nothing, and knows when to keep out. No TensorFlow is started."""

from __future__ import annotations

import ast
import os
import subprocess
import sys

import pytest

from tests.training.pairs import HOOK


def python(program, *first, code=0, **variables):
    path = os.pathsep.join([str(HOOK), *map(str, first)])
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("TF_", "YURT_", "PYTHON"))}
    result = subprocess.run(
        [sys.executable, "-c", program],
        env={**environment, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1", **variables},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert result.returncode == code, result.stderr
    return result


def test_it_costs_next_to_nothing_and_imports_nothing_heavy():
    told = python(
        "import sys; print(sorted(m for m in sys.modules if m.split('.')[0] in ('json', 'keras', '_yurt_task')))"
    )
    assert told.stdout == "[]\n"
    assert told.stderr == ""


def test_the_sitecustomize_that_it_hides_is_run(tmp_path):
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.ran = 'the other one'\n")
    assert python("import sys; print(sys.ran)", tmp_path).stdout == "the other one\n"


def test_no_name_of_it_can_be_wanted_by_a_script():
    names = {file.stem for file in HOOK.glob("*.py")} - {"sitecustomize"}
    assert all(name.startswith("_yurt_") for name in names)


def test_all_of_it_is_python_3_9():
    for file in HOOK.glob("*.py"):
        ast.parse(file.read_text(), feature_version=(3, 9))


def keras(tmp_path, version, **files):
    """A package that looks like Keras 3 from far away."""
    texts = {
        "__init__.py": "",
        "src/__init__.py": "",
        "src/version.py": f"__version__ = {version!r}\n",
        "src/losses/__init__.py": "",
        "src/losses/loss.py": "class Loss:\n    def __call__(self):\n        return 'as shipped'\n",
        **files,
    }
    for name, text in texts.items():
        file = tmp_path / "keras" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return tmp_path


LOSS = "from keras.src.losses.loss import Loss; print(hasattr(Loss.__call__, '__wrapped__'))"


def test_a_proven_version_is_mended(tmp_path):
    assert python(LOSS, keras(tmp_path, "3.15.7")).stdout == "True\n"


@pytest.mark.parametrize("version", ["3.9.0", "3.14.0", "4.0.0"])
def test_any_other_is_left_alone_and_that_is_said_where_it_matters(tmp_path, version):
    config = '{"cluster": {"worker": ["a:1", "b:2"]}, "task": {"type": "worker", "index": 0}}'
    told = python(LOSS, keras(tmp_path, version), TF_CONFIG=config)
    assert told.stdout == "False\n"
    assert (
        told.stderr == f"yurt: Keras {version} is left as it is: Yurt's mends are proven with 3.10, 3.12, 3.13, 3.15\n"
    )
    assert python(LOSS, tmp_path).stderr == "", "alone it works as shipped"


def test_it_can_be_switched_off(tmp_path):
    assert python(LOSS, keras(tmp_path, "3.15.0"), YURT_HOOK_MENDS="0").stdout == "False\n"


def test_a_mend_that_fails_breaks_no_import(tmp_path):
    broken = keras(tmp_path, "3.15.0", **{"src/losses/loss.py": "other = 1\n"})
    told = python("from keras.src.losses.loss import other; print(other)", broken)
    assert told.stdout == "1\n"
    assert told.stderr.startswith("yurt: keras.src.losses.loss is left as it is: AttributeError")
    assert len(told.stderr.splitlines()) == 1


def test_an_error_of_the_module_itself_is_the_scripts(tmp_path):
    broken = keras(tmp_path, "3.15.0", **{"src/losses/loss.py": "raise ValueError('its own')\n"})
    assert "ValueError: its own" in python("import keras.src.losses.loss", broken, code=1).stderr


def test_a_script_with_a_module_of_the_same_name_keeps_it(tmp_path):
    (tmp_path / "_yurt_losses.py").write_text("raise SystemExit('the wrong one')\n")
    program = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); {LOSS}"
    assert python(program, keras(tmp_path / "k", "3.15.0")).stdout == "True\n"


@pytest.mark.parametrize("alias", ["1", "0"])
def test_in_legacy_mode_keras_is_tf_keras(tmp_path, alias):
    (tmp_path / "tf_keras/layers").mkdir(parents=True)
    (tmp_path / "tf_keras/__init__.py").write_text("from tf_keras import layers\nwho = 'legacy'\n")
    (tmp_path / "tf_keras/layers/__init__.py").write_text("Dense = 2\n")
    keras(tmp_path, "3.15.0", **{"__init__.py": "who = 'three'\n"})
    program = "import keras; print(keras.who)\nif keras.who == 'legacy':\n    import keras.layers, tf_keras.layers\n"
    program += "    from keras.layers import Dense\n    assert keras.layers is tf_keras.layers and keras is tf_keras\n"
    told = python(program, tmp_path, TF_USE_LEGACY_KERAS="1", YURT_HOOK_ALIAS=alias)
    assert told.stdout == {"1": "legacy\n", "0": "three\n"}[alias]
