"""TFJobs of Kubeflow's training operator, in and out; all versions of the shape, v1alpha1 to v1."""
