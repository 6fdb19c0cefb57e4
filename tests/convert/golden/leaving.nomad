# Made by yurt convert.
# Look at what this job does not do, and Yurt did:
#   files: do not travel with a Nomad job: put them on every node, at the same path, and name the script by its whole path
#   roles.chief.cpus: 2 CPUs taken as 5000 MHz, at 2500 MHz each (--mhz changes that)
#   roles.worker.cpus: 2 CPUs taken as 5000 MHz, at 2500 MHz each (--mhz changes that)
#   roles.ps.cpus: 0.5 CPUs taken as 1250 MHz, at 2500 MHz each (--mhz changes that)
#   roles.evaluator.cpus: 0.5 CPUs taken as 1250 MHz, at 2500 MHz each (--mhz changes that)
#   output: nothing publishes the model, and the script has no YURT_MODEL_DIR to save to
#   start_deadline: tasks wait for one another without end
#   deadline: a Nomad job has none
#   restart: Nomad starts each task again up to 3 times whatever its exit code, and alone: the others go on with the peers that they had
#   roles: nothing ends the others when the chief has finished: nomad job stop weather
#   keras: the mends for Keras 3 stay behind: see docs/keras.md for what fails without them

job "weather" {
  type        = "batch"
  datacenters = ["dc1"]

  constraint {
    operator  = "="
    attribute = "$${node.class}"
    value     = "training"
  }

  group "chief" {
    count = 1

    restart {
      attempts = 3
      interval = "24h"
      delay    = "5s"
      mode     = "fail"
    }

    reschedule {
      attempts  = 0
      unlimited = false
    }

    network {
      mode = "host"
      port "tf" {}
    }

    service {
      name = "weather-chief"
      port = "tf"
      tags = ["$${NOMAD_ALLOC_INDEX}"]
    }

    volume "data" {
      type      = "host"
      source    = "training-data"
      read_only = true
    }

    task "chief" {
      driver       = "raw_exec"
      kill_signal  = "SIGTERM"
      kill_timeout = "30s"

      config {
        command = "/bin/sh"
        args    = [
          "-c",
          "file=\"$NOMAD_TASK_DIR/tf_config.json\"; until [ -s \"$file\" ] && ! grep -q '\"missing\"' \"$file\"; do sleep 1; done; TF_CONFIG=\"$(cat \"$file\")\"; export TF_CONFIG; exec \"$@\"",
          "wait-for-peers",
          "python",
          "/srv/weather/train.py",
          "--title",
          "$$${HOME} is 100%%%{sure} at $$$${x} $$ {{ now }}\n\"quoted\"",
        ]
      }

      env {
        EPOCHS = "3"
      }

      template {
        data = <<EOT
{"cluster": {
"chief": [{{ range $i := loop 1 }}{{ if $i }}, {{ end }}"{{ with service (printf "%d.weather-chief" $i) }}{{ with index . 0 }}{{ .Address }}:{{ .Port }}{{ end }}{{ else }}missing{{ end }}"{{ end }}],
"worker": [{{ range $i := loop 2 }}{{ if $i }}, {{ end }}"{{ with service (printf "%d.weather-worker" $i) }}{{ with index . 0 }}{{ .Address }}:{{ .Port }}{{ end }}{{ else }}missing{{ end }}"{{ end }}],
"ps": [{{ range $i := loop 1 }}{{ if $i }}, {{ end }}"{{ with service (printf "%d.weather-ps" $i) }}{{ with index . 0 }}{{ .Address }}:{{ .Port }}{{ end }}{{ else }}missing{{ end }}"{{ end }}]},
"task": {"type": "chief", "index": {{ env "NOMAD_ALLOC_INDEX" }}}}
EOT
        destination = "local/tf_config.json"
        change_mode = "noop"
      }

      resources {
        cpu    = 5000
        memory = 4096

        device "nvidia/gpu" {
          count = 1
        }
      }

      volume_mount {
        volume      = "data"
        destination = "/data"
        read_only   = true
      }
    }
  }

  group "worker" {
    count = 2

    restart {
      attempts = 3
      interval = "24h"
      delay    = "5s"
      mode     = "fail"
    }

    reschedule {
      attempts  = 0
      unlimited = false
    }

    network {
      mode = "host"
      port "tf" {}
    }

    service {
      name = "weather-worker"
      port = "tf"
      tags = ["$${NOMAD_ALLOC_INDEX}"]
    }

    volume "data" {
      type      = "host"
      source    = "training-data"
      read_only = true
    }

    task "worker" {
      driver       = "raw_exec"
      kill_signal  = "SIGTERM"
      kill_timeout = "30s"

      config {
        command = "/bin/sh"
        args    = [
          "-c",
          "file=\"$NOMAD_TASK_DIR/tf_config.json\"; until [ -s \"$file\" ] && ! grep -q '\"missing\"' \"$file\"; do sleep 1; done; TF_CONFIG=\"$(cat \"$file\")\"; export TF_CONFIG; exec \"$@\"",
          "wait-for-peers",
          "env",
          "PATTERN=a$$${HOME}b",
          "python",
          "/srv/weather/train.py",
          "--title",
          "$$${HOME} is 100%%%{sure} at $$$${x} $$ {{ now }}\n\"quoted\"",
        ]
      }

      env {
        EPOCHS  = "3"
        PERCENT = "%%{if} \"x\" {{ y }}"
      }

      template {
        data = <<EOT
{"cluster": {
"chief": [{{ range $i := loop 1 }}{{ if $i }}, {{ end }}"{{ with service (printf "%d.weather-chief" $i) }}{{ with index . 0 }}{{ .Address }}:{{ .Port }}{{ end }}{{ else }}missing{{ end }}"{{ end }}],
"worker": [{{ range $i := loop 2 }}{{ if $i }}, {{ end }}"{{ with service (printf "%d.weather-worker" $i) }}{{ with index . 0 }}{{ .Address }}:{{ .Port }}{{ end }}{{ else }}missing{{ end }}"{{ end }}],
"ps": [{{ range $i := loop 1 }}{{ if $i }}, {{ end }}"{{ with service (printf "%d.weather-ps" $i) }}{{ with index . 0 }}{{ .Address }}:{{ .Port }}{{ end }}{{ else }}missing{{ end }}"{{ end }}]},
"task": {"type": "worker", "index": {{ env "NOMAD_ALLOC_INDEX" }}}}
EOT
        destination = "local/tf_config.json"
        change_mode = "noop"
      }

      resources {
        cpu    = 5000
        memory = 4096
      }

      volume_mount {
        volume      = "data"
        destination = "/data"
        read_only   = true
      }
    }
  }

  group "ps" {
    count = 1

    restart {
      attempts = 3
      interval = "24h"
      delay    = "5s"
      mode     = "fail"
    }

    reschedule {
      attempts  = 0
      unlimited = false
    }

    network {
      mode = "host"
      port "tf" {}
    }

    service {
      name = "weather-ps"
      port = "tf"
      tags = ["$${NOMAD_ALLOC_INDEX}"]
    }

    volume "data" {
      type      = "host"
      source    = "training-data"
      read_only = true
    }

    task "ps" {
      driver       = "raw_exec"
      kill_signal  = "SIGTERM"
      kill_timeout = "30s"

      config {
        command = "/bin/sh"
        args    = [
          "-c",
          "file=\"$NOMAD_TASK_DIR/tf_config.json\"; until [ -s \"$file\" ] && ! grep -q '\"missing\"' \"$file\"; do sleep 1; done; TF_CONFIG=\"$(cat \"$file\")\"; export TF_CONFIG; exec \"$@\"",
          "wait-for-peers",
          "python",
          "-c",
          "import tensorflow as tf; task = tf.distribute.cluster_resolver.TFConfigClusterResolver(); tf.distribute.Server(task.cluster_spec(), job_name=task.task_type, task_index=task.task_id).join()",
        ]
      }

      env {
        EPOCHS = "3"
      }

      template {
        data = <<EOT
{"cluster": {
"chief": [{{ range $i := loop 1 }}{{ if $i }}, {{ end }}"{{ with service (printf "%d.weather-chief" $i) }}{{ with index . 0 }}{{ .Address }}:{{ .Port }}{{ end }}{{ else }}missing{{ end }}"{{ end }}],
"worker": [{{ range $i := loop 2 }}{{ if $i }}, {{ end }}"{{ with service (printf "%d.weather-worker" $i) }}{{ with index . 0 }}{{ .Address }}:{{ .Port }}{{ end }}{{ else }}missing{{ end }}"{{ end }}],
"ps": [{{ range $i := loop 1 }}{{ if $i }}, {{ end }}"{{ with service (printf "%d.weather-ps" $i) }}{{ with index . 0 }}{{ .Address }}:{{ .Port }}{{ end }}{{ else }}missing{{ end }}"{{ end }}]},
"task": {"type": "ps", "index": {{ env "NOMAD_ALLOC_INDEX" }}}}
EOT
        destination = "local/tf_config.json"
        change_mode = "noop"
      }

      resources {
        cpu    = 1250
        memory = 1536
      }

      volume_mount {
        volume      = "data"
        destination = "/data"
        read_only   = true
      }
    }
  }

  group "evaluator" {
    count = 1

    restart {
      attempts = 3
      interval = "24h"
      delay    = "5s"
      mode     = "fail"
    }

    reschedule {
      attempts  = 0
      unlimited = false
    }

    network {
      mode = "host"
      port "tf" {}
    }

    service {
      name = "weather-evaluator"
      port = "tf"
      tags = ["$${NOMAD_ALLOC_INDEX}"]
    }

    volume "data" {
      type      = "host"
      source    = "training-data"
      read_only = true
    }

    task "evaluator" {
      driver       = "raw_exec"
      kill_signal  = "SIGTERM"
      kill_timeout = "30s"

      config {
        command = "/bin/sh"
        args    = [
          "-c",
          "file=\"$NOMAD_TASK_DIR/tf_config.json\"; until [ -s \"$file\" ] && ! grep -q '\"missing\"' \"$file\"; do sleep 1; done; TF_CONFIG=\"$(cat \"$file\")\"; export TF_CONFIG; exec \"$@\"",
          "wait-for-peers",
          "python",
          "/srv/weather/evaluate.py",
        ]
      }

      env {
        EPOCHS = "3"
      }

      template {
        data = <<EOT
{"cluster": {
"chief": [{{ range $i := loop 1 }}{{ if $i }}, {{ end }}"{{ with service (printf "%d.weather-chief" $i) }}{{ with index . 0 }}{{ .Address }}:{{ .Port }}{{ end }}{{ else }}missing{{ end }}"{{ end }}],
"worker": [{{ range $i := loop 2 }}{{ if $i }}, {{ end }}"{{ with service (printf "%d.weather-worker" $i) }}{{ with index . 0 }}{{ .Address }}:{{ .Port }}{{ end }}{{ else }}missing{{ end }}"{{ end }}],
"ps": [{{ range $i := loop 1 }}{{ if $i }}, {{ end }}"{{ with service (printf "%d.weather-ps" $i) }}{{ with index . 0 }}{{ .Address }}:{{ .Port }}{{ end }}{{ else }}missing{{ end }}"{{ end }}],
"evaluator": [{{ range $i := loop 1 }}{{ if $i }}, {{ end }}"{{ with service (printf "%d.weather-evaluator" $i) }}{{ with index . 0 }}{{ .Address }}:{{ .Port }}{{ end }}{{ else }}missing{{ end }}"{{ end }}]},
"task": {"type": "evaluator", "index": {{ env "NOMAD_ALLOC_INDEX" }}}}
EOT
        destination = "local/tf_config.json"
        change_mode = "noop"
      }

      resources {
        cpu    = 1250
        memory = 1024
      }

      volume_mount {
        volume      = "data"
        destination = "/data"
        read_only   = true
      }
    }
  }
}
