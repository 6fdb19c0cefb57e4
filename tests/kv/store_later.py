"""A call that blocks, made in a thread."""

from __future__ import annotations

import threading
import time


class Later:
    """A call in a thread; `result` waits for it and `took_s` says how long it was blocked."""

    def __init__(self, call):
        self._call = call
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        time.sleep(0.05)  # it is blocked by now

    def _run(self):
        start = time.monotonic()
        try:
            self._value = self._call()
        except BaseException as error:
            self._value = error
        self.took_s = time.monotonic() - start

    @property
    def blocked(self):
        return self._thread.is_alive()

    def result(self, timeout_s=5):
        self._thread.join(timeout_s)
        assert not self._thread.is_alive(), "still blocked"
        return self._value
