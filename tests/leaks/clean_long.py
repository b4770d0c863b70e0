# long
# timeout: 3000
"""A hundred repetitions of a program that does not leak, of twenty runs each, and one of a hundred runs that is looked at after
each of them: not one false finding."""
import support
from _leaks import brief, leaks, plant


def check(program, what):
    document = leaks(program.pid())
    assert not document["found"], (what, brief(document))


for repetition in range(100):
    program = plant("clean", 20, options=("--python-objects",) if repetition % 2 else ())
    program.wait_for("ready")
    check(program, f"repetition {repetition}")
    program.end()

program = plant("clean", 100, 1)
for run in range(100):
    program.wait_for("step")
    check(program, f"after run {run}")
    program.go_on()
program.wait_for("ready")
program.end()
