"""memstow reads the same decisions of a program with models from the running process, from a snapshot, and from the
ledger after the program's end. The decisions name the outcome for each model, and pass the check."""
import json

from support import ROOT, MEMSTOW, compile, memstow, start

PROGRAM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "memstow.h"

#define TYPE(name) __typeof__(memstow_##name)
#define FIND(name) TYPE(name) *name = (TYPE(name) *)dlsym(RTLD_DEFAULT, "memstow_" #name)

static void *load(uint32_t owner, size_t size) {
    FIND(scope_enter);
    FIND(scope_leave);
    if (scope_enter(owner)) abort();
    void *weights = memset(malloc(size), 1, size);
    if (scope_leave(owner)) abort();
    return weights;
}

int main(void) {
    FIND(owner_open);
    FIND(owner_policy);
    FIND(owner_retire);
    FIND(scope_enter);
    FIND(trigger_begin);
    FIND(trigger_end);
    FIND(trigger);
    const char *names[] = {"unet", "clip", "vae", "held", "busy", "left"};
    const uint32_t policies[] = {MEMSTOW_FREE, MEMSTOW_KEEP, MEMSTOW_NO_POLICY,
                                 MEMSTOW_FREE, MEMSTOW_FREE, MEMSTOW_FREE};
    struct memstow_decision decisions[10];
    uint32_t ids[6];
    void *weights[6];
    for (int i = 0; i < 6; i++) {
        ids[i] = (uint32_t)owner_open(MEMSTOW_MODEL, names[i], "test", 0, 0);
        weights[i] = load(ids[i], 4 << 20);
        if (policies[i] && owner_policy(ids[i], policies[i], i)) abort();
        if (policies[i] && owner_policy(ids[i], policies[i], i)) abort(); /* no news */
    }
    owner_retire(ids[5]);
    scope_enter(ids[4]);
    int64_t count = trigger_begin(MEMSTOW_RUN_ENDED, "ok", 0, decisions, 10, sizeof *decisions);
    for (int i = 0; i < count; i++)
        if (decisions[i].owner == ids[0] && decisions[i].action == MEMSTOW_FREE) free(weights[0]);
    puts("in the trigger");
    fflush(stdout);
    getchar();
    printf("%d %lld\n", (int)count, (long long)trigger_end());
    if (trigger(MEMSTOW_REQUEST, "again") < 0) abort();
    fflush(stdout);
    getchar();
}
"""


def categories(what, trigger):
    document = json.loads(memstow("decisions", what, "--check", "--json").stdout)
    names = {owner["id"]: owner["name"] for owner in document["owners"]}
    lines = [line for line in document["lines"] if line.get("trigger") == trigger]
    return document["lines"], {names[line["owner"]]: line["category"] for line in lines if line["kind"] == "CATEGORY"}


program = compile(PROGRAM, "models", flags=("-O1", "-g", f"-I{ROOT}/include"))
run = start(MEMSTOW, "run", "--quiet", "-o", "out.mst", "--", program, stdin=-1, stdout=-1, text=True)
assert run.stdout.readline() == "in the trigger\n"
pid = json.loads(memstow("report", "out.mst", "--json").stdout)["process"]["pid"]
assert memstow("decisions", pid).stdout.endswith("\n  It is not finished yet.\n")
run.stdin.write("\n")
run.stdin.flush()
count, given = map(int, run.stdout.readline().split())
assert count == 6 and 4 << 20 <= given < 5 << 20, (count, given)
live, first = categories(pid, 1)
assert first == {"unet": "freed", "clip": "kept", "vae": "kept", "held": "blocked", "busy": "blocked",
                 "left": "blocked"}, first
assert sum(line["kind"] == "SET" for line in live) == 5, live
_, second = categories(pid, 2)
assert second == {name: category for name, category in first.items() if name != "unet"}, second # it is empty now
memstow("snapshot", pid, "-o", "snapshot.mst")
run.communicate("\n", timeout=60)
assert categories("snapshot.mst", 1) == categories("out.mst", 1) == (live, first)
text = memstow("decisions", "out.mst", "--check").stdout
for part in (
    "Set  unet (test, model 1): policy free\n",
    "\n  unet (test, model 1)\n    freed, 4.0 MiB before, 0 B left\n    policy free\n",
    "\n  held (test, model 4)\n    blocked, 4.0 MiB\n    policy free\n    the program still holds this memory\n",
    "\n  left (test, model 6)\n    left behind, 4.0 MiB\n    policy free; the owner is gone: it left this memory\n",
    "it is in use, a scope of it is open", "\nTrigger 2: request (again), ", "\nNo fault in "
):
    assert part in text, (part, text)
