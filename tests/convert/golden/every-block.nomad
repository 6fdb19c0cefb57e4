# Every block of Nomad 1.0's job specification, each with something in it that is not the default.
job "every" {
  region       = "europe"
  namespace    = "research"
  datacenters  = ["dc1"]
  type         = "batch"
  priority     = 60
  all_at_once  = true
  consul_token = "consul-secret"
  vault_token  = "vault-secret"

  meta {
    owner = "weather"
  }

  constraint {
    attribute = "${node.class}"
    operator  = "!="
    value     = "small"
  }

  constraint {
    operator = "distinct_hosts"
    value    = "true"
  }

  affinity {
    attribute = "${attr.cpu.arch}"
    value     = "amd64"
    weight    = 30
  }

  spread {
    attribute = "${node.datacenter}"
    weight    = 40

    target "dc1" {
      percent = 100
    }
  }

  update {
    max_parallel = 2
  }

  migrate {
    max_parallel = 3
  }

  reschedule {
    attempts       = 1
    interval       = "1h"
    delay          = "40s"
    delay_function = "fibonacci"
    max_delay      = "2h"
    unlimited      = false
  }

  periodic {
    cron             = "0 3 * * *"
    prohibit_overlap = true
    time_zone        = "Europe/Vienna"
  }

  parameterized {
    payload       = "required"
    meta_required = ["day"]
  }

  multiregion {
    strategy {
      max_parallel = 1
    }

    region "europe" {
      count = 2
    }
  }

  vault {
    policies = ["training"]
  }

  group "worker" {
    count                        = 2
    shutdown_delay               = "3s"
    stop_after_client_disconnect = "10m"

    meta {
      part = "training"
    }

    constraint {
      attribute = "${attr.kernel.name}"
      value     = "linux"
    }

    affinity {
      attribute = "${node.unique.name}"
      value     = "gpu-1"
      weight    = 10
    }

    spread {
      attribute = "${node.unique.name}"
    }

    ephemeral_disk {
      migrate = true
      size    = 500
      sticky  = true
    }

    network {
      mode = "host"

      dns {
        servers = ["10.0.0.53"]
      }

      port "tf" {
        static = 2222
      }
    }

    service {
      name = "every-worker"
      port = "tf"
      tags = ["tensorflow"]

      meta {
        kind = "grpc"
      }

      check {
        type     = "tcp"
        interval = "10s"
        timeout  = "2s"

        check_restart {
          limit = 3
        }
      }
    }

    restart {
      attempts = 4
      interval = "10m"
      delay    = "25s"
      mode     = "delay"
    }

    scaling {
      enabled = true
      min     = 1
      max     = 5

      policy {
        cooldown = "1m"
      }
    }

    update {
      canary = 1
    }

    migrate {
      max_parallel = 2
    }

    volume "data" {
      type      = "host"
      source    = "training-data"
      read_only = true
    }

    volume "scratch" {
      type   = "csi"
      source = "scratch"

      mount_options {
        fs_type = "ext4"
      }
    }

    task "train" {
      driver         = "docker"
      leader         = true
      kill_signal    = "SIGINT"
      kill_timeout   = "90s"
      shutdown_delay = "1s"
      user           = "trainer"

      config {
        image      = "trainer:1"
        command    = "python"
        args       = ["train.py"]
        privileged = true
        shm_size   = 1073741824

        mount {
          type   = "bind"
          source = "/data"
          target = "/data"
        }

        logging {
          type = "journald"
        }
      }

      env {
        EPOCHS     = "3"
        TF_CONFIG  = "{}"
        YURT_ROLE  = "worker"
        not-a-name = "x"
        NODE       = "${node.unique.name}"
      }

      meta {
        step = "1"
      }

      constraint {
        attribute = "${attr.cpu.numcores}"
        operator  = ">="
        value     = "2"
      }

      affinity {
        attribute = "${attr.cpu.arch}"
        value     = "arm64"
        weight    = -10
      }

      artifact {
        source      = "https://example.com/data.tar.gz"
        destination = "local/data"

        options {
          checksum = "sha256:00"
        }
      }

      template {
        data          = "{{ key \"weather/config\" }}"
        destination   = "local/config.json"
        change_mode   = "signal"
        change_signal = "SIGHUP"
      }

      template {
        data        = "PLAIN=yes\nFILLED={{ key \"x\" }}\n"
        destination = "secrets/env"
        env         = true
      }

      resources {
        cpu    = 2500
        memory = 2048

        device "nvidia/gpu/a100" {
          count = 2

          constraint {
            attribute = "${device.attr.memory}"
            operator  = ">="
            value     = "40 GiB"
          }

          affinity {
            attribute = "${device.attr.memory}"
            operator  = ">="
            value     = "80 GiB"
            weight    = 50
          }
        }

        network {
          mbits = 100
        }
      }

      logs {
        max_files     = 3
        max_file_size = 5
      }

      service {
        name = "every-task"
        port = "tf"
      }

      restart {
        attempts = 1
      }

      dispatch_payload {
        file = "input.json"
      }

      vault {
        policies = ["gpu"]
      }

      volume_mount {
        volume      = "data"
        destination = "/data"
        read_only   = true
      }

      volume_mount {
        volume      = "scratch"
        destination = "/scratch"
      }

      csi_plugin {
        id        = "plug"
        type      = "node"
        mount_dir = "/csi"
      }

      scaling "cpu" {
        enabled = true
        max     = 4000

        policy {
          cooldown = "1m"
        }
      }
    }

    task "warm" {
      driver = "exec"

      lifecycle {
        hook    = "prestart"
        sidecar = false
      }

      config {
        command = "/bin/true"
      }
    }
  }
}
