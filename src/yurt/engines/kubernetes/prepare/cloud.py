"""Whose cluster it is, and what one does there: a firewall rule for webhooks, the device plugin of GPUs.

Recognised by nodes' ``spec.providerID`` (``gce://PROJECT/ZONE/NAME``, ``aws:///ZONE/ID``, ``azure:///subscriptions/...``),
the server's version (``-gke.``, ``-eks-``) and the names that the clouds' own tools give to contexts
(``gke_PROJECT_LOCATION_CLUSTER``, ``arn:aws:eks:REGION:ACCOUNT:cluster/NAME``).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

Name = Literal["gke", "eks", "aks", "other"]
_NVIDIA_PLUGIN: Final = (
    "kubectl create -f https://raw.githubusercontent.com/NVIDIA/k8s-device-plugin/v0.17.1/deployments/static/"
    "nvidia-device-plugin.yml"
)
_GKE_DRIVER: Final = (
    "kubectl apply -f https://raw.githubusercontent.com/GoogleCloudPlatform/container-engine-accelerators/master/"
    "nvidia-driver-installer/cos/daemonset-preloaded.yaml"
)


@dataclass(frozen=True, slots=True)
class Cloud:
    """Who runs the control plane; names that are not known stand in capitals, as in the clouds' own documentation."""

    name: Name = "other"
    cluster: str = "CLUSTER"
    #: GKE: the zone or region; EKS: the region.
    location: str = "LOCATION"
    #: GKE's project.
    project: str = "PROJECT"
    #: Of AKS: the resource group of the nodes.
    group: str = "NODE_RESOURCE_GROUP"

    @property
    def title(self) -> str:
        """For people."""
        return {"gke": "GKE", "eks": "EKS", "aks": "AKS", "other": "this cluster"}[self.name]

    def webhook_rule(self, port: int) -> str:
        """How to let the control plane reach a port of the pods, which is where a webhook listens."""
        if self.name == "gke":
            where = f"--location {self.location} --project {self.project}"
            see = f"gcloud container clusters describe {self.cluster} {where}"
            return (
                f'CIDR=$({see} --format "value(privateClusterConfig.masterIpv4CidrBlock)"); '
                f'NETWORK=$({see} --format "value(network)")\n'
                f"gcloud compute firewall-rules create yurt-webhook-{port} --project {self.project} "
                f'--network "$NETWORK" --direction INGRESS --source-ranges "$CIDR" --allow tcp:{port} '
                "--target-tags NODE_TAG   # the tag: gcloud compute instances describe NODE --format 'value(tags)'"
            )
        if self.name == "eks":
            where = f"--region {self.location}"
            return (
                f"FROM=$(aws eks describe-cluster {where} --name {self.cluster} "
                '--query "cluster.resourcesVpcConfig.clusterSecurityGroupId" --output text)\n'
                f"aws ec2 authorize-security-group-ingress {where} --group-id NODE_SECURITY_GROUP --protocol tcp "
                f'--port {port} --source-group "$FROM"   # the security group of the node group\'s instances'
            )
        if self.name == "aks":
            return (
                f"az network nsg rule create --resource-group {self.group} --nsg-name NODE_NSG "
                f"--name yurt-webhook-{port} --priority 300 --direction Inbound --access Allow --protocol Tcp "
                f"--source-address-prefixes API_SERVER_SUBNET --destination-port-ranges {port}   "
                "# with API server VNet integration; otherwise see that the konnectivity-agent pods of kube-system run"
            )
        return f"allow TCP {port} from the control plane's addresses to the nodes and pods in the firewall between them"

    def gpu_plugin(self) -> str:
        """What makes the nodes' GPUs known to the scheduler."""
        if self.name == "gke":
            return f"{_GKE_DRIVER}   # or make the node pool with --accelerator ...,gpu-driver-version=default"
        return f"{_NVIDIA_PLUGIN}   # after NVIDIA's driver and container toolkit are on the nodes"


def cloud_of(nodes: Iterable[Mapping[str, Any]], version: str, context: str) -> Cloud:
    """By all of the signs; the context is the one that knows the cluster's name."""
    providers = [str(each.get("spec", {}).get("providerID", "")) for each in nodes]
    if found := next(filter(None, (re.match(r"gce://([^/]+)/([^/]+)/", each) for each in providers)), None):
        named = re.fullmatch(r"gke_([^_]+)_([^_]+)_(.+)", context)
        location, cluster = (named[2], named[3]) if named else (found[2], "CLUSTER")
        return Cloud("gke", cluster=cluster, location=location, project=found[1])
    if "-gke." in version:
        named = re.fullmatch(r"gke_([^_]+)_([^_]+)_(.+)", context)
        return Cloud("gke", cluster=named[3], location=named[2], project=named[1]) if named else Cloud("gke")
    if "-eks-" in version or any(each.startswith("aws://") for each in providers):
        named = re.search(r"arn:aws[\w-]*:eks:([^:]+):\d+:cluster/(.+)", context)
        zone = next(filter(None, (re.match(r"aws:///([a-z0-9-]+?)[a-z]/", each) for each in providers)), None)
        location = named[1] if named else zone[1] if zone else "REGION"
        return Cloud("eks", cluster=named[2] if named else "CLUSTER", location=location)
    azure = [re.search(r"/resource[gG]roups/([^/]+)/", each) for each in providers if each.startswith("azure://")]
    if azure:
        found = next(filter(None, azure), None)
        return Cloud("aks", cluster=context or "CLUSTER", group=found[1] if found else "NODE_RESOURCE_GROUP")
    return Cloud()
