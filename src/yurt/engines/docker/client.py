"""Speaks to the Docker daemon through its maintained Python client: the engine's only I/O with it."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Final

from yurt.errors import EngineError

try:
    import docker
    import docker.errors
    import requests
except ImportError as _missing:
    raise EngineError(
        f"the Docker engine needs Docker's Python client: {_missing}", hint="pip install 'yurt[docker]'"
    ) from _missing

DEFAULT_ADDRESS: Final = "unix:///var/run/docker.sock"
#: Seconds that the daemon has for an answer.
_ANSWER_S: Final = 60
#: How the client (7.2) begins when it could not connect at all.
_NOT_CONNECTED: Final = "Error while fetching server API version"


class Daemon:
    """The daemon of this machine, at ``DOCKER_HOST`` or its usual socket.

    Every method raises EngineError, in one sentence, where the daemon cannot be spoken to or refuses.
    """

    def __init__(self) -> None:
        self.address = os.environ.get("DOCKER_HOST") or DEFAULT_ADDRESS
        if not self.address.startswith("unix://"):
            raise EngineError(
                f"the Docker daemon at {self.address} (DOCKER_HOST) is reached over the network",
                hint="containers have to see the run's folder: unset DOCKER_HOST, or run Yurt where the daemon is",
            )
        with self._told():
            self._api = docker.APIClient(base_url=self.address, version="auto", timeout=_ANSWER_S)

    def info(self) -> Mapping[str, Any]:
        """What `docker info` shows."""
        with self._told():
            found: Mapping[str, Any] = self._api.info()
        return found

    def has_image(self, name: str) -> bool:
        """Whether the image is on this machine."""
        with self._told():
            try:
                self._api.inspect_image(name)
            except docker.errors.ImageNotFound:
                return False
        return True

    def image_config(self, name: str) -> Mapping[str, Any] | None:
        """An image's own settings, such as Entrypoint, Cmd and WorkingDir; None where it is not on this machine."""
        with self._told():
            try:
                found: Mapping[str, Any] = self._api.inspect_image(name)
            except docker.errors.ImageNotFound:
                return None
        return found.get("Config") or {}

    def create_network(self, request: Mapping[str, Any]) -> None:
        """Make a network from ``Name``, ``Driver`` and ``Labels``."""
        with self._told():
            self._api.create_network(request["Name"], driver=request["Driver"], labels=dict(request["Labels"]))

    def gateway(self, network: str) -> str | None:
        """This machine's address in a network; None where it has none there."""
        with self._told():
            found = self._api.inspect_network(network)
        for row in (found.get("IPAM") or {}).get("Config") or ():
            if row.get("Gateway"):
                return str(row["Gateway"]).partition("/")[0]
        return None

    def networks(self, label: str) -> list[Mapping[str, Any]]:
        """The networks that carry a label (or ``label=value``), as the API lists them."""
        with self._told():
            found: list[Mapping[str, Any]] = self._api.networks(filters={"label": label})
        return found

    def remove_network(self, name: str) -> None:
        """Remove a network; one that is gone is no error."""
        with self._told(), _gone_is_fine():
            self._api.remove_network(name)

    def start(self, name: str | None, container: Mapping[str, Any], text: str) -> str:
        """Make a container and start it, with `text` on its standard input; its id."""
        with self._told():
            made = self._api.create_container_from_config(dict(container), name)
            found: str = made["Id"]
            try:
                stream = self._api.attach_socket(found, params={"stdin": 1, "stream": 1})
                self._api.start(found)
                _write_all(stream, text.encode())
            except BaseException:
                with _gone_is_fine():
                    self._api.remove_container(found, force=True, v=True)
                raise
        return found

    def containers(self, label: str) -> list[Mapping[str, Any]]:
        """The containers that carry a label (or ``label=value``), ended ones too, as the API lists them."""
        with self._told():
            found: list[Mapping[str, Any]] = self._api.containers(all=True, filters={"label": label})
        return found

    def state(self, container: str) -> Mapping[str, Any] | None:
        """``State`` of a container: ``Status``, ``ExitCode``, ``OOMKilled``, ``Error``; None where it is gone."""
        with self._told():
            try:
                found: Mapping[str, Any] = self._api.inspect_container(container)["State"]
            except docker.errors.NotFound:
                return None
        return found

    def wait(self, container: str, within_s: float) -> int:
        """The exit code of a container."""
        with self._told():
            return int(self._api.wait(container, timeout=within_s)["StatusCode"])

    def remove(self, container: str) -> None:
        """Kill a container and remove it, with the volumes that only it has; one that is gone is no error."""
        with self._told(), _gone_is_fine():
            self._api.remove_container(container, force=True, v=True)

    def build(self, context: IO[bytes], tag: str, say: Callable[[str], None]) -> None:
        """Build an image from a tar archive that holds a Dockerfile; `say` gets the daemon's lines."""
        with self._told():
            for row in self._api.build(
                fileobj=context, custom_context=True, tag=tag, rm=True, forcerm=True, decode=True
            ):
                if "error" in row:
                    raise EngineError(f"the image could not be built: {str(row['error']).strip()}")
                if text := str(row.get("stream", "")).strip():
                    say(text)

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Foreign exceptions in our words: the one place that knows them."""
        try:
            yield
        except docker.errors.APIError as error:
            raise _refused(error) from error
        except docker.errors.DockerException as error:
            if _NOT_CONNECTED not in str(error):
                raise EngineError(f"Docker's client refused: {error}") from error
            raise self._unreachable(error) from error
        except (requests.RequestException, OSError) as error:
            raise self._unreachable(error) from error

    def _unreachable(self, error: BaseException) -> EngineError:
        path = Path(self.address.removeprefix("unix://"))
        if not path.exists():
            return DaemonAway(
                f"no Docker daemon is on this machine: there is no {path}",
                hint="start it (sudo systemctl start docker), or set DOCKER_HOST to its socket",
            )
        if not os.access(path, os.R_OK | os.W_OK):
            return EngineError(
                f"you may not use the Docker daemon: no permission on {path}",
                hint="sudo usermod -aG docker $USER, then log in again",
            )
        if isinstance(error, requests.Timeout):
            return DaemonAway(f"the Docker daemon at {path} did not answer within {_ANSWER_S} s")
        return DaemonAway(
            f"the Docker daemon does not answer at {path}", hint="look at `docker info` and the daemon's log"
        )


class DaemonAway(EngineError):
    """Nobody answers: it may be starting again."""

    retryable = True


_MEANINGS: Final[Sequence[tuple[str, str, str | None]]] = (
    (
        "could not select device driver",
        "the Docker daemon cannot give GPUs to containers",
        "install the NVIDIA Container Toolkit, or leave out `gpus`",
    ),
    (
        '"/bin/sh"',
        "the image has no /bin/sh, which starts the agent",
        "take an image with a shell, such as python:3.11-slim with TensorFlow (`yurt image build JOB.yaml`)",
    ),
    (
        "address pools have been fully subnetted",
        "the Docker daemon has no addresses left for another network",
        "`docker network prune` removes unused ones; or engines: {docker: {network: NAME}} takes one that is there",
    ),
)


def _refused(error: docker.errors.APIError) -> EngineError:
    """The daemon's own sentence, or ours where that is hard to read."""
    text = str(error.explanation or error).strip()
    for words, message, hint in _MEANINGS:
        if words in text:
            return EngineError(message, hint=hint)
    return EngineError(f"the Docker daemon refused: {text.splitlines()[0] if text else error.status_code}")


@contextmanager
def _gone_is_fine() -> Iterator[None]:
    try:
        yield
    except docker.errors.NotFound:
        pass
    except docker.errors.APIError as error:
        if "already in progress" not in str(error.explanation):  # somebody else removes it
            raise


def _write_all(stream: Any, data: bytes) -> None:
    """Write to a container's standard input and close it. The client hands out a file object around the socket."""
    raw = getattr(stream, "_sock", stream)
    try:
        raw.sendall(data)
        raw.shutdown(socket.SHUT_WR)
    except BrokenPipeError:
        pass  # it has ended already: its state tells
    finally:
        stream.close()
