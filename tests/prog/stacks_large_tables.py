#!/usr/bin/env python3
"""If a library has unwind tables of 256 KiB or more, memstow maps the tables a second time and reads them from its own
mapping. Pages of this mapping do not stay resident. Every call stack is right. This also holds if the library is loaded
again, if another library is loaded at its address, and in a forked child. memstow makes no mapping of its own in these
cases:
- The library's path leads to another file.
- The path is relative.
- The library has no build id.
- The process is in a sandbox."""
import pathlib, shutil

import support

FUNCTIONS = 12000
SOURCE = pathlib.Path(__file__).with_name("_stacks_large_tables.c")
PROGRAM = support.compile(SOURCE, flags=("-O1", "-g", "-D_GNU_SOURCE"))


def library(name, *flags):
    """Makes a library with many functions, NAME_0 and so on. Each function has two parameters, a function and a number,
    and calls that function with that number. The frames have 61 sizes. Libraries whose names begin with different
    letters have the sizes in different orders."""
    lines = [".text"]
    for i in range(FUNCTIONS):
        size = 16 * ((i + ord(name[0])) % 61) + 8
        lines += [f"{name}_{i}:", ".cfi_startproc", f"subq ${size}, %rsp", f".cfi_def_cfa_offset {size + 8}",
                  "movq %rdi, %rax", "movl %esi, %edi", "call *%rax", f"addq ${size}, %rsp", ".cfi_def_cfa_offset 8",
                  "ret", ".cfi_endproc", f".type {name}_{i}, @function", f".size {name}_{i}, .-{name}_{i}"]
    lines += [".data", ".globl functions", "functions:", *(f".quad {name}_{i}" for i in range(FUNCTIONS)),
              '.section .note.GNU-stack,"",@progbits', ""]
    pathlib.Path(f"{name}.s").write_text("\n".join(lines))
    support.run("cc", "-shared", *flags, f"{name}.s", "-o", f"{name}.so")
    return support.HERE / f"{name}.so"


def check(first, count, name, file="out.mst"):
    """Checks that `count` functions of the library, from number `first` on, have allocated, each at its own stack.
    Function i has allocated i + 1 bytes. If `name` is None, the report does not know the functions' names."""
    found = {}
    for site in support.report(file, f"--top={2 * FUNCTIONS}")["sites"]:
        functions = [frame.get("function") for frame in site["stack"]]
        if functions[:1] == ["allocate"] and functions[2:4] == ["call", "main"]:
            found[functions[1] or site["live_bytes"], site["live_bytes"]] = site["live_blocks"]
    wanted = {(name and f"{name}_{i}" or i + 1, i + 1): 1 for i in range(first, first + count)}
    assert wanted.items() <= found.items(), (len(found), list(found.items())[:5])


def tell(*arguments, **more):
    """Runs the program, and returns what each `tell` has printed, as (mappings, resident KiB)."""
    lines = support.track(PROGRAM, *map(str, arguments), **more).stdout.splitlines()
    return [tuple(map(int, line.split())) for line in lines]


one, two = library("one", "-Wl,--build-id"), library("two", "-Wl,--build-id")

# All stacks are right. Pages of the mapping are given back when an unwind rule is read after a pause. In this case, the
# rule is that of the program's function `here`.
before, after, later = tell("load", one, "tell", "call", 0, FUNCTIONS, "tell", "wait", "here", "tell")
check(0, FUNCTIONS, "one")
assert before[0] == 0 and after[0] == later[0] == 1 and after[1] > later[1] == 0, (before, after, later)

# Pages are also given back after a dlclose, even if no further rule of the library is read.
(later,) = tell("load", one, "call", 0, FUNCTIONS, "load", one, "close", "wait", "here", "tell")
assert later == (1, 0), later

# The first library is unloaded, and the second one is loaded at the same address. Then the first one is loaded again.
tables = tell("load", one, "call", 0, 99, "close", "load", two, "call", 0, 999, "tell", "close",
              "load", one, "call", 99, 900, "tell")
check(0, 999, "one")
check(0, 999, "two")
assert [count for count, _ in tables] == [1, 1], tables

# A child reads further rules from its parent's mapping, and maps a library that the parent has not loaded.
tables = tell("load", one, "call", 0, 99, "fork", "call", 99, 900, "tell", "close", "load", two, "call", 0, 999, "tell")
child, = support.HERE.glob("out.mst.*")
check(99, 900, "one", child)
check(0, 999, "two", child)
assert [count for count, _ in tables] == [1, 1], tables

# A library is unloaded. Another library takes its path, and is loaded at the same address. memstow maps the tables of
# the new library, too. The ledger has the build id of the old library. So the report does not read the new library's
# file, and has no names of its functions.
plugin = support.HERE / "plugin.so"
shutil.copy(one, plugin)
tables = tell("load", plugin, "call", 0, 99, "tell", "close", "rename", shutil.copy(two, "newer.so"), plugin,
              "load", plugin, "call", 99, 900, "tell")
check(99, 900, None)
assert [count for count, _ in tables] == [1, 2], tables

# In these cases there is no mapping, and the stacks are right all the same. Where `name` is None, the report cannot
# find the library's file, so it has no names of functions.
NOT_THERE = {
    "another file is at the path": (None, "load", one, "rename", shutil.copy(two, "other.so"), one),
    "the path is relative": (None, "load", "./two.so"),
    "the file has no build id": ("none", "load", library("none", "-Wl,--build-id=none")),
    "a sandbox": ("two", "load", two, "seal"),
}
for case, (name, *arguments) in NOT_THERE.items():
    (count, _), = tell(*arguments, "call", 0, 999, "tell")
    check(0, 999, name)
    assert count == 0, case
