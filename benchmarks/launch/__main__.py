"""All of it, one after the other, on a quiet machine.

python benchmarks/launch [--markdown FILE] [--json FOLDER]
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

PROGRAMS = ("compare", "failure", "footprint")


def main() -> int:
    """Run the three programs; the exit code is the first that is not 0."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--markdown", type=Path, help="write the tables into this file, between their marks")
    parser.add_argument("--json", type=Path, help="write every run into files of this folder")
    options = parser.parse_args()
    codes = []
    for program in PROGRAMS:
        command = [sys.executable, str(Path(__file__).with_name(f"{program}.py"))]
        if options.markdown:
            command += ["--markdown", str(options.markdown)]
        if options.json:
            options.json.mkdir(parents=True, exist_ok=True)
            command += ["--json", str(options.json / f"{program}.json")]
        codes.append(subprocess.run(command, check=False).returncode)
    return next((code for code in codes if code), 0)


if __name__ == "__main__":
    sys.exit(main())
