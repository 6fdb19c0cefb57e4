"""Looks at a Python environment from inside, in a process of its own, and imports nothing heavy.

Run behind the texts of ``keras_names.py`` and ``source_facts.py``, with a script or "" as its argument; prints one JSON
object. Written for any Python from 3.7 on, since it is the task's Python that runs it.
"""

import json
import os
import re
import sys

#: Packages of the trackers that a job file can name.
TRACKERS = ("tensorboard", "mlflow", "mlflow-skinny", "wandb")


def versions():
    """Installed versions by the names of .dist-info folders: no metadata is parsed, nothing is imported."""
    wanted = {
        "tensorflow",
        "tensorflow-cpu",
        "tensorflow-intel",
        "tf-nightly",
        "keras",
        "tf-keras",
        "obstore",
        "tensorboard",
    }
    wanted.update(TRACKERS)
    found = {}
    for folder in sys.path:
        try:
            entries = os.listdir(folder or ".")
        except OSError:
            continue
        for entry in entries:
            match = re.match(r"(.+?)-([^-]+)\.dist-info$", entry)
            if match:
                name = match.group(1).lower().replace("_", "-")
                if name in wanted:
                    found.setdefault(name, match.group(2))
    return found


def main():
    """Print what was found."""
    script = sys.argv[1] if len(sys.argv) > 1 else ""
    found = versions()
    tensorflow = next((found[name] for name in found if name.startswith(("tensorflow", "tf-nightly"))), None)
    print(
        json.dumps(
            {
                "python": ".".join(str(part) for part in sys.version_info[:3]),
                "executable": sys.executable,
                "tensorflow": tensorflow,
                "keras": found.get("keras"),
                "tf_keras": found.get("tf-keras"),
                "obstore": found.get("obstore"),
                "tensorboard": found.get("tensorboard"),
                "packages": {name: found[name] for name in TRACKERS if name in found},
                "source": source_facts(script) if script else {},  # noqa: F821 - source_facts.py stands before this
            }
        )
    )


main()
