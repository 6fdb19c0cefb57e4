"""A real Kubernetes on this machine, as root, for tests: several side by side, each gone without a trace when it is taken down.

==================  ==========================================================================================
source/             Go modules that pin the parts: Kubernetes 1.36 in one binary, CoreDNS, the first process
binaries.py         building them, once
images.py           container images as files, without a daemon
python_image.py     the two images of tests: this Python, and with TensorFlow
place.py            namespaces in which processes, mounts and network end together
link.py             the way between this machine and a rig's network
addresses.py        who has which
certificates.py     authority, certificates, kubeconfig
containerd.py       what runs containers, and the disk it starts from
node.py             a node
control.py          the control plane
operator.py         the Kubeflow training operator
rig.py              all of it, by name
==================  ==========================================================================================

By hand: ``python -m tests.support.kubernetes``. In tests: the fixtures of `tests.support.kubernetes_cluster`.
"""
