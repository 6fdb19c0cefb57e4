"""Whether the run's store can be reached from the task's place at all: a firewall would else look like silence."""

from __future__ import annotations

import socket
import time
from typing import Final
from urllib.parse import urlsplit

_ONE_TRY_S: Final = 3.0


def out_of_reach(store: str, within_s: float) -> str | None:
    """What stands between this place and a launcher's store; None where it answers, or refuses: nobody is there then.

    `store` is ``http://host:port``. It takes `within_s` seconds to be sure.
    """
    place = urlsplit(store)
    end = time.monotonic() + within_s
    while True:
        try:
            with socket.create_connection((place.hostname or "", place.port or 80), timeout=_ONE_TRY_S):
                return None
        except ConnectionRefusedError:
            return None
        except OSError as error:
            problem = str(error.strerror or error)
        if time.monotonic() >= end:
            return problem
        time.sleep(0.2)
