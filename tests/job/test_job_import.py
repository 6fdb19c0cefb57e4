import subprocess
import sys


def test_importing_the_room_brings_nothing_heavy():
    code = (
        "import sys, yurt.job\n"
        "heavy = {'tensorflow', 'numpy', 'yaml', 'obstore', 'rich', 'click'}\n"
        "print(sorted(heavy & set(sys.modules)), sorted(m for m in sys.modules if m.startswith('yurt.')"
        " and not m.startswith(('yurt.job', 'yurt.errors'))))\n"
    )
    printed = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert printed.stdout.strip() == "[] []"
