"""Where the API server keeps each kind of object that Yurt makes or reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind; `api` is its apiVersion, `plural` its name in paths and in rules of access."""

    api: str
    name: str
    plural: str
    namespaced: bool = True

    @property
    def group(self) -> str:
        """The API group, as rules of access name it: empty for the core."""
        return self.api.rpartition("/")[0]

    def path(self, namespace: str, name: str = "", part: str = "") -> str:
        """Of one object, or of all in the namespace; `part` is a sub-resource such as ``log``."""
        root = f"/apis/{self.api}" if "/" in self.api else f"/api/{self.api}"
        if self.namespaced:
            root += f"/namespaces/{namespace}"
        return "/".join(filter(None, (f"{root}/{self.plural}", name, part)))


POD: Final = Kind("v1", "Pod", "pods")
SERVICE: Final = Kind("v1", "Service", "services")
SECRET: Final = Kind("v1", "Secret", "secrets")
CONFIG_MAP: Final = Kind("v1", "ConfigMap", "configmaps")
EVENT: Final = Kind("v1", "Event", "events")
CLAIM: Final = Kind("v1", "PersistentVolumeClaim", "persistentvolumeclaims")
QUOTA: Final = Kind("v1", "ResourceQuota", "resourcequotas")
LIMIT_RANGE: Final = Kind("v1", "LimitRange", "limitranges")
SERVICE_ACCOUNT: Final = Kind("v1", "ServiceAccount", "serviceaccounts")
NAMESPACE: Final = Kind("v1", "Namespace", "namespaces", namespaced=False)
NODE: Final = Kind("v1", "Node", "nodes", namespaced=False)
JOB: Final = Kind("batch/v1", "Job", "jobs")
DEPLOYMENT: Final = Kind("apps/v1", "Deployment", "deployments")
DAEMON_SET: Final = Kind("apps/v1", "DaemonSet", "daemonsets")
ROLE: Final = Kind("rbac.authorization.k8s.io/v1", "Role", "roles")
ROLE_BINDING: Final = Kind("rbac.authorization.k8s.io/v1", "RoleBinding", "rolebindings")
CLUSTER_ROLE: Final = Kind("rbac.authorization.k8s.io/v1", "ClusterRole", "clusterroles", namespaced=False)
CLUSTER_ROLE_BINDING: Final = Kind(
    "rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "clusterrolebindings", namespaced=False
)
STORAGE_CLASS: Final = Kind("storage.k8s.io/v1", "StorageClass", "storageclasses", namespaced=False)
CSI_DRIVER: Final = Kind("storage.k8s.io/v1", "CSIDriver", "csidrivers", namespaced=False)
CRD: Final = Kind("apiextensions.k8s.io/v1", "CustomResourceDefinition", "customresourcedefinitions", namespaced=False)
VALIDATING_WEBHOOK: Final = Kind(
    "admissionregistration.k8s.io/v1",
    "ValidatingWebhookConfiguration",
    "validatingwebhookconfigurations",
    namespaced=False,
)
ACCESS_REVIEW: Final = Kind("authorization.k8s.io/v1", "SubjectAccessReview", "subjectaccessreviews", namespaced=False)
OWN_ACCESS_REVIEW: Final = Kind(
    "authorization.k8s.io/v1", "SelfSubjectAccessReview", "selfsubjectaccessreviews", namespaced=False
)
TFJOB: Final = Kind("kubeflow.org/v1", "TFJob", "tfjobs")
POD_GROUP: Final = Kind("scheduling.volcano.sh/v1beta1", "PodGroup", "podgroups")

ALL: Final = tuple(value for value in globals().values() if isinstance(value, Kind))


def kind_of(value: Mapping[str, Any]) -> Kind:
    """Of an object, by its apiVersion and kind; for a kind that is not in the list, by how plurals are usually made."""
    api, name = value["apiVersion"], value["kind"]
    for kind in ALL:
        if (kind.api, kind.name) == (api, name):
            return kind
    lower = name.lower()
    if lower.endswith(("s", "x", "ch")):
        return Kind(api, name, f"{lower}es")
    return Kind(api, name, f"{lower[:-1]}ies" if lower.endswith("y") else f"{lower}s")
