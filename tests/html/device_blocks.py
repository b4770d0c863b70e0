# needs: cc deb:chromium deb:chromium-driver pip:selenium==4.51.0
# timeout: 300
"""The view "Blocks" has each whole block on a CUDA device, with its device, kind, owner and call stack, as in --json. A
comparison of two snapshots of one process shows which blocks came, went and stayed. It has separate sums for the blocks
on devices and for those of the host. The driver is simulated, a test double."""
import support
from _devices import _simulated
from _page import Browser, Data, report, size_text, two_snapshots
from _ledger import MIB

PROGRAM = """
#include "abi.h"
#include "cuda_abi.h"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int cuInit(unsigned); int cuDevicePrimaryCtxRetain(CUcontext *, int); int cuCtxSetCurrent(CUcontext);
int cuMemAlloc_v2(CUdeviceptr *, size_t); int cuMemFree_v2(CUdeviceptr);
int cuMemAllocAsync(CUdeviceptr *, size_t, CUstream);
static CUcontext contexts[2];
static CUdeviceptr went, stayed, came;
__attribute__((noinline)) static int take_first(void) {
    return cuCtxSetCurrent(contexts[0]) || cuMemAlloc_v2(&went, 5 << 20);
}
__attribute__((noinline)) static int take_second(void) {
    return cuCtxSetCurrent(contexts[1]) || cuMemAlloc_v2(&stayed, 3 << 20);
}
__attribute__((noinline)) static int take_third(void) {
    return cuCtxSetCurrent(contexts[0]) || cuMemAllocAsync(&came, 7 << 20, NULL);
}
static void wait_for_a_line(void) { printf("%d\\n", getpid()); fflush(stdout); getchar(); }
int main(void) {
    if (cuInit(0) || cuDevicePrimaryCtxRetain(&contexts[0], 0) || cuDevicePrimaryCtxRetain(&contexts[1], 1)) return 1;
    abi_find();
    uint32_t model = (uint32_t)CALL(0, memstow_owner_open, MEMSTOW_MODEL, "the model", "m.bin", 0, 1);
    char *volatile of_the_host = malloc(1 << 20);
    if (take_first()) return 2;
    CALL(0, memstow_scope_enter, model);
    if (take_second()) return 3;
    CALL(0, memstow_scope_leave, model);
    uint32_t other = (uint32_t)CALL(0, memstow_owner_open, MEMSTOW_MODEL, "of a part", "", 7, 1);
    CALL(0, memstow_assign, other, (void *)stayed, 1 << 20);
    wait_for_a_line();
    if (cuMemFree_v2(went) || take_third()) return 4;
    wait_for_a_line();
    _exit(of_the_host == NULL);
}
"""
(support.HERE / "blocks.c").write_text(PROGRAM)
program = _simulated.program(support.HERE / "blocks.c", _simulated.LIBRARIES / "libcuda.so.1", name="blocks")
environment = _simulated.environment(SIMCUDA_DEVICES="2", SIMCUDA_CAPACITY="256M")
two_snapshots(program, env=environment)


def rows(browser):
    """The rows of blocks on devices: {kind: {column: text}}."""
    heads = [head.text for head in browser.all(".rows th")]
    all_rows = [dict(zip(heads, row)) for row in browser.rows()]
    return {row["Kind"]: row for row in all_rows if row["Kind"].startswith("device")}


# One report. Resident bytes are the host's.
browser = Browser()
browser.open(report("two.mst"), "#blocks")
found = rows(browser)
assert set(found) == {"device 1", "device 0, pool"}, found
assert found["device 1"]["Size"] == "3.0 MiB" and found["device 0, pool"]["Size"] == "7.0 MiB", found
assert found["device 1"]["Owner"] == "the model (m.bin)" and found["device 0, pool"]["Owner"] == "", found
assert found["device 1"]["Where"].startswith("take_second"), found
assert found["device 0, pool"]["Where"].startswith("take_third"), found
assert {row["Resident"] for row in found.values()} == {"–"}, found
assert "mappings, and blocks on devices" in browser.text(".count"), browser.text(".count")
blocks = support.report("two.mst", "--top=1000000")["cuda"]["blocks"]
exact = {hex(block["address"]): size_text(block["size_bytes"]) for block in blocks if block["part_of"] is None}
assert [block["size_bytes"] for block in blocks if block["part_of"]] == [MIB], "the view has the whole block only"
assert {row["Address"]: row["Size"] for row in found.values()}.items() <= exact.items(), (found, exact)
browser.open("page.html", "#blocks?sort=size&row=0")
assert browser.details()["kind"] == "device 0, pool" and "take_third" in browser.text(".details .stack")
browser.open(report("two.mst", "--match=take_second"), "#blocks")
assert list(rows(browser)) == ["device 1"] and len(browser.rows()) == 1, browser.rows()

# A comparison of one process.
support.memstow("diff", "one.mst", "two.mst", "--html", "-o", "page.html")
sums = Data("page.html").documents["blocks"]
devices = sums["on_devices"]
assert devices["only_a"] == dict(blocks=1, before_bytes=5 * MIB, after_bytes=0), devices
assert devices["only_b"] == dict(blocks=1, before_bytes=0, after_bytes=7 * MIB), devices
assert devices["both"] == dict(blocks=1, before_bytes=3 * MIB, after_bytes=3 * MIB), devices
assert devices["unclear"]["blocks"] == 0 and sums["both"]["before_bytes"] >= MIB, sums
browser.open("page.html", "#blocks")
found = rows(browser)
assert {kind: (row["A to B"], row["Change"], row["Size"]) for kind, row in found.items()} == {
    "device 0": ("went", "−5.0 MiB", "5.0 MiB"), "device 1": ("stayed", "–", "3.0 MiB"),
    "device 0, pool": ("came", "+7.0 MiB", "7.0 MiB")}, found
assert found["device 0"]["Where"].startswith("take_first") and found["device 1"]["Owner"] == "the model (m.bin)", found
assert "On devices came: 7.0 MiB in 1; went: 5.0 MiB in 1; stayed: 3.0 MiB in 1." in browser.text(".how")
browser.click("[data-choice=came]")
browser.open_first()
assert browser.details()["kind"] == "device 0, pool" and browser.details()["before_size"] == "–", browser.details()

# Of two processes: each side has its own.
support.track(program, file="other.mst", env=environment, input="\n\n")
support.memstow("diff", "two.mst", "other.mst", "--html", "-o", "page.html")
browser.open("page.html", "#blocks")
kinds = browser.js("return [...document.querySelectorAll('.pair-part')].map((part) => "
                   "[...part.querySelectorAll('.rows tbody tr[data-row]')].map((row) => row.cells[2].textContent))")
assert all({"device 1", "device 0, pool"} <= set(side) for side in kinds) and len(kinds) == 2, kinds
browser.is_clean()
