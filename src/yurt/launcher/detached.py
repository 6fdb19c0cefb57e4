"""``python -m yurt.launcher.detached``: see `yurt.launcher.start`."""

import sys

from yurt.launcher.start import serve_detached

if __name__ == "__main__":
    sys.exit(serve_detached())
