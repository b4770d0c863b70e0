"""A node that starts threads that wait for ever. Memory that the C library takes for each thread is not a leak of the
node, and is counted separately. Memory that Python keeps for them is one finding, although many call stacks allocated
it."""
import support
from _leaks import brief, functions, leaks, waiting

RUNS, THREADS = 14, 12
program = waiting(f"""
import gc, threading, memstow
never, node = threading.Event(), memstow.owner("Starter", "node", "node 1")
for run in range({RUNS}):
    with memstow.run(f"run {{run}}"), memstow.scope(node):
        for _ in range({THREADS}):
            threading.Thread(target=never.wait, daemon=True).start()
gc.collect()
""")
document = leaks(program.pid(), status=1)
print(brief(document), document["not_leaks"])
apart = document["not_leaks"]["threads"]
assert apart["sites"] and apart["live_bytes"] >= RUNS * THREADS * 100, apart
assert {leak["node"] for leak in document["leaks"]} == {"Starter"}, brief(document)
for leak in document["leaks"]:
    native = [frame["function"] or "" for frame in leak["stack"][:4]]
    assert not any("dtv" in name or "dl_allocate" in name or name == "pthread_create" for name in native), native
    assert any(name.startswith("Thread") for name in functions(leak["stack"])), brief(document)
assert "came with threads that were started\n" in support.memstow("leaks", program.pid(), status=1).stdout
program.end()
