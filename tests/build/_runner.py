"""A folder with a copy of the runner and tests of its own. Tests of the runner use it."""
import shutil, sys

import support


def make(**scripts):
    """Writes the scripts as tests of a room "cli"; returns the command that runs tests there."""
    room, build = support.HERE / "tests/cli", support.HERE / "build/dev"
    room.mkdir(parents=True)
    build.mkdir(parents=True)
    for file in ("runner.py", "expectations.py"):
        shutil.copy(support.ROOT / "tests" / file, room.parent)
    for name, text in scripts.items():
        (room / f"{name}.py").write_text(text)
    (build / "features.json").write_text('{"mimalloc": false, "stacks": true}')
    (build / "memstow").symlink_to(support.MEMSTOW)
    return [sys.executable, room.parent / "runner.py"]
