#!/usr/bin/env python3
# needs: cc
"""Host and devices side by side in report, owners and diff: live memory, memory that the pool keeps, memory that the
driver has in use, and the rest, explained by NVML if it is there. They also show whether a device is an instance (MIG)
or is shared (MPS). The driver and NVML are simulated (test doubles)."""
import json, os, subprocess

import support, _simulated

PROGRAM = """
#include "abi.h"
#include "cuda_abi.h"
#include <stdio.h>
#include <stdlib.h>
int cuInit(unsigned); int cuDevicePrimaryCtxRetain(CUcontext *, int); int cuCtxSetCurrent(CUcontext);
int cuMemAllocAsync(CUdeviceptr *, size_t, CUstream); int cuMemAlloc_v2(CUdeviceptr *, size_t);
int cuMemGetInfo_v2(size_t *, size_t *); int cuDeviceGetCount(int *);
int main(int count, char **arguments) { /* MiB on the first device; a line is read before it ends, if it says so */
    int devices;
    if (cuInit(0) || cuDeviceGetCount(&devices)) return 1;
    abi_find();
    uint32_t model = (uint32_t)CALL(0, memstow_owner_open, MEMSTOW_MODEL, "the model", "m.bin", 0, 1);
    for (int device = devices; device--;) {
        CUcontext context;
        CUdeviceptr at;
        size_t available, total;
        if (cuDevicePrimaryCtxRetain(&context, device) || cuCtxSetCurrent(context)) return 1;
        CALL(0, memstow_scope_enter, model);
        if (cuMemAlloc_v2(&at, (device ? 4 : (size_t)atol(arguments[1])) << 20)) return 2;
        CALL(0, memstow_scope_leave, model);
        if (!device && cuMemAllocAsync(&at, 2 << 20, NULL)) return 3; /* the pool takes 32 MiB for it */
        if (cuMemGetInfo_v2(&available, &total)) return 4;
    }
    if (count > 2) { puts("there"); fflush(stdout); getchar(); }
    return 0;
}
"""
MIB = 1 << 20
(support.HERE / "held.c").write_text(PROGRAM)
program = _simulated.program(support.HERE / "held.c", _simulated.LIBRARIES / "libcuda.so.1", name="held")
devices = {"SIMCUDA_DEVICES": "2", "SIMCUDA_CAPACITY": "256M", "SIMCUDA_CONTEXT": "8M"}


def with_nvml(folder="nvml", **more):
    libraries = [_simulated.LIBRARIES / folder, _simulated.LIBRARIES]
    return {**os.environ, "LD_LIBRARY_PATH": ":".join(map(str, libraries)), **more}


def command(*arguments, env=None, **options):
    return support.memstow(*arguments, env=env or dict(os.environ), **options)


def document(*arguments, env=None):
    return json.loads(command(*arguments, "--json", env=env).stdout)


# A running program: NVML is asked now. 8 MiB belong to the context, and the pool keeps 30.
running = support.start(support.MEMSTOW, "run", "--quiet", "-o", "live.mst", "--", program, 20, "stay",
                        env=_simulated.environment(**devices), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
assert running.stdout.readline() == "there\n"
pid = support.report("live.mst")["process"]["pid"]
says = {"SIMNVML_USED": str(95 * MIB), "SIMNVML_PROCESSES": f"4:{9 * MIB},{pid}:{60 * MIB},1:{20 * MIB},5:-",
        "SIMNVML_DRAWS": f"1:{20 * MIB},7:{2 * MIB}"}
first, second = document("report", pid, env=with_nvml(**says))["cuda"]["devices"]
assert (first["live_bytes"], first["driver_used_bytes"], first["pool_reserved_bytes"],
        first["rest_bytes"]) == (22 * MIB, 60 * MIB, 32 * MIB, 8 * MIB), first
nvml = first["nvml"]
assert nvml["known"] and nvml["asked"] == "now" and nvml["used_bytes"] == 95 * MIB, nvml
assert nvml["total_bytes"] == 1 << 30, nvml
assert (nvml["process_bytes"], nvml["process_rest_bytes"], nvml["others_bytes"],
        nvml["unattributed_bytes"]) == (60 * MIB, 8 * MIB, 31 * MIB, 4 * MIB), nvml
assert nvml["other_count"] == 4 and nvml["some_not_told"] is True, nvml
assert sorted((o["pid"], o["bytes"])
              for o in nvml["others"]) == [(1, 20 * MIB), (4, 9 * MIB), (5, None), (7, 2 * MIB)], nvml
init = next(o["name"] for o in nvml["others"] if o["pid"] == 1)
assert init == open("/proc/1/comm").read().strip()[:15], init
assert second["live_bytes"] == 4 * MIB and second["rest_bytes"] == 8 * MIB, second
text = command("report", pid, env=with_nvml(**says)).stdout
assert "NVML, asked now, has 95.0 MiB of 1.0 GiB in use" in text, text
assert "60.0 MiB this process, of which 8.0 MiB are contexts, modules and fragments" in text, text
assert f"31.0 MiB 4 other processes: {init} (pid 1) 20.0 MiB, " in text and " and 1 more" in text, text
assert "NVML does not say how much memory some of them have" in text and "4.0 MiB of no process" in text, text

# The same in owners and diff, one line for each device.
lines = document("owners", pid, env=with_nvml(**says))["cuda_devices"]
assert [(l["device"], l["live_bytes"], l["pool_reserved_bytes"], l["driver_used_bytes"], l["rest_bytes"])
        for l in lines] == [(0, 22 * MIB, 32 * MIB, 60 * MIB, 8 * MIB), (1, 4 * MIB, 0, 12 * MIB, 8 * MIB)], lines
assert (lines[0]["process_bytes"], lines[0]["process_rest_bytes"],
        lines[0]["others_bytes"]) == (60 * MIB, 8 * MIB, 31 * MIB), lines
text = command("owners", pid, env=with_nvml(**says)).stdout
assert "pool keeps      in use    the rest" in text, text
row = next(line.split() for line in text.split("\n") if line.startswith("device 0"))
assert row == "device 0 22.0 MiB 30.0 MiB 60.0 MiB 8.0 MiB 8.0 MiB this process, 31.0 MiB others".split(), row
support.track(program, 40, env=_simulated.environment(**devices), file="later.mst")
diff = document("diff", pid, "later.mst", env=with_nvml(**says))
assert [d["live_bytes"] for d in diff["a"]["cuda_devices"]] == [22 * MIB, 4 * MIB], diff["a"]
assert [d["driver_used_bytes"] for d in diff["b"]["cuda_devices"]] == [80 * MIB, 12 * MIB], diff["b"]
assert diff["a"]["cuda_devices"][0]["others_bytes"] == 31 * MIB and diff["b"]["cuda_devices"][0]["others_bytes"] is None
text = command("diff", pid, "later.mst", env=with_nvml(**says)).stdout
assert [line.split()[2] for line in text.split("\n") if line.startswith("device ")] == ["A", "B", "A", "B"], text

# The first generation of NVML's lists; no list; a process that is not listed, as in a container.
nvml = document("report", pid, env=with_nvml("nvml_first", **says))["cuda"]["devices"][0]["nvml"]
assert (nvml["process_bytes"], nvml["others_bytes"], nvml["other_count"]) == (60 * MIB, 31 * MIB, 4), nvml
nvml = document("report", pid, env=with_nvml(**says, SIMNVML_LISTS="3"))["cuda"]["devices"][0]["nvml"]
assert nvml["known"] and nvml["used_bytes"] == 95 * MIB and nvml["process_bytes"] is None, nvml
assert nvml["others_bytes"] is None, nvml
assert "NVML lists no processes of this device" in command(
    "report", pid, env=with_nvml(**says, SIMNVML_LISTS="3")).stdout
elsewhere = {**says, "SIMNVML_PROCESSES": f"1:{60 * MIB}"}
nvml = document("report", pid, env=with_nvml(**elsewhere))["cuda"]["devices"][0]["nvml"]
assert nvml["process_bytes"] is None and nvml["process_rest_bytes"] is None and nvml["others_bytes"] == 62 * MIB, nvml
untold = {**says, "SIMNVML_PROCESSES": f"{pid}:-,1:{20 * MIB}"} # listed without a figure
nvml = document("report", pid, env=with_nvml(**untold))["cuda"]["devices"][0]["nvml"]
assert nvml["process_bytes"] is None and nvml["some_not_told"] is True and nvml["other_count"] == 2, nvml
assert "NVML lists this process, but not how much memory it has" in command(
    "report", pid, env=with_nvml(**untold)).stdout
shared = {**elsewhere, "SIMNVML_MPS": f"{pid}:{60 * MIB}"} # MPS tells the process's memory
assert document("report", pid, env=with_nvml(**shared))["cuda"]["devices"][0]["nvml"]["process_bytes"] == 60 * MIB
assert "NVML does not list this process" in command("report", pid, env=with_nvml(**elsewhere)).stdout

# If NVML is missing or broken, the report's JSON says why. If NVML is missing, the report's text says why, too.
nvml = document("report", pid)["cuda"]["devices"][0]["nvml"]
assert (nvml["known"], nvml["why_not"]) == (False, "no libnvidia-ml.so.1"), nvml
assert "which processes have this memory is not known: no libnvidia-ml.so.1" in command("report", pid).stdout
nvml = document("report", pid, env=with_nvml(SIMNVML_INIT="9"))["cuda"]["devices"][0]["nvml"]
assert nvml["why_not"] == "NVML answered with error 9", nvml

# A snapshot keeps NVML's answer of that time. For the ledger of a program that has ended, NVML cannot be asked.
command("snapshot", pid, "-o", "then.mst", env=with_nvml(**says))
running.communicate("\n")
nvml = document("report", "then.mst")["cuda"]["devices"][0]["nvml"]
assert nvml["asked"] == "snapshot" and nvml["process_rest_bytes"] == 8 * MIB and len(nvml["others"]) == 4, nvml
assert "NVML, asked when the snapshot was taken, has 95.0 MiB" in command("report", "then.mst").stdout
gone = document("report", "live.mst", env=with_nvml(**says))["cuda"]["devices"][0]
assert gone["nvml"] is None and gone["rest_bytes"] == 8 * MIB, gone
assert "NVML" not in command("report", "live.mst", env=with_nvml(**says)).stdout

# The sort of a device.
assert (gone["uuid"], gone["mig"], gone["mps"]) == ("GPU-73696d75-6c61-7465-642d-646576696300", False, False), gone
for key, mib in (("SIMCUDA_MIG", 5), ("SIMCUDA_MPS", 6)):
    support.track(program, mib, env=_simulated.environment(**devices, **{key: "1"}), file=f"{key}.mst")
device = support.report("SIMCUDA_MIG.mst")["cuda"]["devices"][0]
assert (device["uuid"], device["mig"]) == ("MIG-73696d75-6c61-7465-642d-736c69636500", True), device
assert "an instance of a device (MIG-7369" in command("report", "SIMCUDA_MIG.mst").stdout
device = support.report("SIMCUDA_MPS.mst")["cuda"]["devices"][0]
assert (device["mig"],
        device["mps"]) == (False, True) and "shared through MPS" in command("report", "SIMCUDA_MPS.mst").stdout, device
