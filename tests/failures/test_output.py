"""What tasks print: all of it, in order, whatever they print."""

from __future__ import annotations

import re


def test_200000_lines_arrive_whole_and_in_order_from_each_task(folder):
    script = "import os\nfor i in range(200_000): print(os.environ['YURT_INDEX'], 'line', i)\n"
    values = {"name": "lines", "command": "python train.py", "roles": {"worker": 2}}
    run = folder.start(folder.write(values, train=script))
    assert run.wait() == 0, run.output[-2000:]
    for index in (0, 1):
        lines = re.findall(rf"^worker/{index} *\S (\d) line (\d+)$", run.output, re.MULTILINE)
        assert [int(number) for _, number in lines] == list(range(200_000))
        assert {int(own) for own, _ in lines} == {index}
