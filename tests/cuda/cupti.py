#!/usr/bin/env python3
# The comparison with CUPTI, over the simulated driver and a simulated CUPTI (test doubles): memory that both see;
# memory that only one sees, with its source; one line if there is nothing to compare.
# needs: cc
import os, pathlib

import support, _simulated

UNSEEN = """
#include <dlfcn.h>
#include <stddef.h>
int take(size_t bytes, int keep);
int take(size_t bytes, int keep) { /* no symbol of CUDA, no resolver: the driver's inner address */
    void *(*inner)(const char *) = (void *(*)(const char *))dlsym(dlopen("libcuda.so.1", RTLD_NOW), "sim_inner_entry");
    unsigned long long at;
    int (*allocate)(unsigned long long *, size_t) = (int (*)(unsigned long long *, size_t))inner("cuMemAlloc");
    int (*release)(unsigned long long) = (int (*)(unsigned long long))inner("cuMemFree");
    return allocate(&at, bytes) || (!keep && release(at));
}
"""
MB = 1 << 20
(support.HERE / "unseen.c").write_text(UNSEEN)
support.run("cc", "-g", "-D_GNU_SOURCE", "-shared", "-fPIC", "-o", "libunseen.so", "unseen.c")
PROGRAMS = {g: _simulated.program(pathlib.Path(__file__).with_name("_cupti.c"), _simulated.LIBRARIES / "libcuda.so.1",
                                  _simulated.LIBRARIES / f"{g}/libcudart.so.{g}", name=f"program{g}") for g in (12, 13)}


def verify(case, generation=13, status=0, file="out.mst", **environment):
    """The report's part about CUPTI, and the summary's line about it."""
    done = support.memstow("run", "--verify-with-cupti", "-o", file, "--", PROGRAMS[generation], case, status=status,
                           env=_simulated.environment(generation, **environment))
    assert done.stdout == ("" if status or case == "none" else "done\n"), done.stdout
    line = " ".join(done.stderr.split("  CUPTI ", 1)[1].split("\n  next")[0].split("\n  lost")[0].split())
    cuda = support.report(file)["cuda"]
    return cuda and cuda["cupti"], line


def sums(cupti):
    return {name: (cupti[name]["blocks"], cupti[name]["bytes"])
            for name in ("same", "only_cupti", "only_ledger", "other_size")}


# Records are read while another thread is in a library's constructor and holds the loader's lock.
_simulated.program(pathlib.Path(__file__).with_name("_resets.c"), name="libresets.so", flags=("-shared", "-fPIC"))
cupti, line = verify("loads", 12, SIMCUPTI_ROOM="512")
assert sums(cupti)["same"] == (1, 3 * MB) and not cupti["differences"], cupti

for generation in (12, 13):
    cupti, line = verify("equal", generation)
    assert cupti["state"] == "compared" and not cupti["differences"], cupti
    assert sums(cupti)["same"] == (5, 100 + 16 * MB), cupti
    assert cupti["version"] == {12: 19,
                                13: 130000}[generation] and cupti["library"].endswith(f"/libcupti.so.{generation}")
    assert cupti["records"] == 5 + 3 * 20 * 80 and not cupti["dropped_records"] + cupti["unread_records"], cupti
    assert line.startswith("agrees with the ledger: 5 blocks, 16.0 MiB"), line

    cupti, line = verify("unseen", generation)
    assert sums(cupti) == {"same": (1, MB), "only_cupti": (2, 5 * MB), "only_ledger": (0, 0),
                           "other_size": (0, 0)}, cupti
    assert [s["source"].rsplit("/", 1)[-1] for s in cupti["sources"]] == ["libunseen.so"], cupti["sources"]
    assert sorted(d["cupti_bytes"] for d in cupti["differences"]) == [2 * MB, 3 * MB]
    assert "2 blocks, 5.0 MiB that only CUPTI saw: 5.0 MiB from libunseen.so" in line, line
    assert "from" in (text := support.memstow("report", "out.mst").stdout) and "libunseen.so" in text, text

    # CUPTI reports physical memory by calls instead of records. The program has three pieces, and has mapped two of
    # them. Their addresses agree, too.
    cupti, line = verify("physical", generation)
    assert sums(cupti)["same"] == (1 + 3, 100 + 6 * 2 * MB) and not cupti["differences"], cupti
    assert cupti["addresses_same"] == {"blocks": 1 + 2, "bytes": 16 * MB + 2 * 2 * MB}, cupti["addresses_same"]
    assert cupti["calls"] == 2 * (3 * 200 * 6 + 16) and not cupti["calls_refused"], cupti["calls"]
    assert line == "agrees with the ledger: 4 blocks, 12.0 MiB", line
    cupti, line = verify("unseen_physical", generation)
    assert {(d["difference"], d["kind"], d["cupti_bytes"])
            for d in cupti["differences"]} == {("only_cupti", "vmm", 6 * MB), ("only_cupti", "mapping", 6 * MB),
                                               ("only_cupti", "reserved", 10 * MB)}, cupti["differences"]
    assert sums(cupti)["only_cupti"] == (1,
                                         6 * MB) and cupti["addresses_other"] == {"blocks": 2, "bytes": 16 * MB}, cupti
    assert "1 block, 6.0 MiB that only CUPTI saw" in line and "2 mappings or reserved addresses" in line, line
    text = support.memstow("report", "out.mst").stdout
    assert text.count("only in CUPTI") == 3, text

    # The report compares the pools that the program has made, and says how many bytes of all pools are in use. In this
    # sum, the size of each allocation is rounded up to a multiple of 512 bytes. So 100 bytes count as 512.
    cupti, line = verify("pools", generation)
    assert sums(cupti)["same"] == (4, 100 + 9 * MB) and not cupti["differences"], cupti
    assert {k: cupti["pools"][k]
            for k in ("same", "other",
                      "used_bytes")} == {"same": 1, "other": 0, "used_bytes": 512 + 9 * MB}, cupti["pools"]
    assert cupti["pools"]["reserved_bytes"] >= 9 * MB and not cupti["pools"]["refused"], cupti["pools"]
    cupti, line = verify("unseen_in_pool", generation)
    assert {(d["difference"], d["kind"], d["cupti_bytes"], d["ledger_bytes"])
            for d in cupti["differences"]} == {
                ("only_cupti", "pool", 2 * MB, 0),
                ("other_size", "pool handle", 512 + 11 * MB, 100 + 9 * MB)}, cupti["differences"]
    assert "1 pool or its bytes in use" in line, line
    cupti, line = verify("pools", generation, SIMCUPTI_DROP="1")
    assert [(d["difference"], d["kind"])
            for d in cupti["differences"]] == [("only_ledger", "pool handle")], cupti["differences"]

# Older records of pools do not say how much is in use.
cupti, line = verify("pools", 12, SIMCUPTI_RECORD="112", SIMCUPTI_POOL="64")
assert not cupti["differences"] and cupti["pools"]["same"] == 1 and cupti["pools"]["used_bytes"] == 0, cupti["pools"]
cupti, line = verify("pools", SIMCUPTI_NO_POOLS="35")
assert not cupti["differences"] and cupti["pools"]["refused"] == 35, line
assert "without pools, which CUPTI does not report (error 35)" in line, line
cupti, line = verify("physical", SIMCUPTI_CALLS="35")
assert sums(cupti)["same"] == (1, 100) and cupti["calls"] == 0 and cupti["calls_refused"] == 35, cupti
assert not cupti["differences"], cupti
assert "without physical memory, which CUPTI does not report (error 35)" in line, line
cupti, line = verify("unseen", 12, SIMCUPTI_SOURCE="1", SIMCUPTI_VERSION="26")
assert cupti["sources"][0]["source"].endswith("libunseen.so"), cupti
# Another client of CUPTI is left alone. If it shares CUPTI, the comparison takes place; if it does not, or cannot,
# nothing is compared.
cupti, line = verify("equal", SIMCUPTI_OTHER="several")
assert cupti["state"] == "compared" and cupti["shared"] and not cupti["differences"], cupti
assert sums(cupti)["same"][0] == 5, cupti
assert cupti["other_client"] == "CUPTI for another profiler", cupti
cupti, line = verify("unseen", SIMCUPTI_OTHER="several", SIMCUPTI_DROP="1")
assert cupti["sources"][0]["source"].endswith("libunseen.so") and cupti["dropped_records"] == 1, cupti
cupti, line = verify("equal", SIMCUPTI_ENABLE_V2="35")
assert cupti["state"] == "compared" and not cupti["shared"] and cupti["failed_call"] is None, cupti
assert sums(cupti)["same"][0] == 5, cupti
cupti, line = verify("equal", 12, SIMCUPTI_OTHER="several")
assert cupti["state"] == "refused" and line.startswith("not compared: cuptiSubscribe returned 39"), line

# Records of every version are read, even those of a later version, and even with unknown records between them.
for size in (112, 120, 128, 144):
    cupti, line = verify("equal", 12, SIMCUPTI_RECORD=str(size), SIMCUPTI_UNKNOWN="10")
    assert not cupti["differences"] and sums(cupti)["same"] == (5, 100 + 16 * MB), (size, cupti)
    assert cupti["unknown_records"] == 480, line
    assert "480 records of a kind or layout that is not known (the first: 777)" in line, line
    assert not support.report()["lost"]["reasons"], "nothing of the ledger's was lost"
cupti, line = verify("equal", 12, SIMCUPTI_RECORD="96")
assert cupti["records"] == 0 and cupti["unknown_records"] == 5 + 3 * 20 * 80, cupti

cupti, line = verify("reset")
assert sums(cupti)["same"] == (1, 2 * MB) and not cupti["differences"], cupti
cupti, line = verify("served", MEMSTOW_CUDA_MOVES="2M")
assert sums(cupti)["same"] == (1 + 1, MB + 8 * MB) and cupti["addresses_same"]["blocks"] == 2, cupti
assert not cupti["differences"], cupti
assert sums(verify("served")[0])["same"] == (2, 9 * MB)
cupti, line = verify("others")
assert cupti["state"] == "compared" and not cupti["differences"] and sums(cupti)["same"][0] >= 1, cupti
cupti, line = verify("forks", status=3)
assert cupti["state"] == "listening" and not cupti["records"], cupti

cupti, line = verify("equal", SIMCUPTI_DROP="2")
assert cupti["dropped_records"] == 2 and sums(cupti)["only_ledger"] == (2, 100 + 3 * MB), cupti
assert "2 blocks, 3.0 MiB that CUPTI did not see" in line and "2 of CUPTI's records were lost" in line, line

for environment, state, said in (
        ({"SIMCUPTI_SUBSCRIBE": "39"}, "refused",
         "not compared: cuptiSubscribe_v2 returned 39: another profiler has CUPTI"),
        ({"SIMCUPTI_SUBSCRIBE": "999"}, "refused", "not compared: cuptiSubscribe returned 999: there is no driver"),
        ({"SIMCUPTI_ENABLE": "35"}, "refused", "not compared: cuptiActivityEnable returned 35"),
        ({"SIMCUPTI_OTHER": "one"}, "refused",
         "not compared: cuptiSubscribe_v2 returned 39: another profiler has CUPTI, CUPTI for another profiler"),
        ({"SIMCUPTI_VERSION": "14"}, "too old", "not compared: CUPTI's version is 14")):
    cupti, line = verify("equal", **environment)
    assert cupti["state"] == state and line.startswith(said), (cupti, line)
cupti, line = verify("killed", status=3)
assert cupti["state"] == "listening" and line == "not compared: the program has not run its exit handlers", line
cupti, line = verify("none")
assert cupti is None and line.startswith("not compared: CUDA did not begin"), line
cupti, line = verify("equal", CUDA_INJECTION64_PATH="/somebody/else.so")
assert cupti is None and "names another library already" in line, line

# Without the option, the report has no part about CUPTI. If there is no CUPTI, a line says so.
support.track(PROGRAMS[13], "equal", env=_simulated.environment(13), file="plain.mst")
assert support.report("plain.mst")["cuda"]["cupti"] is None
support.track(PROGRAMS[13], "child", env=_simulated.environment(13), file="parent.mst", status=137)
assert support.report("parent.mst")["cuda"]["cupti"] is None, "a child writes to its own ledger"
bare = support.HERE / "bare"
bare.mkdir()
for name in ("libcuda.so.1", "13/libcudart.so.13"):
    (bare / pathlib.Path(name).name).write_bytes((_simulated.LIBRARIES / name).read_bytes())
done = support.memstow("run", "--verify-with-cupti", "-o", "bare.mst", "--", PROGRAMS[13], "equal",
                       env={**os.environ, "LD_LIBRARY_PATH": str(bare)})
assert "not compared: no libcupti.so was found" in " ".join(done.stderr.split()), done.stderr
print("compared with the simulated CUPTI of 12 and 13")
