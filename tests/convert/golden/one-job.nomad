# One job with a group for each role, as people write them for a cluster with Consul.
variable "image" {
  type    = string
  default = "tensorflow/tensorflow:2.21.0"
}

locals {
  workers = 3
  flags   = ["--epochs", "10", "--title", "costs $${HOME} and 100%"]
}

job "weather" {
  datacenters = ["gpu-1", "gpu-2"]
  type        = "batch"
  priority    = 70

  constraint {
    attribute = "${attr.kernel.name}"
    value     = "linux"
  }

  group "chief" {
    network {
      port "tf" {}
    }

    service {
      name = "weather-chief"
      port = "tf"
    }

    task "train" {
      driver = "docker"

      config {
        image   = var.image
        command = "python"
        args    = concat(["/app/train.py"], local.flags)
      }

      template {
        data        = <<-EOH
          TF_CONFIG={"cluster": {"chief": [{{ range service "weather-chief" }}"{{ .Address }}:{{ .Port }}"{{ end }}]}, "task": {"type": "chief", "index": 0}}
          DATA_URL=s3://weather/${local.workers}
          EOH
        destination = "local/tf_config.env"
        env         = true
      }

      env {
        TF_CPP_MIN_LOG_LEVEL = 2
        HOST                 = "${attr.unique.hostname}"
      }

      resources {
        cpu    = 5000
        memory = 8192

        device "nvidia/gpu" {
          count = 1
        }
      }

      kill_timeout = "20s"
    }
  }

  group "workers" {
    count = local.workers

    restart {
      attempts = 2
      interval = "30m"
      delay    = "15s"
      mode     = "fail"
    }

    network {
      port "tf" {}
    }

    task "train" {
      driver = "docker"

      config {
        image = var.image
        args  = ["sh", "-c", "python /app/train.py --epochs 10 --title 'costs $${HOME} and 100%'"]
      }

      env {
        TF_CPP_MIN_LOG_LEVEL = 2
      }

      resources {
        cpu    = 5000
        memory = 8192

        device "nvidia/gpu" {
          count = 1
        }
      }
    }

    task "shipper" {
      driver = "docker"

      lifecycle {
        hook    = "prestart"
        sidecar = true
      }

      config {
        image = "log-shipper:1"
      }
    }
  }

  group "parameter-server" {
    count = 2

    task "ps" {
      driver = "docker"

      config {
        image   = var.image
        command = "python"
        args    = concat(["/app/train.py"], local.flags)
      }
    }
  }

  group "eval" {
    task "eval" {
      driver = "docker"

      config {
        image   = var.image
        command = "/bin/bash"
        args    = ["-c", "cd /app && python evaluate.py"]
      }
    }
  }

  group "tensorboard" {
    task "tensorboard" {
      driver = "docker"

      config {
        image = var.image
        args  = ["tensorboard", "--logdir", "/logs"]
      }
    }
  }
}
