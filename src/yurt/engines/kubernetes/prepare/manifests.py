"""Manifests of others: the training operator's from where its documentation says, or a folder, a file, a URL.

Nothing of them is part of Yurt. A release is taken as the documentation of Kubeflow's training operator (1.9) says::

    kubectl apply --server-side -k "github.com/kubeflow/training-operator.git/manifests/overlays/standalone?ref=v1.9.3"

which needs kubectl (or kustomize), git and a way to github.com; a folder with a kustomization needs the first alone.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from yurt.errors import EngineError, UsageError

RELEASE: Final = "1.9.3"
_REFERENCE: Final = "github.com/kubeflow/training-operator.git/manifests/overlays/standalone?ref=v{release}"
_RELEASE_FORM: Final = re.compile(r"v?(\d+\.\d+\.\d+(?:-[\w.]+)?)")
_KUSTOMIZATIONS: Final = ("kustomization.yaml", "kustomization.yml", "Kustomization")
_WITHIN_S: Final = 300
_MOST_BYTES: Final = 64 << 20
#: Kinds that others lean on, in the order in which they must be there.
_FIRST: Final = ("Namespace", "CustomResourceDefinition", "ServiceAccount", "ClusterRole", "Role")
#: A webhook that is registered before its pod runs would refuse what follows it.
_LAST: Final = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")

Value = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Source:
    """Where the manifests are from; `release` where they are of one that the user has named."""

    text: str
    release: str | None = None

    def in_words(self) -> str:
        """For people."""
        return f"release {self.release} ({_REFERENCE.format(release=self.release)})" if self.release else self.text


def source_of(text: str) -> Source:
    """Of ``1.9.3``, a folder, a file, or a URL. Raises UsageError for what is none of these."""
    if found := _RELEASE_FORM.fullmatch(text):
        return Source(text, found[1])
    if _is_url(text) or _is_reference(text) or Path(text).exists():
        return Source(text)
    hint = f"write a release such as {RELEASE}, a folder, a file of YAML, or a URL"
    raise UsageError(f"{text}: there is no such folder or file, and it is no release or URL", hint=hint)


def read(source: Source) -> list[Value]:
    """All objects, in the order in which they can be made. Raises EngineError, in one sentence."""
    if source.release:
        text = _kustomized(_REFERENCE.format(release=source.release))
    elif _is_reference(source.text):
        text = _kustomized(source.text)
    elif _is_url(source.text):
        text = _fetched(source.text)
    else:
        text = _from_path(Path(source.text))
    found = in_order(parsed(text, source.text))
    if not found:
        raise UsageError(f"{source.in_words()} holds no objects")
    return found


def defines_tfjobs(value: Value) -> bool:
    """Whether the object is the definition of TFJobs."""
    return bool(value["kind"] == "CustomResourceDefinition" and value["metadata"]["name"] == "tfjobs.kubeflow.org")


def parsed(text: str, where: str) -> list[Value]:
    """The objects of YAML or JSON documents; Lists are taken apart. Raises UsageError."""
    import yaml

    found: list[Value] = []
    try:
        documents = list(yaml.load_all(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)))
    except yaml.YAMLError as error:
        raise UsageError(f"{where} is no YAML: {' '.join(str(error).split())}") from error
    for each in documents:
        if each is None:
            continue
        if not isinstance(each, dict) or not isinstance(each.get("kind"), str) or "apiVersion" not in each:
            raise UsageError(f"{where} holds something that is no object of Kubernetes: it has no kind or apiVersion")
        found += each.get("items") or () if each["kind"].endswith("List") and "items" in each else [each]
    return found


def in_order(objects: Sequence[Value]) -> list[Value]:
    """Namespaces and definitions first, webhooks last, the rest as it came."""

    def rank(each: Value) -> int:
        kind = each["kind"]
        if kind in _FIRST:
            return _FIRST.index(kind)
        return len(_FIRST) + (2 if kind in _LAST else 1)

    return sorted(objects, key=rank)


def _from_path(path: Path) -> str:
    if path.is_dir():
        if any((path / name).exists() for name in _KUSTOMIZATIONS):
            return _kustomized(str(path))
        files = sorted([*path.glob("*.yaml"), *path.glob("*.yml"), *path.glob("*.json")])
        if not files:
            raise UsageError(f"the folder {path} has no kustomization and no YAML files")
        return "\n---\n".join(_text(each) for each in files)
    if path.name in _KUSTOMIZATIONS:
        return _kustomized(str(path.parent))
    return _text(path)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} cannot be read: {error}") from error


def _kustomized(reference: str) -> str:
    """What kubectl's own kustomize makes of it; of a remote reference it takes a copy by git first."""
    kubectl, kustomize = shutil.which("kubectl"), shutil.which("kustomize")
    if not kubectl and not kustomize:
        hint = "install kubectl, or name a file or a URL of plain YAML: kubectl kustomize ... > operator.yaml"
        raise EngineError(f"{reference} is a kustomization, and there is no kubectl here to read it", hint=hint)
    command = [kubectl, "kustomize", reference] if kubectl else [str(kustomize), "build", reference]
    # Of a place without network nothing is to be asked: git would wait for a name.
    env = {**os.environ, "GIT_TERMINAL_PROMPT": "0"}
    try:
        ended = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=_WITHIN_S,
            check=False,
            env=env,
            cwd=tempfile.gettempdir() if "?" in reference else None,
            stdin=subprocess.DEVNULL,
        )
    except subprocess.TimeoutExpired:
        raise EngineError(
            f"the manifests did not come from {reference} within {_WITHIN_S} s", hint=_ELSEWHERE
        ) from None
    except OSError as error:
        raise EngineError(f"{command[0]} cannot be run: {error}") from error
    if ended.returncode:
        words = " ".join((_git_words(ended.stderr) or ended.stderr).split())[-400:]
        raise EngineError(f"the manifests cannot be had from {reference}: {words}", hint=_ELSEWHERE)
    return ended.stdout


def _git_words(text: str) -> str:
    """The line in which git says what is wrong, out of all that is said around it."""
    return next((line.partition("fatal: ")[2] for line in text.splitlines() if "fatal: " in line), "")


def _fetched(url: str) -> str:
    try:
        with urllib.request.urlopen(url, timeout=60) as answer:  # noqa: S310 - http and https alone: see _is_url
            data: bytes = answer.read(_MOST_BYTES + 1)
    except (urllib.error.URLError, OSError, ValueError) as error:
        reason = getattr(error, "reason", error)
        raise EngineError(f"the manifests cannot be had from {url}: {reason}", hint=_ELSEWHERE) from error
    if len(data) > _MOST_BYTES:
        raise UsageError(f"{url} is larger than {_MOST_BYTES >> 20} MiB: that is no manifest")
    return data.decode("utf-8", "replace")


_ELSEWHERE: Final = "where there is no way there, name a folder or a file that has them"


def _is_url(text: str) -> bool:
    return text.startswith(("http://", "https://")) and not _is_reference(text)


def _is_reference(text: str) -> bool:
    """A remote kustomization: a repository and a folder in it."""
    return bool(re.match(r"(?:https://|git@|ssh://)?[\w.-]+[/:].+(?:\.git/|\?ref=)", text)) and not Path(text).exists()
