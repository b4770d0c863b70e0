# needs: cc stacks deb:libjemalloc2
"""Sampling changes no total. A program that does the same each time has the same sums in every mode. This is also true
of the sums of each thread, of a running program, of a snapshot, of children, and with another allocator. MEMSTOW_STACKS
is read correctly if it was set by hand."""
import os, pathlib
from support import MEMSTOW, compile, features, memstow, report, start, track, wait_for

SOURCE = r"""
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int argc, char **argv) {
    static void *volatile kept[5000];
    for (int i = 0; i < 100000; i++) {
        free(kept[i % 5000]);
        if (i % 7) kept[i % 5000] = malloc(1 + i * 31 % 3000);
        else kept[i % 5000] = i % 3 ? calloc(3, i % 400) : aligned_alloc(64, 64 * (1 + i % 2000));
        if (i % 11 == 0) kept[i % 5000] = realloc(kept[i % 5000], 1 + i % 90000);
    }
    if (argc > 1 && !strcmp(argv[1], "wait")) return write(1, "\n", 1), pause();
    if (argc > 1 && !strcmp(argv[1], "exec")) return execl(argv[0], argv[0], "fork", NULL);
    if (argc == 1 || fork()) return wait(NULL) < 0 && argc > 1;
    for (int i = 0; i < 5000; i++) kept[i] = malloc(100 + i);
    return 0;
}
"""
program = compile(SOURCE, "program", flags=("-O1", "-fno-builtin"))
on_jemalloc = compile(SOURCE, "on_jemalloc", flags=("-O1", "-fno-builtin", "-Wl,--no-as-needed", "-l:libjemalloc.so.2"))


def totals(file):
    document = report(file)
    threads = [(one["allocated_bytes"], one["allocated_blocks"], one["freed_bytes"]) for one in document["threads"]]
    return {name: document["totals"][name] for name in ("host", "mapped")}, threads, document


def same(command, options, *arguments):
    for mode in ("none", "sample:32K"):
        for old in pathlib.Path(".").glob("out.mst*"):
            old.unlink()
        track(command, *arguments, file="out.mst", options=[f"--stacks={mode}", *options])
        yield sorted([totals(file)[:2] for file in pathlib.Path(".").glob("out.mst*")], key=str), totals("out.mst")[2]


allocators = [(program, []), (on_jemalloc, [])] + [(program, ["--allocator=mimalloc"])] * features()["mimalloc"]
for command, options in allocators:
    for arguments, files in (((), 1), (("fork",), 2), (("exec",), 3)):
        (none, _), (sampled, document) = same(command, options, *arguments)
        for one in none + sampled:
            one[0]["host"].pop("peak_bytes") # threads make it differ a little
        assert none == sampled and len(none) == files, (options, arguments, none, sampled)
        assert document["process"]["foreign_allocator"] == (command == on_jemalloc)
        assert len(document["sites"]) > 2 and document["process"]["sample_bytes"] == 32768
        live = document["estimates"]["live"]
        assert abs(live["remainder_bytes"]) < 6 * live["error_bytes"], live
        assert 0 < live["error_bytes"] < live["bytes"] / 5, live

# The running program, its snapshot and its ledger have the same totals, because a snapshot has the ledger's raw data.
running = start(MEMSTOW, "run", "--quiet", "-o", "live.mst", "--stacks=sample:32K", "--", program, "wait",
                stdout=(out := open("ready", "wb")))
wait_for(lambda: os.path.getsize("ready"))
pid = report("live.mst")["process"]["pid"]
memstow("snapshot", pid, "-o", "snapshot.mst")
live, kept = totals(str(pid))[2], totals("snapshot.mst")[2]
assert live["totals"] == kept["totals"] == totals("live.mst")[2]["totals"] and live["estimates"] == kept["estimates"]
assert live["sites"] == kept["sites"]

# MEMSTOW_STACKS is set by hand.
for mode, expected in (("sample", 524288), ("sample:4096", 4096), ("sample:4K", 524288), ("sample:", 524288),
                       ("sample:99999999999999999999999", 524288), ("samples", None), ("full", None), ("none", None)):
    memstow("run", "--quiet", "-o", "hand.mst", "--", "env", f"MEMSTOW_STACKS={mode}",
            f"MEMSTOW_OUT={os.getcwd()}/child.mst", "MEMSTOW_OUT_NAMED=", "ls", "/")
    assert report("child.mst")["process"]["sample_bytes"] == expected, mode
