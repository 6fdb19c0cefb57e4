job "mnist-worker" {
  datacenters = ["dc2"]
  type        = "service"

  group "nomad" {
    count = 2

    reschedule {
      attempts  = 0
      unlimited = false
    }

    restart {
      attempts = 0
    }

    task "train" {
      driver = "raw_exec"

      config {
        command = "/opt/venv/bin/python"
        args    = ["/srv/mnist/train.py", "--index", "${NOMAD_ALLOC_INDEX}"]
      }

      env {
        EPOCHS = "3"
        BATCH  = "64"
      }
    }
  }
}
