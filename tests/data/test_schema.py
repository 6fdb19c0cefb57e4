"""What a schema refuses, with what would be right; and that it survives its file."""

from __future__ import annotations

import json

import numpy as np
import pytest

from tests.data.samples import every_feature
from yurt.data.errors import DataError
from yurt.data.index import Layout, load_index, load_layout, save_layout
from yurt.data.schema import Feature, Schema


@pytest.mark.parametrize(
    ("make", "message", "hint"),
    [
        (lambda: Feature("flaot32"), "'flaot32' is no dtype of a feature", "did you mean float32?"),
        (lambda: Feature("int64", 3), "a shape is a list of sizes, not 3", "write (3,)"),
        (
            lambda: Feature("int64", (2, None)),
            "only the first size of a shape may be None, not that of (2, None)",
            None,
        ),
        (lambda: Feature("int64", (0,)), "0 is no size of a shape", "sizes are 1 or more; None first: any number"),
        (lambda: Feature("int64", (), "rew"), "stored='rew' is unknown", "did you mean raw?"),
        (
            lambda: Feature("float64", (), "list"),
            "no list of a tf.train.Example holds float64 without loss",
            "stored='raw'",
        ),
        (lambda: Schema({}), "a schema without features describes nothing", None),
        (lambda: Schema({"x": "int46"}), "feature x: 'int46' is no dtype of a feature", "did you mean int64?"),
        (lambda: Schema({"yurt/rows": "int64"}), "the name yurt/rows is Yurt's own", None),
        (lambda: Schema({"x": 3}), "feature x: 3 describes no feature", 'write ("float32", (36, 10)) or "int64"'),
        (lambda: Schema({"window": "int64"}).only(["windwo"]), "there is no feature 'windwo'", "did you mean window?"),
        (
            lambda: Schema.of({"x": np.array([1j])}),
            "column x is complex128, which no feature holds",
            "turn it into numbers or strings",
        ),
    ],
)
def test_mistakes(make, message, hint):
    with pytest.raises(DataError) as raised:
        make()
    assert (str(raised.value), raised.value.hint) == (message, hint)


def test_a_schema_survives_its_file(tmp_path):
    layout = Layout(every_feature(), "gzip", 64)
    save_layout(tmp_path, "set", layout)
    assert load_layout(tmp_path / "set.schema.json") == layout


def test_schemas_are_inferred():
    schema = Schema.of(
        {
            "a": np.zeros((3, 36, 10), np.float32),
            "b": np.arange(3),
            "c": ["x", "y", "z"],
            "d": [[1], [2, 3], []],
            "e": np.array(["x", "y", "z"]),
            "f": [np.zeros((2, 4)), np.zeros((3, 4)), np.zeros((1, 4))],
        }
    )
    assert {name: str(feature) for name, feature in schema.items()} == {
        "a": "float32 (36, 10)",
        "b": "int64",
        "c": "string",
        "d": "float64 (any)",
        "e": "string",
        "f": "float64 (any, 4)",
    }


@pytest.mark.parametrize(
    ("change", "message", "hint"),
    [
        ({"version": 2}, "has version 2 of its format, this Yurt knows 1", "a newer Yurt may have written it"),
        ({"format": "x"}, "is not of the format yurt-data-schema", None),
        ({"pakced": 3}, "a schema has no key 'pakced'", "did you mean packed?"),
        ({"packed": 0}, "packed is 0, not a number of rows", "null is one row a record"),
        ({"compression": "gzp"}, "'gzp' is no compression of TFRecord files", "did you mean gzip?"),
        ({"features": {"x": {"dtype": "int64", "shap": []}}}, "feature x has no key 'shap'", "did you mean shape?"),
        ({"features": {"x": {"shape": []}}}, "feature x has no dtype", None),
        (
            {"features": {"x": {"dtype": "int8", "shape": 3}}},
            "feature x: a shape is a list of sizes, not 3",
            "write (3,)",
        ),
    ],
)
def test_mistakes_in_a_file(tmp_path, change, message, hint):
    file = tmp_path / "set.schema.json"
    file.write_text(json.dumps({**Layout(Schema({"x": "int64"})).as_json(), **change}))
    with pytest.raises(DataError) as raised:
        load_layout(file)
    assert message in str(raised.value)
    assert str(file) in str(raised.value)
    assert raised.value.hint == hint


def test_an_index_that_is_none(tmp_path):
    (tmp_path / "a.index.json").write_text("{")
    with pytest.raises(DataError, match="cannot be read as JSON"):
        load_index(tmp_path / "a.index.json")
