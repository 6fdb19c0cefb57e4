"""Python runs this file at its start where its folder comes first on PYTHONPATH: the script itself stays unchanged.

It sets up `_yurt_finders`, which mends Keras when the script imports it; runs the `sitecustomize` that this one hides
(of a virtual environment, conda, a distribution); and puts the Yurt that travels with the run last on `sys.path`, so
that `from yurt import training` works where Yurt is not installed. YURT_PACKAGES says where that is.
"""

import importlib.machinery
import importlib.util
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))


def finders():
    """The part that waits for Keras, by its path."""
    name = "_yurt_finders"
    if name not in sys.modules:
        spec = importlib.machinery.PathFinder.find_spec(name, [HERE])
        module = sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    return sys.modules[name]


def own(name):
    """A part of the hook."""
    return finders().own(name)


def run_hidden():
    """Run the sitecustomize that this one hides, as Python would have."""
    rest = [entry for entry in sys.path if os.path.abspath(entry or ".") != HERE]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", rest)
    if spec is not None and spec.loader is not None:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


def add_packages():
    """Last, so that an installed Yurt wins."""
    place = os.environ.get("YURT_PACKAGES")
    if place and place not in sys.path:
        sys.path.append(place)


try:
    finders().set_up()
except Exception as error:
    print(f"yurt: Keras is left as it is: {error!r}", file=sys.stderr, flush=True)
add_packages()
run_hidden()
