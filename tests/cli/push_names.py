#!/usr/bin/env python3
# needs: cc deb:protobuf-compiler pip:protobuf==7.36.2
"""`memstow push` looks up a function once, and keeps its name for later profiles, even if the library's file is removed
meanwhile. Code that is in no file is looked up for each profile. A library whose file could not be read is also looked
up for each profile, but memstow complains about it only once. When the process becomes another program, its names are
looked up anew."""
import atexit, pathlib, shutil, subprocess

from _push import Recorder
from support import HERE, MEMSTOW, run, skip, start, wait_for

if not shutil.which("protoc"):
    skip("needs protoc to read a profile with")
pathlib.Path("lib.c").write_text("""
#include <stdlib.h>
void *KEPT(size_t size) { return malloc(size); }
""")
# The program writes machine code into a page and calls it, as a JIT compiler does. The code calls malloc with the
# argument that it got.
pathlib.Path("program.c").write_text(r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
void *KEPT(size_t size);
int main(int count, char **words) {
    unsigned char code[] = {0x55, 0x48, 0x89, 0xe5, 0x48, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xd0, 0x5d, 0xc3};
    void *(*called)(size_t) = malloc, *page = mmap(NULL, 4096, 7, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(code + 6, &called, sizeof called);
    memcpy(page, code, sizeof code);
    volatile void *kept = KEPT(5 << 20), *made = ((void *(*)(size_t))page)(3 << 20);
    printf("%lx %p %p\n", (unsigned long)page, kept, made);
    fflush(stdout);
    if (!getchar()) return 1;
    if (count > 1) execv(words[1], words + 1);
    getchar();
}
""")
for name in ("kept", "other"):
    run("cc", "-g", "-O1", "-fPIC", "-shared", f"-DKEPT={name}_here", "lib.c", "-o", f"lib{name}.so")
    run("cc", "-g", "-O1", f"-DKEPT={name}_here", "program.c", f"-L{HERE}", f"-l{name}", f"-Wl,-rpath,{HERE}", "-o",
        f"program_{name}")
program = start(MEMSTOW, "run", "--quiet", "-o", "x.mst", "--exec", "--", "./program_kept", "./program_other",
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
page = program.stdout.readline().split()[0]
pathlib.Path("libkept.so").rename("elsewhere.so")
recorder = Recorder()
with open("said.txt", "w") as said:
    pusher = start(MEMSTOW, "push", "--to=parca", recorder.url, program.pid, "--every=200ms", stderr=said)


def functions(at=-1):
    message = recorder.profiles[at].message
    return {message.string_table[one.name] for one in message.function}


def next_with(*names):
    """Waits for a profile that has these functions. Returns the names of all its functions."""
    wait_for(lambda: recorder.profiles and set(names) <= functions(), what=f"a profile with {names}")
    return functions()


first = next_with("main")
assert not {"kept_here", "made_here"} & first, first
before = len(recorder.profiles)
wait_for(lambda: len(recorder.profiles) > before + 1, what="two more profiles")
pathlib.Path("elsewhere.so").rename("libkept.so")
next_with("kept_here", "main")
pathlib.Path("libkept.so").unlink()
pathlib.Path("program_kept").unlink()
mapped = pathlib.Path(f"/tmp/perf-{program.pid}.map")
atexit.register(lambda: mapped.unlink(missing_ok=True))
mapped.write_text(f"{page} 1000 made_here\n")
next_with("made_here", "kept_here", "main")
said = pathlib.Path("said.txt").read_text().splitlines()
assert len(said) == 1 and "libkept.so cannot be opened" in said[0], said

program.stdin.write("\n")
program.stdin.flush()
assert program.stdout.readline()
assert "kept_here" not in next_with("other_here", "main")
pusher.terminate()
assert pusher.wait(30) == 0
