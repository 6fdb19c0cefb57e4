"""Reads a script, and the modules beside it that it imports, for what they want of Keras and TensorFlow.

Nothing is imported or run: the text is parsed. Written for any Python from 3.7 on; when it is run, `keras_names.py`
stands before it and `probe.py` behind. A claim is made only where the source is plain; a path that is computed is
followed through names, joins, arguments and calls as far as a constant or a name that says "folder", and no claim is
made where there is none.
"""

# ruff: noqa: F821 - keras_names.py stands before this

import ast
import os

MOST_FILES = 60
MOST_BYTES = 1 << 20

GONE_OF_TF = {"estimator": "tf.estimator", "contrib": "tf.contrib", "Session": "tf.Session"}
OPTIMIZERS = {"Adam", "AdamW", "SGD", "RMSprop", "Adagrad", "Adadelta", "Adamax", "Nadam", "Ftrl"}
OTHERS = {"torch", "optax", "flax", "jax", "mxnet"}
SUMMARIES = {"audio", "histogram", "image", "scalar", "text"}
YES = {"1", "true", "True", True}


def source_facts(path):
    """What the source tells; empty where there is none to be read. Places are written ``train.py:12``.

    fits, imports_keras, imports_tf_keras
        Where the script calls `fit`, and imports one of the two Kerases by its own name.
    keras3
        Where it first uses something that Keras 2 never had.
    tensorboard
        Where it surely writes summaries.
    wants_legacy
        ``[place, whether]`` where it sets TF_USE_LEGACY_KERAS itself.
    keras2
        ``[place, what, by manners]`` for each thing that Keras 2 had and Keras 3 has not; the last says whether the
        hook's Keras 2 manners do for it.
    gone
        ``[place, what]`` for each thing that no TensorFlow 2.16 or later has.
    """
    facts = {"keras2": [], "gone": []}
    root = os.path.dirname(os.path.abspath(path))
    queue, seen = [os.path.abspath(path)], set()
    while queue and len(seen) < MOST_FILES:
        file = queue.pop(0)
        if file in seen:
            continue
        seen.add(file)
        try:
            with open(file, encoding="utf-8", errors="replace") as opened:
                tree = ast.parse(opened.read(MOST_BYTES))
        except (OSError, ValueError, SyntaxError, RecursionError):
            continue
        try:
            reader = Reader(tree, os.path.relpath(file, root), facts)
            reader.visit(tree)
            queue += local_modules(reader.imports, root, os.path.dirname(file))
        except RecursionError:
            continue
    return facts


def local_modules(imports, root, folder):
    """The files of imported modules that lie beside the script or beside the importing file."""
    for name in imports:
        for start in (root, folder):
            parts = os.path.join(start, *name.split("."))
            for file in (parts + ".py", os.path.join(parts, "__init__.py")):
                if os.path.isfile(file):
                    yield file


class Reader(ast.NodeVisitor):
    """Reads one file into `facts`."""

    def __init__(self, tree, name, facts):
        self.name, self.facts = name, facts
        self.imports = []
        self.aliases = {}  # name in this file: what it stands for, as in tensorflow.keras.backend
        self.values = {}  # name: the nodes that are assigned to it
        self.arguments = {}  # name of a command-line argument: the call that adds it
        self.functions = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
        self.guards = 0  # how many `if` and `try` we are inside of
        for node in ast.walk(tree):
            if isinstance(node, ast.Assign):
                for target in node.targets:
                    if isinstance(target, ast.Name):
                        self.values.setdefault(target.id, []).append(node.value)
            if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "add_argument":
                for flag in map(constant, node.args):
                    if isinstance(flag, str):
                        self.arguments[flag.lstrip("-").replace("-", "_")] = node

    def place(self, node):
        """``train.py:12``."""
        return "%s:%d" % (self.name, node.lineno)

    def keras2(self, node, what, manners=False):
        """Note something of Keras 2, the first of each kind."""
        if all(what != other for _, other, _ in self.facts["keras2"]):
            self.facts["keras2"].append([self.place(node), what, manners])

    def gone(self, node, what):
        """Note something that TensorFlow has no more, unless the script looks first whether it is there."""
        if not self.guards and all(what != other for _, other in self.facts["gone"]):
            self.facts["gone"].append([self.place(node), what])

    # Imports.

    def visit_Import(self, node):
        """``import a.b as c``."""
        for alias in node.names:
            self.imports.append(alias.name)
            self.aliases[alias.asname or alias.name.split(".")[0]] = (
                alias.name if alias.asname else alias.name.split(".")[0]
            )
            self.imported(node, alias.name)

    def visit_ImportFrom(self, node):
        """``from a.b import c as d``."""
        module = node.module or ""
        for alias in node.names:
            full = "%s.%s" % (module, alias.name) if module else alias.name
            self.imports += [module, full] if module else [alias.name]
            self.aliases[alias.asname or alias.name] = full
            self.imported(node, full)

    def imported(self, node, full):
        """Note what an import says by itself."""
        top = full.split(".")[0]
        if top == "keras" or (top == "tf_keras" and not self.guards):
            self.facts.setdefault("imports_" + top, self.place(node))
        elif top == "tensorflow_core":
            self.gone(node, "tensorflow_core")
        self.chain(node, full.split("."))

    # Uses.

    def visit_If(self, node):
        """What stands under a condition is not held against the script; ``__name__ == "__main__"`` is none."""
        main = any(isinstance(part, ast.Name) and part.id == "__name__" for part in ast.walk(node.test))
        self.guarded(node, 0 if main else 1)

    def visit_Try(self, node):
        """The same for what is tried."""
        self.guarded(node, 1)

    def guarded(self, node, by):
        """Go on inside."""
        self.guards += by
        self.generic_visit(node)
        self.guards -= by

    def dotted(self, node):
        """The parts of ``tf.keras.backend.set_value``, its first name resolved; None for anything else."""
        parts = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name):
            return None
        parts += reversed(self.aliases.get(node.id, node.id).split("."))
        return parts[::-1]

    def visit_Attribute(self, node):
        """Chains of names, from their last one."""
        parts = self.dotted(node)
        if parts is not None:
            self.chain(node, parts)
        names = parts or [last_name(node.value), node.attr]
        if any(two == "lr" and self.is_optimizer(one.lower()) for one, two in zip(names, names[1:])):
            self.keras2(node, "optimizer.lr", True)
        if parts is None:
            self.generic_visit(node)

    def is_optimizer(self, name):
        """Whether a name is most likely an optimizer's; `opt` is as often what argparse gave."""
        given = self.values.get(name, ())
        parsed = any(isinstance(one, ast.Call) and getattr(one.func, "attr", "").startswith("parse_") for one in given)
        return "optim" in name or (name == "opt" and not parsed)

    def chain(self, node, parts):
        """Note what a chain such as ``tensorflow.keras.optimizers.legacy.Adam`` means."""
        if "keras" in parts[:2]:
            self.below_keras(node, parts[parts.index("keras") + 1 :], parts[0] == "keras")
        if parts[:2] == ["tensorflow", "summary"] and parts[-1] in SUMMARIES and not self.guards:
            self.facts.setdefault("tensorboard", self.place(node))
        if parts[0] == "tensorflow" and len(parts) > 1 and parts[1] in GONE_OF_TF:
            self.gone(node, GONE_OF_TF[parts[1]])

    def below_keras(self, node, parts, own):
        """Note what is `parts` below ``keras`` (`own`: imported as such) or ``tensorflow.keras``."""
        if parts and parts[0] in ONLY_IN_3:
            self.facts.setdefault("keras3", self.place(node))
        only_in_2 = ONLY_IN_2_OF_KERAS if own else ONLY_IN_2
        for place, name in ((".".join(parts[:i]), name) for i, name in enumerate(parts)):
            full = (place + "." + name).lstrip(".")
            if name in only_in_2.get(place, "").split():
                self.keras2(node, ("keras." if parts[0] == "backend" else "") + full, full in ONLY_IN_2_BY_MANNERS)
            elif place == "backend" and (name in BACKEND_BY_MANNERS or (own and name not in BACKEND_OF_3)):
                self.keras2(node, "keras." + full, name in BACKEND_BY_MANNERS)

    def visit_Assign(self, node):
        """``os.environ["TF_USE_LEGACY_KERAS"] = "1"``."""
        for target in node.targets:
            if isinstance(target, ast.Subscript):
                index = target.slice
                self.environment(node, constant(getattr(index, "value", index)) or constant(index), node.value)
        self.generic_visit(node)

    def environment(self, node, name, value):
        """Note a choice of Keras that the script makes itself."""
        if name == "TF_USE_LEGACY_KERAS" and constant(value) is not None:
            self.facts.setdefault("wants_legacy", [self.place(node), constant(value) in YES])

    def visit_Call(self, node):
        """Calls that Keras 2 took and Keras 3 refuses."""
        named = {keyword.arg: keyword.value for keyword in node.keywords if keyword.arg}
        parts = self.dotted(node.func) or []
        last = parts[-1] if parts else getattr(node.func, "attr", "")
        if last in ("fit", "fit_generator") and isinstance(node.func, ast.Attribute):
            self.facts.setdefault("fits", self.place(node))
            for name in ("workers", "use_multiprocessing", "max_queue_size"):
                if name in named:
                    self.keras2(node, "fit(%s=)" % name)
        if last == "fit_generator":
            self.keras2(node, "fit_generator")
        if last in OPTIMIZERS and not (parts and parts[0] in OTHERS):
            for name in ("lr", "decay"):
                if name in named:
                    self.keras2(node, "%s(%s=)" % (last, name))
        if last == "reset_states" and isinstance(node.func, ast.Attribute) and last not in self.functions:
            self.keras2(node, "reset_states()", True)
        if last in ("setdefault", "putenv") and len(node.args) == 2:
            self.environment(node, constant(node.args[0]), node.args[1])
        if last == "TensorBoard" and not self.guards:
            self.facts.setdefault("tensorboard", self.place(node))
        if last == "ModelCheckpoint":
            self.checkpoint(node, named)
        if last == "save_weights":
            end = self.end_of(named.get("filepath", node.args[0] if node.args else None))
            if end is not None and not end.endswith((".weights.h5", ".weights.json")):
                self.keras2(node, "save_weights to a path without .weights.h5", True)
        self.saving(node, last, named)
        self.generic_visit(node)

    def checkpoint(self, node, named):
        """``ModelCheckpoint``: Keras 3 takes .keras and .h5, and .weights.h5 for weights alone."""
        if "period" in named:
            self.keras2(node, "ModelCheckpoint(period=)", True)
        path = named.get("filepath", node.args[0] if node.args else None)
        end = self.end_of(path)
        weights = named.get("save_weights_only")
        if weights is None or constant(weights) is False:
            endings = (".keras", ".h5")
        elif constant(weights) is True:
            endings = (".weights.h5",)
        else:
            endings = (".keras", ".h5", "")
        if end is not None and not end.endswith(endings):
            self.keras2(node, "ModelCheckpoint to a path without %s" % " or ".join(endings), True)

    def saving(self, node, last, named):
        """``model.save``: Keras 3 takes .keras and .h5."""
        if last == "save" and isinstance(node.func, ast.Attribute):
            of_model = "save_format" in named or "model" in last_name(node.func.value).lower()
            path = named.get("filepath", node.args[0] if node.args else None)
        elif last == "save_model":
            of_model = True
            path = named.get("filepath", node.args[1] if len(node.args) > 1 else None)
        else:
            return
        if not of_model:
            return
        if "save_format" in named:
            self.keras2(node, "save(save_format=)", True)
        end = self.end_of(path)
        if end is not None and not end.endswith((".keras", ".h5", ".hdf5")):
            self.keras2(node, "model.save to a path without .keras or .h5", True)

    def end_of(self, node, depth=0):
        """The text that a path ends with, as far as the source tells; None where it does not."""
        if node is None or depth > 8:
            return None
        value = constant(node)
        if isinstance(value, str):
            return value
        after = depth + 1
        if isinstance(node, ast.JoinedStr):
            return self.end_of(node.values[-1], after) if node.values else ""
        if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Div)):
            return self.end_of(node.right, after)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
            return self.end_of(node.left, after)
        if isinstance(node, ast.Name):
            return self.end_of_name(node.id, after)
        if isinstance(node, ast.Attribute):
            return self.end_of_argument(node, after)
        if isinstance(node, ast.Subscript):  # os.environ["AIP_MODEL_DIR"]
            return end_by_name(str(constant(getattr(node.slice, "value", node.slice)) or constant(node.slice)))
        if isinstance(node, ast.Call):
            return self.end_of_call(node, after)
        return None

    def end_of_name(self, name, depth):
        """Of all that a name may stand for, an ending that Keras 3 takes, else any; else what the name says."""
        ends = [self.end_of(value, depth) for value in self.values.get(name, ())]
        known = [end for end in ends if end is not None]
        return next((end for end in known if end.endswith((".keras", ".h5"))), known[0] if known else end_by_name(name))

    def end_of_argument(self, node, depth):
        """``args.model_dir``: its default tells, a number has no ending, and a name may say that it is a folder."""
        added = self.arguments.get(node.attr)
        named = {keyword.arg: keyword.value for keyword in added.keywords} if added is not None else {}
        default = self.end_of(named.get("default"), depth)
        if default or getattr(named.get("type"), "id", "") in ("int", "float"):
            return default or "0"
        return end_by_name(node.attr)

    def end_of_call(self, node, depth):
        """Joins and formats end with their last part; a function of the script's own most likely keeps the ending."""
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if name in ("join", "joinpath") and node.args:
            return self.end_of(node.args[-1], depth)
        if name in ("str", "Path", "fspath", "abspath", "expanduser") and node.args:
            return self.end_of(node.args[-1], depth)
        if name == "format" and isinstance(node.func, ast.Attribute):
            return self.end_of(node.func.value, depth)
        if name in ("getenv", "get") and node.args:
            return end_by_name(str(constant(node.args[0])))
        if name in self.functions:
            return next((end for end in (self.end_of(arg, depth) for arg in node.args) if end), None)
        return None


def constant(node):
    """A constant's value; None for anything else. Python 3.7 has other nodes for it."""
    return (
        getattr(node, "value", getattr(node, "s", None))
        if type(node).__name__
        in (
            "Constant",
            "Str",
            "NameConstant",
        )
        else None
    )


def end_by_name(name):
    """A folder's ending where a name such as ``AIP_MODEL_DIR`` says that it is one; None for any other."""
    parts = name.lower().replace("directory", "dir").replace("folder", "dir").split("_")
    return "/" if parts[-1].endswith("dir") else None


def last_name(node):
    """``model`` of ``self.model`` and of ``model``."""
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
