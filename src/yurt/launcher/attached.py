"""``python -m yurt.launcher.attached RUN``: see `yurt.launcher.attaching`."""

import sys

from yurt.launcher.attaching import serve_attached

if __name__ == "__main__":
    sys.exit(serve_attached(sys.argv[1]))
