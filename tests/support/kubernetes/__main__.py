"""The rig by hand: ``python -m tests.support.kubernetes VERB``, as root.

build                    build what it runs (some five minutes, once)
up [NODES]               a cluster, of two nodes unless said; prints the path of its kubeconfig
images FOLDER            write the test images there as files, for a cluster that is not a rig
load FILE                put an image (a file as `docker save` writes it) on every node
operator                 install the training operator
stop-operator            its deployment to no replicas
start-operator           and back to one
kill-node N              the node dies as a machine does
revive-node N            and is switched on again
restart-api-server [S]   end it, wait S seconds, start it
down                     end the cluster and remove what it had
list                     the rigs that there are

--name NAME before the verb: which rig (usually `by-hand`); they live side by side.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from tests.support.kubernetes import binaries, operator, python_image
from tests.support.kubernetes.rig import Rig, all_rigs

ON_A_RIG = ("load", "operator", "stop-operator", "start-operator", "kill-node", "revive-node", "restart-api-server")


def main(arguments: list[str]) -> str | int:
    name = "by-hand"
    if arguments[:1] == ["--name"] and len(arguments) > 1:
        name, arguments = arguments[1], arguments[2:]
    rig = Rig(name)
    if arguments[:1] and arguments[0] in ON_A_RIG:
        rig.check_up()
    match arguments:
        case ["build"]:
            print(binaries.build().folder)
        case ["up", *nodes]:
            rig.up(*map(int, nodes))
            print(rig.kubeconfig)
        case ["images", folder]:
            print("\n".join(map(str, python_image.write(Path(folder)))))
        case ["load", file]:
            rig.load(Path(file))
        case ["operator"]:
            rig.install_operator()
        case ["stop-operator"]:
            operator.stop(rig.control.kubectl)
        case ["start-operator"]:
            operator.start(rig.control.kubectl)
        case ["kill-node", number]:
            rig.kill_node(int(number))
        case ["revive-node", number]:
            rig.revive_node(int(number))
        case ["restart-api-server", *pause]:
            with rig.no_api_server():
                time.sleep(float(pause[0]) if pause else 0)
        case ["down"]:
            rig.down()
        case ["list"]:
            print("\n".join(f"{each.name} {each.kubeconfig}" for each in all_rigs()))
        case _:
            return (__doc__ or "").strip()
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except (RuntimeError, ValueError) as error:
        sys.exit(f"kubernetes: {error}")
