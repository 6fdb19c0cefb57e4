"""A task that says when it started, and waits: `mark line GENERATION TIME`, in Unix time.

The nodes are processes of one machine here, so all have the same clock.
"""

import os
import time

print("mark line", os.environ.get("YURT_GENERATION", "0"), time.time(), flush=True)
while True:
    time.sleep(60)
