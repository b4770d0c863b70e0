#!/usr/bin/env python3
# CUDA memory in every view of the command: report and owners as text and JSON, diff and its limits, snapshots of a
# running process.
import json, re, subprocess

import support, _simulated

PROGRAM = """
#include "abi.h"
#include "cuda_abi.h"
#include <stdio.h>
#include <stdlib.h>
int cuInit(unsigned); int cuDevicePrimaryCtxRetain(CUcontext *, int); int cuCtxSetCurrent(CUcontext);
int cuMemAllocAsync(CUdeviceptr *, size_t, CUstream);
__attribute__((noinline)) static void load_weights(size_t bytes) {
    CUdeviceptr at;
    if (cuMemAllocAsync(&at, bytes, NULL)) exit(1);
    __asm__ volatile("");
}
int main(int count, char **arguments) {
    CUcontext context;
    if (cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context)) return 1;
    abi_find();
    uint32_t model = (uint32_t)CALL(0, memstow_owner_open, MEMSTOW_MODEL, "the model", "m.bin", 0, 1);
    CALL(0, memstow_scope_enter, model);
    load_weights((size_t)atol(arguments[1]) << 20);
    CALL(0, memstow_scope_leave, model);
    load_weights(1 << 20);
    if (count > 2 && atol(arguments[2])) { /* MiB on the host, of another model */
        uint32_t other = (uint32_t)CALL(0, memstow_owner_open, MEMSTOW_MODEL, "on the host", "h.bin", 7, 1);
        CALL(0, memstow_scope_enter, other);
        char *volatile kept = malloc((size_t)atol(arguments[2]) << 20);
        CALL(0, memstow_scope_leave, other);
        return kept == NULL;
    }
    if (count > 2) { puts("there"); fflush(stdout); getchar(); }
    return 0;
}
"""
(support.HERE / "views.c").write_text(PROGRAM)
program = _simulated.program(support.HERE / "views.c", _simulated.LIBRARIES / "libcuda.so.1", name="views")
environment = _simulated.environment()
for mib in (30, 50):
    support.track(program, mib, env=environment, file=f"{mib}.mst")

summary = support.memstow("run", "-o", "summary.mst", "--", program, 5, env=environment).stderr
assert "CUDA devices      6.0 MiB in 2 blocks" in summary, summary
text = support.memstow("report", "30.mst").stdout
assert "CUDA devices     31.0 MiB" in text and "device 0         31.0 MiB live" in text, text
assert "Simulated device 0 (test double)" in text and "load_weights" in text and "the model" in text, text
owners = support.memstow("owners", "30.mst").stdout
assert "31.0 MiB on CUDA devices" in owners and "30.0 MiB" in owners, owners
document = json.loads(support.memstow("owners", "30.mst", "--json").stdout)
assert document["cuda_bytes"] == 31 << 20 and document["untagged_cuda_bytes"] == 1 << 20
assert document["owners"][0]["cuda_bytes"] == 30 << 20 and document["owners"][0]["cuda_blocks"] == 1

# The sentence "where" is about memory of the host. It names the model that has most of it, also when another model has
# more memory on devices.
support.track(program, 30, 8, env=environment, file="host.mst")
text = support.memstow("report", "host.mst").stdout
assert re.search(r"where +8\.0 MiB of [\d.]+ MiB live \(\d+ %\) is in model on the host", text), text

diff = json.loads(support.memstow("diff", "30.mst", "50.mst", "--json").stdout)
assert diff["cuda_growth_bytes"] == 20 << 20 and diff["cuda_growth_blocks"] == 0
assert diff["cuda_rows"][0]["model"] == "the model" and diff["cuda_rows"][0]["growth_bytes"] == 20 << 20
assert any(f["function"] == "load_weights" for f in diff["cuda_rows"][0]["stack"])
by_model = json.loads(support.memstow("diff", "30.mst", "50.mst", "--json", "--by=model").stdout)
assert [(r["name"], r["growth_bytes"]) for r in by_model["cuda_rows"]] == [("the model", 20 << 20)]
text = support.memstow("diff", "30.mst", "50.mst").stdout
assert "On CUDA devices" in text and "+20.0 MiB" in text and "51.0 MiB on CUDA devices" in text, text
support.memstow("diff", "30.mst", "50.mst", "--fail-over=21MiB")
over = support.memstow("diff", "30.mst", "50.mst", "--fail-over=19MiB", status=1)
assert "live CUDA memory grew by 20.0 MiB" in over.stderr, over.stderr

running = support.start(support.MEMSTOW, "run", "--quiet", "-o", "live.mst", "--", program, 40, "stay", env=environment,
                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
assert running.stdout.readline() == "there\n"
pid = support.report("live.mst")["process"]["pid"]
support.memstow("snapshot", pid, "-o", "snapshot.mst")
for source in (pid, "snapshot.mst", "live.mst"):
    report = support.report(source)
    assert report["totals"]["cuda"]["live_bytes"] == 41 << 20, source
    assert sorted(b["size_bytes"] for b in report["cuda"]["blocks"]) == [1 << 20, 40 << 20], source
    site = report["cuda"]["sites"][0]
    assert site["model"] == "the model" and any(f["function"] == "load_weights" for f in site["stack"]), source
    assert report["cuda"]["blocks"][0]["model"] == "the model"
nothing = json.loads(support.memstow("diff", "live.mst", "snapshot.mst", "--json").stdout)
assert nothing["cuda_growth_bytes"] == 0 and not nothing["cuda_rows"], nothing["cuda_rows"]
support.memstow("diff", "live.mst", "snapshot.mst", "--json", "--peak")
running.stdin.write("\n")
running.stdin.close()
running.wait()
