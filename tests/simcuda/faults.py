# At error 700 memstow names the memory that a kernel may have used: on standard error, in the trace and in the report.
# Each case of _faults.c runs by itself, over the simulated driver (a test double).
import json, re

import support
from _simcuda import BUILD, environment

MIB = 1 << 20
NAME = "unet (unet.safetensors)"
program = BUILD / "faults"


def run(case, **settings):
    """Runs a case. Returns its standard error, the address that was used, the trace, and the report's misuses."""
    done = support.track(program, case, env=environment(SIMCUDA_CAPACITY="128M", **settings), file=f"{case}.mst",
                         status=None)
    assert done.returncode == 0 and done.stdout.endswith("ok\n"), f"{case}: {done.stdout}{done.stderr}"
    used = [int(line.split()[1]) for line in done.stdout.splitlines() if line.startswith("at ")]
    lines = json.loads(support.memstow("decisions", f"{case}.mst", "--json").stdout)["lines"]
    faults = [line for line in lines if line["kind"].startswith("FAULT")]
    assert done.stderr.count("memstow: illegal address on a device (error 700)") == 1, done.stderr
    return done.stderr, used, faults, support.report(f"{case}.mst")["misuses"]


def freed_lines(faults, misuses):
    """Checks that the trace has a line for each freed block of the report, the latest first."""
    fault, *lines = faults
    assert fault["kind"] == "FAULT" and not fault["bytes"], faults
    assert [(line["kind"], line["address"], line["bytes"]) for line in lines] == [
        ("FAULT_FREED", m["address"], m["size_bytes"]) for m in misuses], (faults, misuses)
    assert all(0 < line["since_ns"] < fault["t"] for line in lines), faults
    return [line.get("owner") for line in lines]


def functions(place):
    return [frame["function"] for frame in place["stack"]]


for case, trigger in (("stowed", 1), ("asked", None)):
    errors, used, faults, misuses = run(case, MEMSTOW_CUDA_MOVES="2M")
    by = f"by trigger {trigger}" if trigger else "by a request"
    assert re.search(rf"found by cuCtxSynchronize; memory off its device: 14 MiB of unet \(unet.safetensors\), "
                     rf"stowed \d+ m?s ago {by}; more: memstow report ", errors), errors
    fault, stowed = faults
    assert (fault["kind"], fault["cuda_error"], fault["bytes"]) == ("FAULT", 700, 14 * MIB), fault
    assert (stowed["kind"], stowed["owner"], stowed["bytes"], stowed["blocks"], stowed.get("of_trigger")) == (
        "FAULT_STOWED", 1, 14 * MIB, 2, trigger), stowed
    assert 0 < stowed["since_ns"] < fault["t"], faults
    assert [(m["kind"], m["size_bytes"], m["model"]) for m in misuses] == [
        ("device_fault_stowed", 8 * MIB, "unet"), ("device_fault_stowed", 6 * MIB, "unet")], misuses
    assert used[0] in [m["address"] for m in misuses]
    assert "load" in functions(misuses[0]["allocated"]) and "fails" in functions(misuses[0]["now"]), misuses
    text = support.memstow("report", f"{case}.mst").stdout
    assert "8,388,608 bytes at " in text, text
    assert f"{NAME}: perhaps used by a kernel while it was off its device" in text, text
    support.memstow("decisions", f"{case}.mst", "--check")

errors, used, faults, misuses = run("freed")
assert re.search(r"no memory was off its device; the last block that was freed: 8 MiB of unet \(unet.safetensors\), "
                 r"\d+ m?s ago; more", errors), errors
assert [(m["kind"], m["size_bytes"], m["model"]) for m in misuses] == [
    ("device_fault_freed", 8 * MIB, "unet"), ("device_fault_freed", 8 * MIB, None)], misuses
assert freed_lines(faults, misuses) == [1, None]
assert misuses[0]["address"] == used[0]
assert "give_it_back" in functions(misuses[0]["freed_first"]) and "load" in functions(misuses[0]["allocated"]), misuses
text = support.memstow("report", "freed.mst").stdout
assert "\n  next       look at the misused blocks below first\n" in text, text # no block was freed twice
assert f"{NAME}: perhaps used by a kernel after it was freed" in text and "error 700 came from" in text, text

# The freed block is found in memory of the driver's pool, and in memory that memstow serves in place of the pool's.
for settings in ({}, {"MEMSTOW_CUDA_MOVES": "2M"}):
    errors, used, faults, misuses = run("freed_in_stream", **settings)
    assert "the last block that was freed: 6 MiB of unet (unet.safetensors), " in errors, errors
    assert [(m["kind"], m["address"], m["size_bytes"], m["model"]) for m in misuses] == [
        ("device_fault_freed", used[0], 6 * MIB, "unet")], misuses
    assert freed_lines(faults, misuses) == [1]
    assert "give_it_back_in_order" in functions(misuses[0]["freed_first"]), misuses
    assert "load" in functions(misuses[0]["allocated"]), misuses

errors, _, faults, misuses = run("found_by_free")
assert "found by cudaFree" in errors and len(misuses) == 1 and freed_lines(faults, misuses) == [1], (errors, misuses)
for case, by in (("found_by_a_copy", "whose text the program asked of cudaGetErrorName"),
                 ("found_by_a_copy_of_the_driver", "whose text the program asked of cuGetErrorString"),
                 ("asks_of_others", "found by cudaFree")):
    errors, used, faults, misuses = run(case)
    assert f"(error 700), {by}; no memory was off its device; the last block" in errors, errors
    assert len(misuses) == 1 and freed_lines(faults, misuses) == [1], (faults, misuses)
    assert "give_it_back" in functions(misuses[0]["freed_first"]), misuses
