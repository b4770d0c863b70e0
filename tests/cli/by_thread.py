"""With --by=thread, threads that have the same name are told apart, rows that are no threads are explained, and the
rows of a diff add up."""
import json, re
from _ledger import FORK_CHILD, MIB, Ledger
from support import memstow


def ledger(size, **header):
    made = Ledger(**header)
    site = made.site(made.module("/opt/program"))
    made.count(site, alloc=(5 * size, 5), free=(size, 1))
    for tid, name in ((2001, "worker"), (2002, "worker"), (2003, "writer")):
        made.count(site, alloc=(size, 1), thread=made.thread(name, tid))
    made.count(site, alloc=(size, 1), thread=1)
    return made


ledger(MIB).save("a.mst")
text = memstow("report", "a.mst", "--by=thread").stdout
names = re.findall("^  (\\S.*?)  +[\\d.]+ MiB ", text[text.index("By thread"):], re.M)
assert names == ["program", "(mappings)", "worker, 2001", "worker, 2002", "writer"], text
assert "\n  (mappings): the mappings of all threads.\n" in text and "(earlier threads)" not in text, text

child = ledger(2 * MIB, flags=FORK_CHILD, inherited=100 * MIB)
child.count(1, free=(3 * MIB, 3))
child.save("b.mst")
text = memstow("report", "b.mst", "--by=thread").stdout
assert "\n  (inherited): blocks from before the fork that the threads freed.\n" in text, text
document = json.loads(memstow("diff", "a.mst", "b.mst", "--by=thread", "--json").stdout)
rows = {row["name"]: row["growth_bytes"] for row in document["rows"]}
assert rows == {"program": MIB, "worker": 2 * MIB, "writer": MIB, "(mappings)": MIB, "(inherited)": 3 * MIB}, rows
assert sum(rows.values()) == document["growth_bytes"] == 8 * MIB, document
assert sum(row["growth_blocks"] for row in document["rows"]) == document["growth_blocks"], document
