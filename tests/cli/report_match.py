"""--match: bytes and blocks are summed over the stacks that match. If nothing matches, a sentence says so."""
from _ledger import MIB, Ledger
from support import memstow, report

ledger = Ledger()
program = ledger.module("[program]")
main = ledger.node([ledger.frame(0x1000, program)])
load = ledger.site(program, stack=ledger.node([ledger.python("load", "/opt/Loader.py", 7)], main))
importing = ledger.python("_call_with_frames_removed", "<frozen importlib._bootstrap>", 241)
other = ledger.site(program, stack=ledger.node([importing, ledger.python("<module>", "/opt/other.py", 1)], main))
ledger.count(load, alloc=(3 * MIB, 3))
ledger.count(other, alloc=(9 * MIB, 9))
ledger.count(ledger.site(program, stack=ledger.node([ledger.python("gone", "/opt/gone.py", 1)], main)), alloc=(64, 1),
             free=(64, 1))
for number in range(3):
    ledger.block(0x7f0000001020 + (number << 24), MIB, load, birth_ns=2 * 10**9 - number)
ledger.block(0x7f1000001020, 9 * MIB, other)
ledger.save("x.mst")


def text(match, *options):
    done = memstow("report", "x.mst", f"--match={match}", *options)
    assert all(len(line) <= 80 for line in done.stdout.split("\n")), done.stdout
    return done.stdout


shown = text("load")
assert '\nCall stacks with "load" hold 3.0 MiB in 3 blocks, 25.0 % of what is live.\n' in shown, shown
assert "mappings (3 of 3)\n" in shown and ("      3 × 1.0 MiB         1.0 s  block      py load  "
                                           "Loader.py:7\n") in shown, shown
assert [block["size_bytes"] for block in report("x.mst", "--match=load")["large_blocks"]] == [MIB] * 3
assert "hold 12.0 MiB in 12 blocks, 100.0 %" in text("[program]") and "9.0 MiB         1.0 s" in text("other")

# Capital and small letters differ. Frames that the report leaves out do not match. Stacks that hold nothing are not
# shown.
NOTHING = 'othing matches "{}": no call stack with memory has this text in a function, a file or a module'
for word in ("LOAD", "Load", "frozen importlib", "frames_removed", "gone", "no such thing"):
    found = text(word) if word != "Load" else text("Loader.PY")
    said = NOTHING.format(word if word != "Load" else "Loader.PY")
    assert "N" + said in found.replace("\n", " ") and "By " not in found and "Largest" not in found, (word, found)
assert "Call stacks with \"gone\" hold 64 B in 1 block, 0.0 % of what is allocated." in text("gone", "--churn")
for form in ("--json", "--folded", "--pprof"):
    done = memstow("report", "x.mst", "--match=LOAD", form)
    assert done.stderr == f"memstow: n{NOTHING.format('LOAD')}\n", done.stderr
assert "\nBy thread\n" in text("load", "--by=thread") # the rows of threads show all memory, whatever matches
done = memstow("report", "x.mst", "--match=", status=2)
assert done.stderr.startswith("memstow: --match= matches everything: give it a text ("), done.stderr

ledger = Ledger()
ledger.count(ledger.site(ledger.module("/opt/program")), alloc=(64, 1))
ledger.save("x.mst")
assert '\nNothing matches "program": there are no call stacks in this file.\n' in text("program"), text("program")
