#!/usr/bin/env python3
# needs: cc deb:gdb deb:systemtap-sdt-dev deb:bpftrace
# timeout: 300
"""The USDT probes of OpenTelemetry's proposal. readelf shows otel_memory:alloc and otel_memory:free with their
semaphores, and bpftrace lists them. gdb listens to the probes. For each block that is surely a sample, gdb sees one
allocation (address, size and weight) and one free. Such blocks include large, aligned and resized ones, and those of
owners. If memstow takes no samples, gdb sees nothing. If the kernel allows it, bpftrace sees the samples of a program
that already runs."""
import re, shutil, subprocess

import support

PROGRAM = r"""
#include <dlfcn.h>
#include <memstow.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

__attribute__((noinline)) static void *told(void *p, size_t size) {
    char line[64];
    int length = snprintf(line, sizeof line, "block %p %zu\n", p, size);
    return write(1, line, (size_t)length) == length ? p : NULL;
}

__attribute__((noinline)) static void ready(void) { __asm__ volatile(""); }

static void use(void) {
    void *volatile small = told(malloc(60000), 60000), *volatile zero = told(calloc(3, 20000), 60000);
    void *volatile large = told(malloc(300000), 300000), *volatile aligned = told(aligned_alloc(4096, 81920), 81920);
    void *volatile odd = told(aligned_alloc(64, 64000), 64000);
    small = told(realloc(small, 61000), 61000);
    large = told(realloc(large, 900000), 900000);
    large = told(realloc(large, 50000), 50000);
    free(small), free(zero), free(large), free(aligned), free(odd);
}

int main(void) {
    ready();
    use();
    int64_t (*open_owner)(int32_t, const char *, const char *, uint64_t, uint64_t) =
        (void *)dlsym(RTLD_DEFAULT, "memstow_owner_open");
    int (*enter)(uint32_t) = (void *)dlsym(RTLD_DEFAULT, "memstow_scope_enter");
    int (*leave)(uint32_t) = (void *)dlsym(RTLD_DEFAULT, "memstow_scope_leave");
    uint32_t owner = (uint32_t)open_owner(MEMSTOW_MODEL, "unet", "x", 1, 0);
    enter(owner);
    use();
    void *volatile mapped = told(malloc(1 << 20), 1 << 20); /* a mapping of its own */
    free(mapped);
    leave(owner);
    use(); /* of nobody, while there are owners */
    return 0;
}
"""
SCRIPT = """set breakpoint pending on
set debuginfod enabled off
set pagination off
handle all nostop noprint pass
break ready
run
break -probe-stap otel_memory:alloc
commands
silent
printf "alloc %#lx %lu %lu\\n", $_probe_arg0, $_probe_arg1, $_probe_arg2
continue
end
break -probe-stap otel_memory:free
commands
silent
printf "free %#lx\\n", $_probe_arg0
continue
end
continue
"""
notes = support.run("readelf", "-nW", support.LIBRARY).stdout
found = re.findall(r"Provider: (\S+)\s+Name: (\S+)\s+Location: \S+ Base: \S+ Semaphore: (\S+)\s+Arguments: (.*)", notes)
if not found:
    support.skip("this library was built without sys/sdt.h: it has no probes")
counts = [(name, len(arguments.split())) for _provider, name, _where, arguments in found]
assert counts == [("alloc", 3), ("free", 1)], notes
assert all(provider == "otel_memory" and int(where, 16) for provider, _name, where, _arguments in found), notes
exported = support.run("nm", "-D", "--defined-only", support.LIBRARY).stdout
assert "otel_memory" not in exported, exported
if shutil.which("bpftrace"):
    listed = support.run("bpftrace", "-l", f"usdt:{support.LIBRARY}:*").stdout.split()
    assert [line.rsplit("otel_memory:")[-1] for line in listed] == ["alloc", "free"], listed

probed = support.compile(PROGRAM, "probed", ["-O1", "-g", "-fno-builtin", f"-I{support.ROOT}/include", "-ldl"])
(support.HERE / "script").write_text(SCRIPT)


def listen(stacks):
    """Returns what the program allocates and what the listener sees, in the order of time. Elements are ("block",
    address, size), ("alloc", address, size, weight) and ("free", address)."""
    wrapper = (f"env LD_PRELOAD={support.LIBRARY} MEMSTOW_OUT={support.HERE}/{stacks}.mst MEMSTOW_STACKS={stacks}")
    done = support.run("gdb", "-nx", "-batch", "-ex", f"set exec-wrapper {wrapper}", "-x", "script", probed,
                       timeout=200, status=None)
    if "ptrace: Operation not permitted" in done.stderr:
        support.skip("gdb may not trace here: the probes were not listened to")
    assert "exited normally" in done.stdout, done.stdout + done.stderr
    lines = re.findall(r"^(block|alloc|free) (0x[0-9a-f]+)((?: \d+)*)$", done.stdout, re.M)
    return [(kind, int(address, 16), *map(int, numbers.split())) for kind, address, numbers in lines]


events = listen("sample:1024")
blocks = [event for event in events if event[0] == "block"]
assert len(blocks) == 3 * 8 + 1, events
known = {} # blocks that were seen, by address
matched = 0
for at, (kind, address, *numbers) in enumerate(events):
    if kind == "alloc":
        assert address not in known, ("a second alloc without a free", hex(address), events)
        known[address] = numbers
        assert numbers[0] <= numbers[1], numbers # a sample stands for at least itself
        if numbers[0] >= 50000:
            assert numbers[1] == numbers[0], numbers # a block of this size is always a sample
    elif kind == "free":
        assert known.pop(address, None), ("a free without an alloc", hex(address), events)
    else:
        assert known.get(address, [None])[0] == numbers[0], ("not seen", hex(address), numbers, known)
        matched += 1
assert matched == len(blocks)
left = [(hex(address), numbers) for address, numbers in known.items() if numbers[0] >= 50000]
assert not left, ("no free was seen", left)

assert not [event for event in listen("full") if event[0] != "block"], "probes without samples"

# --- bpftrace, on a program that runs already
if not shutil.which("bpftrace"):
    support.skip("gdb has seen the probes; bpftrace is not installed")
program = support.compile(r"""
#include <stdio.h>
#include <stdlib.h>
int main(void) {
    for (char line[16]; fgets(line, sizeof line, stdin);) {
        void *volatile p = malloc(60000);
        free(p);
    }
    return 0;
}
""", "looked_at", ["-O1", "-fno-builtin"])
looked_at = support.start(support.MEMSTOW, "run", "--quiet", "--exec", "-o", "looked_at.mst", "--stacks=sample:1024",
                          "--", program, stdin=subprocess.PIPE, text=True)
support.wait_for(lambda: (support.HERE / "looked_at.mst").exists(), what="the ledger")
where = f"usdt:{support.LIBRARY}:otel_memory"
with open("bpftrace.out", "w") as out, open("bpftrace.err", "w") as err:
    listener = support.start("bpftrace", "-p", looked_at.pid, "-e", f"""
        {where}:alloc {{ printf("alloc %llx %llu %llu\\n", arg0, arg1, arg2); }}
        {where}:free {{ printf("free %llx\\n", arg0); }}""", stdout=out, stderr=err)


def seen():
    """Lets the program allocate once more. Returns whether the listener has seen a sample, or has ended."""
    looked_at.stdin.write("again\n")
    looked_at.stdin.flush()
    text = (support.HERE / "bpftrace.out").read_text()
    return listener.poll() is not None or re.search(r"^alloc ([0-9a-f]+) 60000 60000\nfree \1$", text, re.M)


if isinstance(support.wait_for(seen, what="a sample at bpftrace"), bool):
    support.skip("gdb has seen the probes; bpftrace cannot listen here: "
                 + " ".join((support.HERE / "bpftrace.err").read_text().split())[-200:])
looked_at.stdin.close()
support.expect_exit(looked_at)
