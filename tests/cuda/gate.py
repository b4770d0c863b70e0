#!/usr/bin/env python3
# needs: cc
"""Memory on CUDA devices makes a build fail as host memory does, with check and with diff: in all, by owner, by call
site, at the peak, and with suppressions. The driver is the simulated one, a test double."""
import json, pathlib

import support, _simulated

PROGRAM = """
#include "abi.h"
#include "cuda_abi.h"
#include <stdlib.h>
int cuInit(unsigned); int cuDevicePrimaryCtxRetain(CUcontext *, int); int cuCtxSetCurrent(CUcontext);
int cuMemAlloc_v2(CUdeviceptr *, size_t); int cuMemFree_v2(CUdeviceptr);
__attribute__((noinline)) static CUdeviceptr load_weights(size_t mib) {
    CUdeviceptr at = 0;
    if (mib && cuMemAlloc_v2(&at, mib << 20)) exit(1);
    __asm__ volatile("" ::: "memory");
    return at;
}
__attribute__((noinline)) static CUdeviceptr scratch(size_t mib) {
    CUdeviceptr at = 0;
    if (mib && cuMemAlloc_v2(&at, mib << 20)) exit(1);
    __asm__ volatile("" ::: "memory");
    return at;
}
int main(int count, char **arguments) { /* MiB of the model, of nobody's, and of what is freed again */
    CUcontext context;
    size_t mib[3] = {0};
    for (int i = 1; i < count && i < 4; i++) mib[i - 1] = (size_t)atol(arguments[i]);
    if (count < 2) return 0; /* without CUDA */
    if (cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context)) return 1;
    abi_find();
    uint32_t model = (uint32_t)CALL(0, memstow_owner_open, MEMSTOW_MODEL, "the model", "m.bin", 0, 1);
    CALL(0, memstow_scope_enter, model);
    load_weights(mib[0]);
    CALL(0, memstow_scope_leave, model);
    scratch(mib[1]);
    CUdeviceptr gone = scratch(mib[2]);
    return gone ? cuMemFree_v2(gone) : 0;
}
"""
(support.HERE / "gated.c").write_text(PROGRAM)
program = _simulated.program(support.HERE / "gated.c", _simulated.LIBRARIES / "libcuda.so.1", name="gated")
environment = _simulated.environment()
one = ("--runs=1", "--warm-up=0")


def check(*mib, status=0, options=(), baseline="base.txt"):
    return support.memstow("check", f"--baseline={baseline}", *one, *options, "--", program, *mib, status=status,
                           env=environment)


# The baseline has lines about devices. For a program without CUDA, the baseline keeps its first format.
done = check(8, 1, options=("--update-baseline",))
assert "and 9.0 MiB on CUDA devices, " in done.stderr, done.stderr
text = pathlib.Path("base.txt").read_text()
assert text.startswith("memstow-baseline 3\n") and "\ncuda-total 9437184 2\n" in text, text
assert '\ncuda-owner 8388608 1 model "the model" "m.bin"\n' in text, text
assert ('\ncuda-site 8388608 1 at "load_weights@(program)" "main@(program)" of "model:the model" from "m.bin"\n'
        in text), text
check(options=("--update-baseline",), baseline="plain.txt")
assert pathlib.Path("plain.txt").read_text().startswith("memstow-baseline 1\n"), "as before"
check(8, 1, options=("--update-baseline",))
assert pathlib.Path("base.txt").read_text() == text

# Memory on devices is judged separately: here it grows, and the host's does not.
check(8, 1)
check(4, 1)
done = check(20, 1, options=("--fail-over=5M",), status=1)
assert ("all memory on CUDA devices grew by 12.0 MiB and 0 blocks: over the limit of 5M; most of it (+12.0 MiB) at "
        "load_weights@(program)") in " ".join(done.stderr.split()), done.stderr
done = check(20, 1, status=1) # the default rule
done = check(20, 0, options=("--fail-over=owner:5M",), status=1)
assert 'model the model (m.bin) on CUDA devices grew by 12.0 MiB' in done.stderr, done.stderr
check(8, 20, options=("--fail-over=owner:5M",)) # the growth has no owner
done = check(8, 20, options=("--fail-over=site:5M,site:1000x",), status=1)
assert "scratch@(program) < main@(program) on CUDA devices grew by 19.0 MiB" in " ".join(
    done.stderr.split()), done.stderr

# Known growth passes, and changes nothing on the host.
pathlib.Path("known.txt").write_text("function=load_weights module=(program)\n")
done = check(20, 1, options=("--fail-over=5M,site:5M,owner:5M", "--suppressions=known.txt"))
assert "without 12.0 MiB that is suppressed" in done.stdout, done.stdout
check(20, 20, options=("--fail-over=5M", "--suppressions=known.txt"), status=1)

# --json: findings of the host are still listed. `place` tells them from findings of CUDA devices.
findings = json.loads(check(20, 1, options=("--json", "--fail-over=5M"), status=1).stdout)["findings"]
totals = [(f["kind"], f["place"], f["verdict"], f["name"]) for f in findings if f["kind"] == "total"]
assert totals == [("total", "host", "fine", "all memory"),
                  ("total", "cuda", "over", "all memory on CUDA devices")], totals
assert "memstow.cuda_total" in check(8, 1, options=("--junit=-",)).stdout

# Baselines of earlier formats still work. A baseline of the first format has no figures of devices. The verdict says
# so, and does not judge devices.
second = text.replace(' from "m.bin"', "").replace("baseline 3", "baseline 2") # as before sites had their models' files
pathlib.Path("second.txt").write_text(second)
check(20, 1, baseline="second.txt", options=("--fail-over=5M",), status=1)
check(8, 1, baseline="second.txt", options=("--fail-over=0,site:0,owner:0",))
old = "".join(line for line in second.splitlines(True)
              if not line.startswith("cuda-")).replace("baseline 2", "baseline 1")
pathlib.Path("old.txt").write_text(old)
done = check(20, 1, baseline="old.txt", options=("--fail-over=5M",))
assert ("Memory of CUDA devices is not judged: the baseline has no figures of it "
        "(--update-baseline).") in done.stdout, done.stdout
assert json.loads(check(20, 1, baseline="old.txt", options=("--json",)).stdout)["cuda_left_out"] is True
assert json.loads(check(8, 1, options=("--json",)).stdout)["cuda_left_out"] is False
pathlib.Path("wrong.txt").write_text(second.replace("baseline 2", "baseline 1"))
assert "total, owner or site expected" in check(8, 1, baseline="wrong.txt", status=3).stderr
pathlib.Path("twice.txt").write_text(text + "cuda-total 1 1\n")
assert "the total is given twice" in check(8, 1, baseline="twice.txt", status=3).stderr

# The peaks: all devices together.
check(8, 1, 4, options=("--peak", "--update-baseline"), baseline="peak.txt")
assert "\ncuda-total 13631488 0\n" in pathlib.Path("peak.txt").read_text(), pathlib.Path("peak.txt").read_text()
check(8, 1, 4, baseline="peak.txt", options=("--fail-over=5M",))
check(8, 1, 14, baseline="peak.txt", options=("--fail-over=5M",), status=1)

# diff: limits for each owner and call site hold on devices, too.
for name, mib in (("a", (8, 1)), ("b", (20, 1)), ("c", (8, 1, 30))):
    support.track(program, *mib, env=environment, file=f"{name}.mst")
for limit, words in (("owner:11MiB", "the model (m.bin) on CUDA devices grew by 12.0 MiB"),
                     ("site:11MiB", "load_weights"), ("owner:100%", "the model (m.bin) on CUDA devices"),
                     ("11MiB", "live CUDA memory grew by 12.0 MiB")):
    done = support.memstow("diff", "a.mst", "b.mst", f"--fail-over={limit}", "--json", status=1)
    assert words in done.stderr and "over the limit of " + limit in done.stderr, (limit, done.stderr)
    assert json.loads(done.stdout)["over_on_cuda"] is True, limit
for limit in ("owner:13MiB", "site:13MiB", "13MiB", "owner:200%"):
    support.memstow("diff", "a.mst", "b.mst", f"--fail-over={limit}")
support.memstow("diff", "a.mst", "b.mst", "--fail-over=5MiB", "--suppressions=known.txt")
done = support.memstow("diff", "b.mst", "b.mst", "--fail-over=5MiB", "--json")
assert json.loads(done.stdout)["over_on_cuda"] is False
support.memstow("diff", "a.mst", "c.mst", "--fail-over=20MiB")
done = support.memstow("diff", "a.mst", "c.mst", "--fail-over=20MiB", "--peak", status=1)
assert "the peak of CUDA memory grew by 30.0 MiB" in done.stderr, done.stderr
support.memstow("diff", "a.mst", "c.mst", "--fail-over=20MiB", "--peak", "--suppressions=known.txt", status=1)
