# needs: cc
"""What a program writes to a standard stream that it has closed does not go into its ledger, even while the ledger's
file is open."""
import pathlib

import support

program = support.compile(pathlib.Path(__file__).with_name("closed_streams.c"),
                          flags=("-O1", "-g", "-pthread", "-w", "-fno-builtin-malloc"))
for _ in range(3):
    for number in (1, 2):
        done = support.track(program, number)
        assert done.stdout == "0\n", (number, done)
        assert support.report()["totals"]["host"]["live_bytes"] >= 30000 * 70000
