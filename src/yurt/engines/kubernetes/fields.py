"""The fields of a pod's specification, by type: what the API server takes in strict validation (core/v1 of 1.36).

From the models of the maintained client, 36.0.3, and the names that only the server's own checks ask for. One type a
paragraph. A field is text unless it says otherwise: ``name!`` has to be there; ``:int``, ``:bool``, ``:quantity``,
``:port`` (a number or a name), ``:[T]`` (a list of), ``:{T}`` (a mapping to), or another type of the table. Left out is
what no template may have (ephemeral containers) and what the API server alone writes.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Final

_TABLE: Final = """
AWSElasticBlockStoreVolumeSource: fsType partition:int readOnly:bool volumeID!
Affinity: nodeAffinity:NodeAffinity podAffinity:PodAffinity podAntiAffinity:PodAntiAffinity
AppArmorProfile: localhostProfile type!
AzureDiskVolumeSource: cachingMode diskName! diskURI! fsType kind readOnly:bool
AzureFileVolumeSource: readOnly:bool secretName! shareName!
CSIVolumeSource: driver! fsType nodePublishSecretRef:LocalObjectReference readOnly:bool volumeAttributes:{str}
Capabilities: add:[str] drop:[str]
CephFSVolumeSource: monitors!:[str] path readOnly:bool secretFile secretRef:LocalObjectReference user
CinderVolumeSource: fsType readOnly:bool secretRef:LocalObjectReference volumeID!
ClusterTrustBundleProjection: labelSelector:LabelSelector name optional:bool path! signerName
ConfigMapEnvSource: name! optional:bool
ConfigMapKeySelector: key! name! optional:bool
ConfigMapProjection: items:[KeyToPath] name! optional:bool
ConfigMapVolumeSource: defaultMode:int items:[KeyToPath] name! optional:bool
Container: args:[str] command:[str] env:[EnvVar] envFrom:[EnvFromSource] image imagePullPolicy lifecycle:Lifecycle
  livenessProbe:Probe name! ports:[ContainerPort] readinessProbe:Probe resizePolicy:[ContainerResizePolicy]
  resources:ResourceRequirements restartPolicy restartPolicyRules:[ContainerRestartRule]
  securityContext:SecurityContext startupProbe:Probe stdin:bool stdinOnce:bool terminationMessagePath
  terminationMessagePolicy tty:bool volumeDevices:[VolumeDevice] volumeMounts:[VolumeMount] workingDir
ContainerPort: containerPort!:int hostIP hostPort:int name protocol
ContainerResizePolicy: resourceName! restartPolicy!
ContainerRestartRule: action! exitCodes:ContainerRestartRuleOnExitCodes
ContainerRestartRuleOnExitCodes: operator! values:[int]
DownwardAPIProjection: items:[DownwardAPIVolumeFile]
DownwardAPIVolumeFile: fieldRef:ObjectFieldSelector mode:int path! resourceFieldRef:ResourceFieldSelector
DownwardAPIVolumeSource: defaultMode:int items:[DownwardAPIVolumeFile]
EmptyDirVolumeSource: medium sizeLimit:quantity
EnvFromSource: configMapRef:ConfigMapEnvSource prefix secretRef:SecretEnvSource
EnvVar: name! value valueFrom:EnvVarSource
EnvVarSource: configMapKeyRef:ConfigMapKeySelector fieldRef:ObjectFieldSelector fileKeyRef:FileKeySelector
  resourceFieldRef:ResourceFieldSelector secretKeyRef:SecretKeySelector
EphemeralVolumeSource: volumeClaimTemplate:PersistentVolumeClaimTemplate
ExecAction: command:[str]
FCVolumeSource: fsType lun:int readOnly:bool targetWWNs:[str] wwids:[str]
FileKeySelector: key! optional:bool path! volumeName!
FlexVolumeSource: driver! fsType options:{str} readOnly:bool secretRef:LocalObjectReference
FlockerVolumeSource: datasetName datasetUUID
GCEPersistentDiskVolumeSource: fsType partition:int pdName! readOnly:bool
GRPCAction: port!:int service
GitRepoVolumeSource: directory repository! revision
GlusterfsVolumeSource: endpoints! path! readOnly:bool
HTTPGetAction: host httpHeaders:[HTTPHeader] path port!:port scheme
HTTPHeader: name! value!
HostAlias: hostnames:[str] ip!
HostPathVolumeSource: path! type
ISCSIVolumeSource: chapAuthDiscovery:bool chapAuthSession:bool fsType initiatorName iqn! iscsiInterface lun!:int
  portals:[str] readOnly:bool secretRef:LocalObjectReference targetPortal!
ImageVolumeSource: pullPolicy reference
KeyToPath: key! mode:int path!
LabelSelector: matchExpressions:[LabelSelectorRequirement] matchLabels:{str}
LabelSelectorRequirement: key! operator! values:[str]
Lifecycle: postStart:LifecycleHandler preStop:LifecycleHandler stopSignal
LifecycleHandler: exec:ExecAction httpGet:HTTPGetAction sleep:SleepAction tcpSocket:TCPSocketAction
LocalObjectReference: name!
NFSVolumeSource: path! readOnly:bool server!
NodeAffinity: preferredDuringSchedulingIgnoredDuringExecution:[PreferredSchedulingTerm]
  requiredDuringSchedulingIgnoredDuringExecution:NodeSelector
NodeSelector: nodeSelectorTerms!:[NodeSelectorTerm]
NodeSelectorRequirement: key! operator! values:[str]
NodeSelectorTerm: matchExpressions:[NodeSelectorRequirement] matchFields:[NodeSelectorRequirement]
ObjectFieldSelector: apiVersion fieldPath!
ObjectMeta: annotations:{str} labels:{str}
PersistentVolumeClaimSpec: accessModes:[str] dataSource:TypedLocalObjectReference dataSourceRef:TypedObjectReference
  resources:VolumeResourceRequirements selector:LabelSelector storageClassName volumeAttributesClassName volumeMode
  volumeName
PersistentVolumeClaimTemplate: metadata:ObjectMeta spec!:PersistentVolumeClaimSpec
PersistentVolumeClaimVolumeSource: claimName! readOnly:bool
PhotonPersistentDiskVolumeSource: fsType pdID!
PodAffinity: preferredDuringSchedulingIgnoredDuringExecution:[WeightedPodAffinityTerm]
  requiredDuringSchedulingIgnoredDuringExecution:[PodAffinityTerm]
PodAffinityTerm: labelSelector:LabelSelector matchLabelKeys:[str] mismatchLabelKeys:[str]
  namespaceSelector:LabelSelector namespaces:[str] topologyKey!
PodAntiAffinity: preferredDuringSchedulingIgnoredDuringExecution:[WeightedPodAffinityTerm]
  requiredDuringSchedulingIgnoredDuringExecution:[PodAffinityTerm]
PodCertificateProjection: certificateChainPath credentialBundlePath keyPath keyType! maxExpirationSeconds:int
  signerName! userAnnotations:{str}
PodDNSConfig: nameservers:[str] options:[PodDNSConfigOption] searches:[str]
PodDNSConfigOption: name value
PodOS: name!
PodReadinessGate: conditionType!
PodResourceClaim: name! resourceClaimName resourceClaimTemplateName
PodSchedulingGate: name!
PodSchedulingGroup: podGroupName
PodSecurityContext: appArmorProfile:AppArmorProfile fsGroup:int fsGroupChangePolicy runAsGroup:int runAsNonRoot:bool
  runAsUser:int seLinuxChangePolicy seLinuxOptions:SELinuxOptions seccompProfile:SeccompProfile
  supplementalGroups:[int] supplementalGroupsPolicy sysctls:[Sysctl] windowsOptions:WindowsSecurityContextOptions
PodSpec: activeDeadlineSeconds:int affinity:Affinity automountServiceAccountToken:bool containers!:[Container]
  dnsConfig:PodDNSConfig dnsPolicy enableServiceLinks:bool hostAliases:[HostAlias] hostIPC:bool hostNetwork:bool
  hostPID:bool hostUsers:bool hostname hostnameOverride imagePullSecrets:[LocalObjectReference]
  initContainers:[Container] nodeName nodeSelector:{str} os:PodOS overhead:{quantity} preemptionPolicy priority:int
  priorityClassName readinessGates:[PodReadinessGate] resourceClaims:[PodResourceClaim] resources:ResourceRequirements
  restartPolicy runtimeClassName schedulerName schedulingGates:[PodSchedulingGate] schedulingGroup:PodSchedulingGroup
  securityContext:PodSecurityContext serviceAccount serviceAccountName setHostnameAsFQDN:bool
  shareProcessNamespace:bool subdomain terminationGracePeriodSeconds:int tolerations:[Toleration]
  topologySpreadConstraints:[TopologySpreadConstraint] volumes:[Volume]
PortworxVolumeSource: fsType readOnly:bool volumeID!
PreferredSchedulingTerm: preference!:NodeSelectorTerm weight!:int
Probe: exec:ExecAction failureThreshold:int grpc:GRPCAction httpGet:HTTPGetAction initialDelaySeconds:int
  periodSeconds:int successThreshold:int tcpSocket:TCPSocketAction terminationGracePeriodSeconds:int
  timeoutSeconds:int
ProjectedVolumeSource: defaultMode:int sources:[VolumeProjection]
QuobyteVolumeSource: group readOnly:bool registry! tenant user volume!
RBDVolumeSource: fsType image! keyring monitors!:[str] pool readOnly:bool secretRef:LocalObjectReference user
ResourceClaim: name! request
ResourceFieldSelector: containerName divisor:quantity resource!
ResourceRequirements: claims:[ResourceClaim] limits:{quantity} requests:{quantity}
SELinuxOptions: level role type user
ScaleIOVolumeSource: fsType gateway! protectionDomain readOnly:bool secretRef!:LocalObjectReference sslEnabled:bool
  storageMode storagePool system! volumeName
SeccompProfile: localhostProfile type!
SecretEnvSource: name! optional:bool
SecretKeySelector: key! name! optional:bool
SecretProjection: items:[KeyToPath] name! optional:bool
SecretVolumeSource: defaultMode:int items:[KeyToPath] optional:bool secretName!
SecurityContext: allowPrivilegeEscalation:bool appArmorProfile:AppArmorProfile capabilities:Capabilities
  privileged:bool procMount readOnlyRootFilesystem:bool runAsGroup:int runAsNonRoot:bool runAsUser:int
  seLinuxOptions:SELinuxOptions seccompProfile:SeccompProfile windowsOptions:WindowsSecurityContextOptions
ServiceAccountTokenProjection: audience expirationSeconds:int path!
SleepAction: seconds!:int
StorageOSVolumeSource: fsType readOnly:bool secretRef:LocalObjectReference volumeName volumeNamespace
Sysctl: name! value!
TCPSocketAction: host port!:port
Toleration: effect key operator tolerationSeconds:int value
TopologySpreadConstraint: labelSelector:LabelSelector matchLabelKeys:[str] maxSkew!:int minDomains:int
  nodeAffinityPolicy nodeTaintsPolicy topologyKey! whenUnsatisfiable!
TypedLocalObjectReference: apiGroup kind! name!
TypedObjectReference: apiGroup kind! name! namespace
Volume: awsElasticBlockStore:AWSElasticBlockStoreVolumeSource azureDisk:AzureDiskVolumeSource
  azureFile:AzureFileVolumeSource cephfs:CephFSVolumeSource cinder:CinderVolumeSource configMap:ConfigMapVolumeSource
  csi:CSIVolumeSource downwardAPI:DownwardAPIVolumeSource emptyDir:EmptyDirVolumeSource
  ephemeral:EphemeralVolumeSource fc:FCVolumeSource flexVolume:FlexVolumeSource flocker:FlockerVolumeSource
  gcePersistentDisk:GCEPersistentDiskVolumeSource gitRepo:GitRepoVolumeSource glusterfs:GlusterfsVolumeSource
  hostPath:HostPathVolumeSource image:ImageVolumeSource iscsi:ISCSIVolumeSource name! nfs:NFSVolumeSource
  persistentVolumeClaim:PersistentVolumeClaimVolumeSource photonPersistentDisk:PhotonPersistentDiskVolumeSource
  portworxVolume:PortworxVolumeSource projected:ProjectedVolumeSource quobyte:QuobyteVolumeSource rbd:RBDVolumeSource
  scaleIO:ScaleIOVolumeSource secret:SecretVolumeSource storageos:StorageOSVolumeSource
  vsphereVolume:VsphereVirtualDiskVolumeSource
VolumeDevice: devicePath! name!
VolumeMount: mountPath! mountPropagation name! readOnly:bool recursiveReadOnly subPath subPathExpr
VolumeProjection: clusterTrustBundle:ClusterTrustBundleProjection configMap:ConfigMapProjection
  downwardAPI:DownwardAPIProjection podCertificate:PodCertificateProjection secret:SecretProjection
  serviceAccountToken:ServiceAccountTokenProjection
VolumeResourceRequirements: limits:{quantity} requests:{quantity}
VsphereVirtualDiskVolumeSource: fsType storagePolicyID storagePolicyName volumePath!
WeightedPodAffinityTerm: podAffinityTerm!:PodAffinityTerm weight!:int
WindowsSecurityContextOptions: gmsaCredentialSpec gmsaCredentialSpecName hostProcess:bool runAsUserName
"""


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a type: `kind` is the table's word for what it holds, empty for text."""

    kind: str
    required: bool


@functools.cache
def fields_of(name: str) -> dict[str, Field]:
    """The fields of a type, by their names. Raises KeyError for none of the table's."""
    return _types()[name]


@functools.cache
def _types() -> dict[str, dict[str, Field]]:
    types: dict[str, dict[str, Field]] = {}
    current: dict[str, Field] = {}
    for line in _TABLE.strip().splitlines():
        words = line.split()
        if not line.startswith(" "):
            current = types[words.pop(0).removesuffix(":")] = {}
        for word in words:
            name, _, kind = word.partition(":")
            current[name.removesuffix("!")] = Field(kind, name.endswith("!"))
    return types
