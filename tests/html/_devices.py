"""A program that takes memory of two CUDA devices in two runs, over the simulated driver, a test double."""
import sys

import support

sys.path.insert(0, str(support.ROOT / "tests/cuda"))
import _simulated # noqa: E402

PROGRAM = """
#include "abi.h"
#include "cuda_abi.h"
#include <stdlib.h>
#include <unistd.h>
int cuInit(unsigned); int cuDevicePrimaryCtxRetain(CUcontext *, int); int cuCtxSetCurrent(CUcontext);
int cuMemAlloc_v2(CUdeviceptr *, size_t); int cuMemFree_v2(CUdeviceptr); int cuMemGetInfo_v2(size_t *, size_t *);
static CUcontext contexts[2];
__attribute__((noinline)) static int take_first(CUdeviceptr *at) {
    return cuCtxSetCurrent(contexts[0]) || cuMemAlloc_v2(at, 4 << 20);
}
__attribute__((noinline)) static int take_second(CUdeviceptr *at) {
    return cuCtxSetCurrent(contexts[1]) || cuMemAlloc_v2(at, 2 << 20);
}
int main(int count, char **words) { /* each run keeps 5 blocks on each device, and frees one more on the first */
    CUdeviceptr at;
    size_t available, total;
    if (cuInit(0) || cuDevicePrimaryCtxRetain(&contexts[0], 0) || cuDevicePrimaryCtxRetain(&contexts[1], 1)) return 1;
    abi_find();
    uint32_t model = (uint32_t)CALL(0, memstow_owner_open, MEMSTOW_MODEL, "the model", "m.bin", 0, 1);
    for (int number = 0; number < 2; number++) {
        uint32_t run = (uint32_t)CALL(0, memstow_run_begin, number ? "second" : "first");
        CALL(0, memstow_scope_enter, model);
        for (int i = 0; i < 5; i++) {
            usleep(20000);
            if (take_first(&at) || take_second(&at) || (count > 1 && !(words[1] = malloc(1 << 20)))) return 2;
        }
        CALL(0, memstow_scope_leave, model);
        usleep(20000);
        if (take_first(&at)) return 3;
        usleep(20000);
        if (cuMemFree_v2(at)) return 4;
        CALL(0, memstow_run_end, run, MEMSTOW_RUN_ENDED);
        usleep(20000);
    }
    if (cuCtxSetCurrent(contexts[0]) || cuMemGetInfo_v2(&available, &total)) return 5;
    if (cuCtxSetCurrent(contexts[1]) || cuMemGetInfo_v2(&available, &total)) return 5;
    _exit(0);
}
"""


def record(file, *words):
    """Runs the program under memstow, with its ledger in `file`. If `words` are given, the program takes memory of the
    host, too."""
    (support.HERE / "two.c").write_text(PROGRAM)
    program = _simulated.program(support.HERE / "two.c", _simulated.LIBRARIES / "libcuda.so.1", name="two")
    support.track(program, *words, file=file, env=_simulated.environment(SIMCUDA_DEVICES="2", SIMCUDA_CAPACITY="256M"))
