# needs: cc
"""A signal handler forks while pthread_create runs. The child still creates the thread, and the thread runs in the
child. This works with memstow as it does without."""
import pathlib

import support

program = support.compile(pathlib.Path(__file__).with_suffix(".c"))


def check(output):
    ended, stuck, crashed = (int(word.split()[0]) for word in output.split(","))
    assert crashed == 0 and ended and ended + stuck == 100, output


check(support.run(program, 100).stdout)
for stacks in ("full", "none"):
    check(support.memstow("run", "--quiet", "--follow=none", f"--stacks={stacks}", "-o", f"{stacks}.mst", "--",
                          program, 100).stdout)
