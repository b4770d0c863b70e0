# long
# timeout: 3000
"""A program that does not leak is started a hundred times, for twenty runs each time. It is looked at while it runs and
in a snapshot. Another program works at least a hundred times outside of runs, and is looked at after each time and by a
series. There is no false finding."""
import support
from _leaks import brief, leaks, plant, record


def check(what, subject):
    document = leaks(subject)
    assert not document["found"], (what, brief(document))


for repetition in range(100):
    program = plant("clean", 20, options=("--python-objects",) if repetition % 2 else ())
    program.wait_for("ready")
    check(f"repetition {repetition}", program.pid())
    support.memstow("snapshot", program.pid(), "-o", "snapshot.mst")
    check(f"repetition {repetition}, snapshot", "snapshot.mst")
    program.end()

STEPS = 400 # at most: of a fast program the series reads the state after some steps only
program = plant("clean", 20, readings=STEPS)
program.wait_for("ready")
recorder = record(program, "clean.series")
for number in range(STEPS):
    program.go_on()
    program.wait_for("step")
    check(f"after {number}", program.pid())
    if number >= 99 and number % 20 == 19 and leaks("clean.series")["readings"]["judged"] >= 50:
        break
assert leaks(program.pid())["runs"]["judged"] >= 90, leaks(program.pid())["runs"]
recorder.terminate()
support.expect_exit(recorder, seconds=30)
check("series", "clean.series")
assert leaks("clean.series")["readings"]["judged"] >= 50, leaks("clean.series")["readings"]
for _ in range(number + 1, STEPS):
    program.go_on()
program.end()
