#!/usr/bin/env python3
"""Each file of the library with mutable state has a function that resets it in a forked child (preload/base/forked.h),
or is listed here with the reason why its state stays valid. No file is listed here without need."""
import collections, re, subprocess

import support

# For each file or room: the reason why its state is valid in a child, too.
REASONS = {
    "base/arena": "private memory: the child has a copy of it",
    "base/lock": "only grows",
    "base/next": "the allocator is the same",
    "base/notice": "standard error is the parent's",
    "base/seal": "on a page that the kernel wipes, and seal_watch_forks",
    "base/symbol": "addresses of functions: the code is the same",
    "base/tracked": "on a page that the kernel wipes; the mark is set anew (life/process.c)",
    "blocks/gone": "the child may free what its parent did; the mark says whose the site is",
    "control": "on pages that the kernel wipes: a child has no thread of ours",
    "count/probe": "the listener's: its probes are in the child's copy of the code, too",
    "cuda/cuda_route": "addresses of functions: the code is the same",
    "cuda/cuda_scope": "addresses of functions: the code is the same",
    "hooks": "addresses of functions: the code is the same",
    "ledger/ledger": "life/process.c calls ledger_abandon when all others have forgotten",
    "ledger/ledger_file": "ledger_abandon forgets it",
    "ledger/ledger_strings": "ledger_abandon forgets it",
    "ledger/spawn": "a copy of texts, written anew by each spawn",
    "life/closing": "written when the process ends",
    "life/misuse": "glibc's key is the same in the child",
    "life/process": "it begins the child (leave_parent)",
    "life/sandbox": "counted on a page that the kernel wipes",
    "owners/moving": "the kernel is the same; what the last move came to is the thread's own",
    "owners/owned": "set for good by the store",
    "serve/serve_contexts": "only grows",
    "serve/serve_settings": "the environment's wishes",
    "shared": "the kernel's clock, wishes from the environment, and memory to work in",
    "shutdown": "knows the process that it was made in by its pid",
    "stacks/generation": "only grows",
    "stacks/stack": "the slot's memory is forgotten with the slot (count/thread.c); the shared one has its process's "
                    "pid",
    "stacks/view": "the main thread's stack is where it was",
    "stow/stow_file": "files are made by each process for itself",
    "stow/stow_table": "stow_abandon (stow/stow_pass.c) forgets it, once in each child",
    "stow/stow_work": "stow_abandon (stow/stow_pass.c) forgets it, once in each child",
    "stow/stow_thread": "addresses of functions: the code is the same",
    "vram/vram_memory": "only grows",
}
# Sections to which nothing writes any more once the program has started.
CONSTANT = re.compile(r"\.(data\.rel\.ro|rodata)|memstow_forked$|\*")


def symbols(path):
    """(section, name) of each data object in an object file."""
    for line in subprocess.run(["objdump", "-t", path], capture_output=True, text=True, check=True).stdout.splitlines():
        found = re.match(r"[0-9a-f]{16} ......O (\S+)\t[0-9a-f]{16} (?:\.hidden )?(\S+)$", line)
        if found:
            yield found[1], found[2]


state, says = collections.defaultdict(list), set()
folder = support.BUILD / "CMakeFiles/libmemstow.dir/preload"
for path in folder.rglob("*.o"):
    name = str(path.relative_to(folder))[:-4]
    if not (support.ROOT / "preload" / f"{name}.c").exists():
        continue
    for section, symbol in symbols(path):
        if section == "memstow_forked":
            says.add(name)
        elif not CONSTANT.match(section):
            state[name].append(symbol)

assert len(state) > 50 and len(says) > 30, f"the objects could not be read: {len(state)}, {len(says)}"
faults, used = [], set()
for name, names in sorted(state.items()):
    reason = name if name in REASONS else name.split("/")[0]
    if name in says:
        continue
    if reason in REASONS:
        used.add(reason)
    else:
        faults.append(
            f"preload/{name}.c has {', '.join(names[:5])}, and does not say what a forked child forgets of it")
faults += [
    f"{name}: has no state any more, or says what a child forgets: take it off the list"
    for name in sorted(set(REASONS) - used)
]
faults += [f"{name}: says what a child forgets, and stands in the list" for name in sorted(says & set(REASONS))]
assert not faults, "\n".join(faults)
