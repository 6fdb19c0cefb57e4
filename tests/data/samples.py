"""Rows of every dtype and kind of shape, small."""

from __future__ import annotations

import numpy as np

from yurt.data.schema import DTYPES, Feature, Schema

NUMBERS = [dtype for dtype in DTYPES if dtype != "string"]


def values(dtype: str, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """An array of a dtype with its extremes in it."""
    if dtype == "string":
        flat = [bytes(rng.integers(0, 256, rng.integers(0, 9), np.uint8)) for _ in range(int(np.prod(shape)))]
        made = np.empty(len(flat), object)
        made[:] = flat
        return made.reshape(shape)
    if dtype == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    if dtype.startswith("float"):
        return rng.normal(size=shape).astype(dtype)
    info = np.iinfo(dtype)
    made = rng.integers(info.min, info.max, shape, dtype=dtype, endpoint=True)
    if made.size > 2:
        made.reshape(-1)[:3] = info.min, info.max, 0
    return made


def every_feature() -> Schema:
    """Each dtype as scalar, fixed array, array of lists and list of arrays, in the form it is stored by itself."""
    features = {}
    for dtype in DTYPES:
        features[f"{dtype}_scalar"] = Feature(dtype)
        features[f"{dtype}_fixed"] = Feature(dtype, (2, 3))
        features[f"{dtype}_any"] = Feature(dtype, (None,))
        features[f"{dtype}_any_of_2"] = Feature(dtype, (None, 2))
    features["int32_raw"] = Feature("int32", (4,), "raw")
    features["float32_raw"] = Feature("float32", (None,), "raw")
    features["uint8_list"] = Feature("uint8", (5,), "list")
    return Schema(features)


def columns(schema: Schema, rows: int, seed: int = 0) -> dict:
    rng = np.random.default_rng(seed)
    made = {}
    for name, feature in schema.items():
        if feature.variable:
            sizes = rng.integers(0, 4, rows)
            made[name] = [values(feature.dtype, (int(size), *feature.row_shape), rng) for size in sizes]
        else:
            made[name] = values(feature.dtype, (rows, *feature.row_shape), rng)
    return made


def same(one, other) -> bool:
    """Two rows of a feature, NaN and all."""
    a, b = np.asarray(one, getattr(one, "dtype", object)), np.asarray(other, getattr(other, "dtype", object))
    return a.shape == b.shape and a.tolist() == b.tolist()
