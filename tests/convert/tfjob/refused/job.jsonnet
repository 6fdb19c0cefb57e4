local params = std.extVar("__ksonnet/params").components.train;
{
  apiVersion: "kubeflow.org/v1",
  kind: "TFJob",
  metadata: { name: params.name },
}
