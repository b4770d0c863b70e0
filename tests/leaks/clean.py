# timeout: 200
"""A program that does not leak: thirty runs, looked at again and again in the running program, in a series, and in
snapshots. No leak is found at any time, and there is always a verdict. The same holds with --python-objects."""
import subprocess

import support
from _leaks import brief, leaks, plant

RUNS, STEP = 30, 10

for options, file in (((), "plain.mst"), (("--python-objects",), "objects.mst")):
    program = plant("clean", RUNS, STEP, options=options, file=file)
    shots = []
    for number in range(RUNS // STEP):
        program.wait_for("step")
        pid = program.pid()
        if number == 0:
            series = support.start(support.MEMSTOW, "leaks", pid, f"--series={file}.series", "--json",
                                   stdout=subprocess.DEVNULL)
        document = leaks(pid, status=0)
        assert not document["found"], (file, number, brief(document))
        shots.append(f"{file}.{number}")
        support.memstow("snapshot", pid, "-o", shots[-1])
        program.go_on()
    program.wait_for("ready")
    series.terminate()
    support.expect_exit(series, seconds=30)
    for words in ((f"{file}.series",), shots):
        document = leaks(*words, status=0)
        assert not document["found"], (file, words, brief(document))
    document = leaks(program.pid(), status=0)
    assert not document["found"], (file, brief(document))
    assert document["not_leaks"]["one_off"]["sites"] and document["runs"]["judged"] == RUNS - 5, document["not_leaks"]
    program.end()
