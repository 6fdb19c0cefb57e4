"""What the two pods of a proof run: each says its line to the other, by name. Sent as text, for any Python from 3.6 on.

The last line that it prints, and its termination message, are what it has found, as JSON.
"""

import json
import os
import socket
import sys
import threading
import time
from pathlib import Path

INDEX = int(os.environ["JOB_COMPLETION_INDEX"])
#: The names of both, {} for the index; the port on which each listens; seconds for everything.
PEER = os.environ["PROOF_HOST"].format(1 - INDEX)
PORT = int(os.environ["PROOF_PORT"])
END = time.time() + float(os.environ["PROOF_WITHIN_S"])
NODE = os.environ.get("PROOF_NODE", "")
HELLO = "yurt-proof"

heard = threading.Event()  # the peer has said its line here
looked = threading.Event()  # the one who asked for the proof has, through a forwarded port


def serve() -> None:
    """Answer whoever comes, each in a thread of its own."""
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("0.0.0.0", PORT))  # noqa: S104 - peers are on other machines
    listener.listen(8)
    while True:
        connection, _ = listener.accept()
        threading.Thread(target=answer, args=(connection,), daemon=True).start()


def answer(connection: socket.socket) -> None:
    """One line for one line; who says it is noted."""
    with connection:
        connection.settimeout(10)
        try:
            words = connection.recv(200).decode().split()
            if words[:1] != [HELLO]:
                return
            connection.sendall(f"{HELLO} {INDEX} {NODE}\n".encode())
        except (OSError, ValueError):
            return
        (looked if words[1] == "doctor" else heard).set()


def call(found: "dict[str, object]") -> None:
    """Say the line to the peer, again and again until it answers: its name may not be known yet."""
    trouble = "nobody was asked"
    began = time.time()
    while time.time() < END:
        try:
            host, port = socket.getaddrinfo(PEER, PORT, type=socket.SOCK_STREAM)[0][4][:2]
            found.setdefault("name_after_s", round(time.time() - began, 1))
            with socket.create_connection((str(host), int(port)), timeout=3) as connection:
                connection.sendall(f"{HELLO} {INDEX} {NODE}\n".encode())
                connection.settimeout(3)
                words = connection.recv(200).decode().split()
            if words[:1] == [HELLO]:
                found["peer_node"] = words[2] if len(words) > 2 else ""
                return
            trouble = "the connection was closed without a word"
        except socket.gaierror as error:
            trouble = f"its name is not known: {error}"
        except OSError as error:
            trouble = f"it does not answer at port {PORT}: {error}"
        time.sleep(0.3)
    found["peer"] = f"{PEER}: {trouble}"


def api_server(found: "dict[str, object]") -> None:
    """Whether a pod reaches the API server, as the operator and the keeper of a TFJob must."""
    host, port = os.environ.get("KUBERNETES_SERVICE_HOST"), os.environ.get("KUBERNETES_SERVICE_PORT", "443")
    if not host:
        return
    try:
        socket.create_connection((host, int(port)), timeout=5).close()
    except OSError as error:
        found["api"] = f"{host}:{port}: {error}"


def main() -> int:
    """0 where both have said their line."""
    found: dict[str, object] = {"index": INDEX, "node": NODE, "python": "{}.{}.{}".format(*sys.version_info[:3])}
    threading.Thread(target=serve, daemon=True).start()
    api_server(found)
    call(found)
    if "peer" not in found and not heard.wait(max(END - time.time(), 0)):
        found["peer"] = f"{PEER} did not say its line here"
    if INDEX == 0 and "peer" not in found:
        looked.wait(min(max(END - time.time(), 0), 15))
    text = json.dumps(found)
    print(text, flush=True)
    try:
        Path("/dev/termination-log").write_text(text)
    except OSError:
        pass  # it stands in the log as well
    return 1 if "peer" in found else 0


if __name__ == "__main__":
    sys.exit(main())
