job "mnist-chief" {
  datacenters = ["dc1"]
  type        = "batch"

  group "nomad" {
    task "train" {
      driver = "raw_exec"

      config {
        command = "/opt/venv/bin/python"
        args    = ["/srv/mnist/train.py", "--index", "${NOMAD_ALLOC_INDEX}"]
      }

      env {
        TF_CONFIG = "{\"cluster\": {\"chief\": [\"10.0.0.1:2222\"], \"worker\": [\"10.0.0.2:2222\"]}, \"task\": {\"type\": \"chief\", \"index\": 0}}"
        EPOCHS    = "3"
      }
    }
  }
}
