#!/usr/bin/env python3
# CUPTI is the source of a ledger if libmemstow.so is not preloaded. Here the driver and CUPTI are simulated (test
# doubles). The ledger is exact to the byte, however the process ends. If both libmemstow.so and libmemstow_cupti.so are
# in a process, the library that begins first keeps the ledger.
# needs: cc
import os, pathlib, subprocess, time

import support, _simulated

MB = 1 << 20
KINDS = {"device": (100 + 3 * MB, 2), "pool": (7 * MB, 1), "managed": (5 * MB, 1), "pinned": (MB, 1)}
OLDER, PROGRAM = (_simulated.program(
    pathlib.Path(__file__).with_name("_cupti.c"), _simulated.LIBRARIES / "libcuda.so.1",
    _simulated.LIBRARIES / f"{g}/libcudart.so.{g}", name=f"program{g}") for g in (12, 13))


def listed(*argv, file="out.mst", status=0, generation=13, options=("--cupti",), **environment):
    """Runs a program without a preloaded library. Returns its report, and the summary's text about CUPTI."""
    done = support.memstow("run", *options, "-o", file, "--", *argv, status=status,
                           env=_simulated.environment(generation, **environment))
    line = done.stderr.split("  CUPTI ", 1)[-1].split("\n  next")[0].split("\n  lost")[0]
    return support.report(file), " ".join(line.split())


def kinds(report):
    return {name: sums for name, sums in _simulated.found(report).items() if sums[1]}


# The ledger is exact to the byte on every route to CUDA, also if the runtime is linked into the program itself.
for generation, program in ((12, OLDER), (13, PROGRAM)):
    report, line = listed(program, "equal", generation=generation)
    assert kinds(report) == KINDS and report["totals"]["cuda"]["live_bytes"] == 100 + 15 * MB, kinds(report)
    assert report["process"]["source"] == "cupti" and report["process"]["state"] == "exited", report["process"]
    assert report["totals"]["live_bytes"] == report["totals"]["host"]["live_bytes"] == 0, report["totals"]
    assert report["cuda"]["kinds"]["pool"]["allocated_blocks"] == 1 + 3 * 20 * 20, report["cuda"]["kinds"]
    assert report["cuda"]["foreign_frees"] == report["cuda"]["missed_frees"] == 0 and not report["lost"]["reasons"]
    assert report["cuda"]["cupti"]["state"] == "source ended"
    assert line == f"is where this ledger comes from: {5 + 3 * 20 * 80:,} records"
    assert [f["function"] for s in report["cuda"]["sites"] for f in s["stack"][:1]], report["cuda"]["sites"]
    assert {s["stack"][0]["function"] for s in report["cuda"]["sites"] if s["live_bytes"] == 100 + 3 * MB} == {"device"}
for client in ("runtime_static", "runtime_versioned_12", "driver_dlsym", "driver_getproc_v2"):
    path = _simulated.BUILT / "clients" / client
    wanted = _simulated.said(support.run(path, env=_simulated.environment()).stdout)
    report, line = listed(path, generation="")
    for kind in ("device", "pool", "managed", "pinned"):
        assert kinds(report).get(kind) == wanted.get(kind), (client, kind, kinds(report).get(kind), wanted.get(kind))

report, line = listed(PROGRAM, "physical")
assert kinds(report) == {"device": (100, 1), "vmm": (6 * 2 * MB, 3), "reserved": (16 * MB, 1)}, kinds(report)
assert report["totals"]["cuda"]["live_bytes"] == 100 + 12 * MB, report["totals"]["cuda"]
assert report["cuda"]["kinds"]["vmm"]["allocated_blocks"] == 4 + 3 * 200, report["cuda"]["kinds"]["vmm"]
assert report["cuda"]["cupti"]["calls"] == 2 * (3 * 200 * 6 + 16)
functions = [[f["function"] for f in s["stack"]] for s in report["cuda"]["sites"] if s["kind"] == "vmm"
             and s["live_bytes"]]
assert all("physical" in stack and "main" in stack for stack in functions) and functions, functions
assert not report["lost"]["reasons"], report["lost"]

report, line = listed(PROGRAM, "pools")
device, = report["cuda"]["devices"]
assert kinds(report) == {"pool": (100 + 9 * MB, 4)} and device["pool_used_bytes"] == 5 * MB, (kinds(report), device)
assert device["pool_reserved_bytes"] >= 5 * MB, device

# The ledger is right, too, if records come late, in small buffers, or are incomplete when they are asked for.
for environment in ({"SIMCUPTI_LATE_MS": "2"}, {"SIMCUPTI_ROOM": "60000"}, {"SIMCUPTI_COMPLETE_MS": "300"}):
    assert kinds(listed(PROGRAM, "equal", **environment)[0]) == KINDS, environment
report, line = listed(PROGRAM, "equal", SIMCUPTI_UNKNOWN="100", SIMCUPTI_OTHER="several")
assert kinds(report) == KINDS and report["lost"]["cuda"] == 48 and report["cuda"]["cupti"]["shared"], report["lost"]

# Records are read while another thread is in a library's constructor and holds the loader's lock.
_simulated.program(pathlib.Path(__file__).with_name("_resets.c"), name="libresets.so", flags=("-shared", "-fPIC"))
assert kinds(listed(OLDER, "loads", generation=12, SIMCUPTI_ROOM="512")[0]) == {"device": (3 * MB, 1)}

# CUDA 11: the CUPTI of each release has a name of its own, and shorter records.
eleven = support.HERE / "eleven"
eleven.mkdir()
(eleven / "libcupti.so.11.8").write_bytes((_simulated.LIBRARIES / "12/libcupti.so.12").read_bytes())
(eleven / "libcudart.so.11.0").write_bytes((_simulated.LIBRARIES / "12/libcudart.so.12").read_bytes())
(eleven / "libcuda.so.1").write_bytes((_simulated.LIBRARIES / "libcuda.so.1").read_bytes())
client = _simulated.BUILT / "clients/driver_dlsym"
if not support.features()["sanitize"]: # the command itself would start behind the runtime
    support.memstow("run", "--cupti", "-o", "eleven.mst", "--", client,
                    env={**os.environ, "LD_LIBRARY_PATH": str(eleven), "LD_PRELOAD": str(eleven / "libcudart.so.11.0"),
                         "SIMCUPTI_VERSION": "18", "SIMCUPTI_RECORD": "112"})
    report = support.report("eleven.mst")
    assert report["cuda"]["cupti"]["library"].endswith("/libcupti.so.11.8"), report["cuda"]["cupti"]
    assert kinds(report)["device"][1], report["cuda"]["cupti"]
    assert kinds(report)["pool"] == _simulated.said(support.run(client, env=_simulated.environment()).stdout)["pool"]

report, line = listed(PROGRAM, "equal", SIMCUPTI_DROP="2")
assert kinds(report)["pool"] == KINDS["pool"] and "device" not in kinds(report), kinds(report)
assert report["lost"]["cuda"] == 2 and "2 of CUPTI's records were lost" in line, line

# The ways in which a process ends.
report, line = listed(PROGRAM, "quick", status=3)
assert report["process"]["state"] == "abrupt_exit" and kinds(report) == {"device": (MB, 1)}, report["process"]
report, line = listed(PROGRAM, "killed", status=3)
assert (report["process"]["state"], report["process"]["exit_status"]) == ("raw_exit", 3), report["process"]
assert report["cuda"]["cupti"]["state"] == "source"
assert "may be missing: CUPTI was last asked for records then" in line, line
report, line = listed(PROGRAM, "killed_later", status=137)
assert kinds(report) == {"device": (MB, 1)}, "what was asked for in time is there, and the last instant is not"
assert 0.2 < (read := report["cuda"]["cupti"]["read_seconds"]) < 5, read
assert "may be missing" in line, line

# A forked child does not change its parent's ledger. It has a ledger of its own only if CUDA begins in the child.
report, line = listed(PROGRAM, "forks", status=3)
assert (report["process"]["state"], report["process"]["exit_status"]) == ("raw_exit", 3), report["process"]
assert not list(support.HERE.glob("out.mst.*")), "the child ended its parent's"
assert report["cuda"]["cupti"]["state"] == "source", "the child read its parent's records"
assert not report["cuda"]["cupti"]["records"], "the child read its parent's records"
done = support.memstow("run", "--cupti", "-o", "parent.mst", "--", PROGRAM, "in_child", env=_simulated.environment(13))
child, = support.HERE.glob("parent.mst.*")
assert kinds(support.report(child)) == {"device": (3 * MB, 1)} and not (support.HERE / "parent.mst").exists()

# These work while the program runs: a report, a snapshot, and the commands that compare and list ledgers.
process = support.start(support.MEMSTOW, "run", "--cupti", "--quiet", "-o", "live.mst", "--", PROGRAM, "waits",
                        env=_simulated.environment(13), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
assert process.stdout.readline() == "ready\n"
deadline = time.monotonic() + 20
while kinds(support.report("live.mst")) != KINDS and time.monotonic() < deadline:
    time.sleep(0.05)
report = support.report("live.mst")
pid = report["process"]["pid"]
assert kinds(report) == KINDS == kinds(support.report(str(pid))), kinds(report)
support.memstow("snapshot", pid, "-o", "snapshot.mst")
assert kinds(support.report("snapshot.mst")) == KINDS and support.report("snapshot.mst")["process"]["source"] == "cupti"
process.communicate("\n", timeout=60)
listed(PROGRAM, "reset", file="less.mst")
assert "On CUDA devices" in (text := support.memstow("diff", "less.mst", "live.mst").stdout), text
assert "13.0 MiB" in text, text
assert "15.0 MiB" in (text := support.memstow("owners", "live.mst").stdout), text

# Each process has one ledger. The library that begins first keeps it.
report, line = listed(PROGRAM, "late", LATE=str(support.LIBRARY))
assert kinds(report) == {"device": (3 * MB, 2)} and report["process"]["source"] == "cupti", kinds(report)
assert not list(support.HERE.glob("out.mst.*")), "two ledgers"
report, line = listed(PROGRAM, "equal", options=("--verify-with-cupti",))
assert report["process"]["source"] == "hooks" and kinds(report) == KINDS
assert report["cuda"]["cupti"]["state"] == "compared"
assert report["cuda"]["kinds"]["pool"]["allocated_blocks"] == 1 + 3 * 20 * 20
assert not list(support.HERE.glob("out.mst.*"))
done = support.memstow("run", "--verify-with-cupti", "-o", "family.mst", "--", "env", "-u", "LD_PRELOAD", PROGRAM,
                       "equal", env=_simulated.environment(13))
report, = (r for r in map(support.report, support.HERE.glob("family.mst*")) if r["cuda"])
assert report["process"]["source"] == "cupti" and kinds(report) == KINDS, "without LD_PRELOAD it is a source"

# A program with a privilege bit: the loader preloads nothing for it, and ignores paths of libraries in the environment.
# Only root can make such a program.
if os.getuid() == 0:
    folders = [f"-Wl,-rpath,{_simulated.LIBRARIES}{more}" for more in ("", "/13")]
    privileged = _simulated.program(pathlib.Path(__file__).with_name("_cupti.c"), _simulated.LIBRARIES / "libcuda.so.1",
                                    _simulated.LIBRARIES / "13/libcudart.so.13", *folders, name="privileged")
    os.chown(privileged, 0, 65534)
    privileged.chmod(0o2755)
    done = support.memstow("run", "-o", "bits.mst", "--", privileged, "equal", env=os.environ)
    assert ("ignores preloading and runs untracked" in done.stderr
            and not (support.HERE / "bits.mst").exists()), done.stderr
    done = support.memstow("run", "--cupti", "-o", "bits.mst", "--", privileged, "equal", env=os.environ)
    assert kinds(support.report("bits.mst")) == KINDS and "untracked" not in done.stderr, done.stderr

# If CUPTI refuses, the ledger is empty, and the summary says why. If CUDA or memstow's library does not begin, the
# summary says that there is no ledger.
for environment, said in (({"SIMCUPTI_SUBSCRIBE": "39"},
                           "no source: cuptiSubscribe_v2 returned 39: another profiler has CUPTI"),
                          ({"SIMCUPTI_VERSION": "9"}, "no source: CUPTI's version is 9")):
    report, line = listed(PROGRAM, "equal", **environment)
    assert line.startswith(said) and not kinds(report), (line, report["process"])
    assert report["process"]["state"] == "exited", (line, report["process"])
done = support.memstow("run", "--cupti", "--", PROGRAM, "none", env=_simulated.environment(13))
assert "no ledger was found: CUDA did not begin" in done.stderr, done.stderr
done = support.memstow("run", "--cupti", "--", PROGRAM, "equal",
                       env=_simulated.environment(13, CUDA_INJECTION64_PATH="/else.so"))
assert "CUDA_INJECTION64_PATH=/else.so is set, and stays: there will be no ledger" in done.stderr, done.stderr
done = support.memstow("run", "--cupti", "--verify-with-cupti", "--", PROGRAM, status=2)
assert "--cupti and --verify-with-cupti exclude each other" in done.stderr, done.stderr

# By environment variables alone.
done = support.run(PROGRAM, "equal",
                   env=_simulated.environment(13, CUDA_INJECTION64_PATH=str(support.BUILD / "libmemstow_cupti.so")))
report, = map(support.report, support.HERE.glob("memstow.program13.*.mst"))
assert kinds(report) == KINDS, kinds(report)
print("listed by the simulated CUPTI of 12 and 13")
