# needs: cc
"""Words for a new user: no heading is without content, no figure contradicts another, hints come after what they are
about, and singular and plural are right."""
import re
import support
from _ledger import MIB, RUNNING, Ledger
from support import memstow


def text(*words, **more):
    shown = memstow(*words, **more).stdout
    assert max(map(len, shown.split("\n"))) <= 80, shown
    return shown


# A program has freed everything. The report says which list is empty, and does not show a peak of 0 if the peak was too
# small to be noted.
program = support.compile("""
#include <stdlib.h>
int main(int argc, char **argv) { /* BYTES */
    void *volatile block = malloc(atoi(argv[argc - 1]));
    free(block);
    return 0;
}
""", "freed")
done = memstow("run", "-o", "small.mst", "--", program, 5000)
assert re.search(r"\n  peak +< 1 MiB\n  live at end +0 B in 0 blocks\n  allocated +4\.9 KiB in 1 block\n",
                 done.stderr), done.stderr
shown = text("report", "small.mst")
assert re.search(r"\n  host heap +0 B +0 +< 1 MiB +4\.9 KiB\n  mapped +0 B +0 +0 B +0 B\n", shown), shown
for view, words in (("model", "nothing is live"), ("module", "nothing is live"), ("thread", "nothing was allocated")):
    empty = text("report", Ledger().save("em.mst"), f"--by={view}")
    assert f"\nBy {view}\n  {words}\n" in empty and "blocks\n\n" not in empty, empty
assert "\nBy site\n  nothing is live\n\n" in shown and "Call tree" not in shown, shown
assert "\nBy site\n  nothing is known of the peak\n" in text("report", "small.mst", "--peak")
assert "innermost first\n     4.9 KiB " in text("report", "small.mst", "--churn")
memstow("run", "--quiet", "-o", "none.mst", "--", program, 0)
large = memstow("run", "-o", "large.mst", "--", program, 50 * MIB).stderr
assert re.search(r"\n  peak +50\.0 MiB\n", large), large
shown = " ".join(text("report", "large.mst", "--peak").split())
assert re.search(r'The column "at peak" shows the ledger at the peak, [\d.]+ s after the start\.', shown), shown

# The summary says "both programs" of two.
done = memstow("run", "-o", "two.mst", "--", "sh", "-c", f"{program} 1; exit 0")
assert "\n  both programs: " in done.stderr and "\n  more files     1: two.mst.*\n" in done.stderr, done.stderr
done = memstow("run", "-o", "three.mst", "--", "sh", "-c", f"{program} 1; {program} 1; exit 0")
assert "\n  all 3 programs: " in done.stderr, done.stderr

# A list that leaves rows out says so in a line behind it, before the explanation of the rows.
ledger = Ledger()
site = ledger.site(ledger.module("/opt/program"))
ledger.count(site, alloc=(9 * MIB, 1), thread=1)
for number in range(3):
    ledger.count(site, alloc=((3 - number) * MIB, 1), thread=ledger.thread(f"worker {number}"))
ledger.save("threads.mst")
shown = text("report", "threads.mst", "--by=thread", "--top=3")
assert shown.split("\nBy thread\n")[1].split("\n")[1:6] == [
    "  (mappings)                                  9.0 MiB     +9.0 MiB",
    "  worker 0                                    3.0 MiB     +3.0 MiB",
    "  worker 1                                    2.0 MiB     +2.0 MiB", "  … and 1 more (--top=N shows N)",
    "  (mappings): the mappings of all threads."], shown

# Memory without an owner has one name.
ledger = Ledger(state=RUNNING)
ledger.count(ledger.site(tag=ledger.tag(model=ledger.owner(1, "unet"))), alloc=(MIB, 1))
ledger.count(ledger.site(), alloc=(MIB, 1))
ledger.line(kind="TRIGGER", trigger=1, reason="run_end", text="first")
ledger.save("owned.mst")
assert re.search(r" 50\.0 %  untagged\n",
                 text("owners", "owned.mst")) and "\n  untagged  " in text("report", "owned.mst", "--by=model")
assert text("decisions", "owned.mst").startswith("Trigger 1: "), text("decisions", "owned.mst")

# Help tells the truth about the command.
assert "no such owner" not in text("trigger", "--help") and "no such owner" in text("stow", "--help")
done = memstow("reap", status=3)
assert done.stderr == (
    "memstow: process_registry.json: No such file or directory\n"
    "memstow: a program that registers processes keeps this list in its folder: see memstow-reap(1)\n"), done.stderr
