"""Kubernetes: as a Kubeflow TFJob, or as Indexed Jobs without any operator."""
