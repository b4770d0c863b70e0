"""If a ledger would replace a foreign file, each command that writes ledgers exits with 2, as for wrong usage. If a
page cannot be written, or would replace a ledger, the command exits with 3, as for failed output."""
import pathlib, subprocess

import support
from _ledger import simple

simple().save("kept.mst")
kept = pathlib.Path("kept.mst").read_bytes()
pathlib.Path("notes.txt").write_text("notes")
program = support.start(support.MEMSTOW, "run", "--quiet", "-o", "waits.mst", "--", "sh", "-c", "echo $$; read line",
                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
pid = program.stdout.readline().strip()
for words in (["report", "kept.mst"], ["diff", "kept.mst", "kept.mst"], ["leaks", "kept.mst"]):
    done = support.memstow(*words, "--html", "-o", "kept.mst", status=3)
    assert done.stderr == "memstow: kept.mst: is a memstow file: not replaced by a page\n", done
    support.memstow(*words, "--html", "-o", "nowhere/page.html", status=3)
for words in (["snapshot", pid, "-o", "notes.txt"], ["leaks", pid, "--series=notes.txt"],
              ["run", "-o", "notes.txt", "--", "true"]):
    done = support.memstow(*words, status=2)
    assert done.stderr.endswith("notes.txt: exists and is not a memstow file: not replaced\n"), done
assert pathlib.Path("kept.mst").read_bytes() == kept and pathlib.Path("notes.txt").read_text() == "notes"
