"""If a ledger has samples, every form of the report has estimates of sites, with their errors. Totals are exact. The
report shows the difference between a total and the sum of the estimates."""
import gzip, json, math, re, subprocess
from _ledger import MIB, Ledger
from support import MEMSTOW, memstow, report

KIB = 1024
EVERY = 512 * KIB


def expect(size, samples):
    """The estimate from this many samples of this size: bytes, blocks, standard error of the bytes."""
    p = -math.expm1(-size / EVERY)
    return round(size * samples / p), round(samples / p), round(size * math.sqrt(samples * (1 - p)) / p)


def ledger(hot=10, **header):
    made = Ledger(stacks=3, sample_bytes=EVERY, total_peak=40 * MIB, host_peak=32 * MIB, mapped_peak=8 * MIB, **header)
    rest, program, library = made.unsampled(), made.module("/opt/program"), made.module("/opt/library")
    modules = [program, program, library, library]
    main, hot_frame, big, map_frame = (made.frame(0x1000 * i, module) for i, module in enumerate(modules, 1))
    outer = made.node([main])
    made.count(rest, alloc=(20 * MIB, 200000), free=(16 * MIB, 150000))
    made.count(made.site(program, stack=made.node([hot_frame], outer)), alloc=(100 * 64, 100),
               free=((100 - hot) * 64, 100 - hot))
    site = made.site(library, stack=made.node([big], outer))
    made.count(site, alloc=(6 * MIB, 3), free=(2 * MIB, 1))
    made.block(0x7f0000001020, 2 * MIB, site)
    made.block(0x7f0000501020, 100000, rest)
    made.count(made.site(library, stack=made.node([map_frame], outer)), alloc=(8 * MIB, 2), thread=1)
    return made


ledger().save("a.mst")
document = report("a.mst")
assert document["process"]["stacks"] == "sample" and document["process"]["sample_bytes"] == EVERY
host, live = document["totals"]["host"], 4 * MIB + 640 + 4 * MIB
assert (host["live_bytes"], host["live_blocks"]) == (live, 50012) and host["allocated_bytes"] == 26 * MIB + 6400
assert document["totals"]["live_bytes"] == live + 8 * MIB
assert document["owners"][0]["live_bytes"] == live + 8 * MIB and document["owners"][0]["live_blocks"] == 50014
mapped, hot, big = document["sites"]
assert (mapped["estimated"], mapped["error_bytes"], mapped["live_bytes"],
        mapped["live_blocks"]) == (False, 0, 8 * MIB, 2)
assert hot["estimated"] and (hot["live_bytes"], hot["live_blocks"], hot["error_bytes"]) == expect(64, 10), hot
assert big["estimated"] and (big["live_bytes"], big["live_blocks"], big["error_bytes"]) == expect(2 * MIB, 2), big
freed = expect(64, 90)
assert (hot["allocated_bytes"], hot["allocated_blocks"]) == (expect(64, 10)[0] + freed[0], expect(64, 10)[1] + freed[1])
assert abs(hot["allocated_error_bytes"] - expect(64, 100)[2]) <= 1 and hot["peak_error_bytes"] == hot["error_bytes"]
assert [frame["module"] for frame in hot["stack"]] == ["/opt/program"] * 2
estimates = document["estimates"]
estimated = hot["live_bytes"] + big["live_bytes"] + 8 * MIB
assert estimates["live"]["bytes"] == estimated and estimates["live"]["remainder_bytes"] == live + 8 * MIB - estimated
assert abs(estimates["live"]["error_bytes"] - math.hypot(hot["error_bytes"], big["error_bytes"])) <= 1
assert estimates["live"]["blocks"] == hot["live_blocks"] + 4
assert estimates["live"]["remainder_blocks"] == 50014 - hot["live_blocks"] - 4
assert estimates["allocated"]["bytes"] + estimates["allocated"]["remainder_bytes"] == 34 * MIB + 6400
modules = {module["module"]: module for module in document["modules"]}
for name, bytes, error in (("program", hot["live_bytes"], hot["error_bytes"]),
                           ("library", 8 * MIB + big["live_bytes"], big["error_bytes"])):
    module = modules.pop(f"/opt/{name}")
    assert module["live_bytes"] == bytes and abs(module["error_bytes"] - error) <= 1, module
assert not modules, modules
assert [block["module"] for block in document["large_blocks"]] == ["/opt/library", None]


def text(*options, status=0):
    shown = memstow("report", *options, status=status).stdout
    assert all(len(line) <= 80 for line in shown.split("\n")), shown
    return shown


shown = text("a.mst")
assert "\n  stacks     samples, one in 512.0 KiB allocated (--stacks=sample)\n" in shown
assert "\n  host heap         8.0 MiB         50,012" in shown, shown
assert shown[shown.index("\nCall stacks"):shown.index("\nLargest")] == """
Call stacks are estimates from samples, one in 512.0 KiB allocated; ± is the
standard error. Their sum is 17.1 MiB live, ± 1.6 MiB. The exact sum is 1.1
MiB lower.

By site
        live      blocks  call stack, innermost first
     8.0 MiB           2     library+0x4000
                             program+0x1000
     5.0 MiB      81,925     program+0x2000
   ± 1.6 MiB                 program+0x1000
     4.1 MiB           2     library+0x3000
 ± 399.3 KiB                 program+0x1000

Call tree (estimates of what is live, with all that is below)
    17.1 MiB ±  10 % 100.0 %     program+0x1000
     8.0 MiB ±   0 %  46.9 %       library+0x4000
     5.0 MiB ±  32 %  29.3 %       program+0x2000
     4.1 MiB ±  10 %  23.9 %       library+0x3000
""", shown
assert "  block      library+0x3000\n" in shown and "  block      (not sampled)\n" in shown, shown
modules = text("a.mst", "--by=module")
assert "\n  /opt/library                 12.1 MiB     399.3 KiB           4     12.1 MiB\n" in modules, modules
assert "Call stacks" in modules and "Call stacks" not in text("a.mst", "--by=thread")
for option, header in (("--peak", "± at 16.0 MiB"), ("--churn", "± allocated")): # each ± names its column
    assert re.search(rf"^ +live +blocks +{header[2:]} +{header}$", text("a.mst", "--by=module", option), re.MULTILINE)
assert ["untagged", "16.0", "MiB", "50,014", "16.0", "MiB"] in map(str.split, text("a.mst", "--by=model").split("\n"))

# The estimates are more than the memory that exists.
ledger(hot=60).save("b.mst")
assert "The exact sum is 26.1 MiB lower." in " ".join(text("b.mst").split()), text("b.mst")
assert report("b.mst")["estimates"]["live"]["remainder_bytes"] < -23 * MIB

# If a form has no place for the difference, it is on standard error. Folded lines have whole numbers of bytes.
for form in ("--folded", "--pprof"):
    done = memstow("report", "a.mst", form)
    assert done.stderr.startswith(
        "memstow: Call stacks are estimates from samples, one in 512.0 KiB allocated; ± is the "
        "standard error. Their sum is 17.1 MiB live, ± 1.6 MiB. The exact sum is 1.1 MiB "
        "lower.\n"), done.stderr
packed = subprocess.run([MEMSTOW, "report", "a.mst", "--pprof"], capture_output=True, check=True).stdout
assert "± 1.6 MiB. The exact sum is 1.1 MiB lower." in gzip.decompress(packed).decode(errors="replace") # its comment
assert f"program+0x1000;program+0x2000 {hot['live_bytes']}\n" in memstow("report", "a.mst", "--folded").stdout

# In diff by site, growth has a standard error. The total less the estimates is a row of its own, "(remainder)".
# --fail-over=SIZE compares SIZE with the exact growth of the total. In diff by model, rows are exact.
diff = memstow("diff", "a.mst", "b.mst", "--by=site").stdout
assert diff.split("\n", 3)[3] == """\
    grew by     blocks   live in B  call stack, innermost first
  +25.0 MiB   +409,625    30.0 MiB     program+0x2000
  ± 4.2 MiB                            program+0x1000
  -25.0 MiB   -409,575   -26.1 MiB     (remainder)
   +3.1 KiB        +50    16.0 MiB  total

Rows with ± are estimates from samples; ± is the standard error of their growth.
The total is exact. The remainder is the total less the estimates.
""", diff
assert memstow("diff", "a.mst", "b.mst", "--fail-over=1MiB").returncode == 0
assert memstow("diff", "a.mst", "b.mst", "--fail-over=1K", status=1).stdout.count("(remainder)") == 1
compared = json.loads(memstow("diff", "a.mst", "b.mst", "--json").stdout)
assert compared["a"]["sample_bytes"] == EVERY and compared["growth_bytes"] == 3200
assert sum(row["growth_bytes"] for row in compared["rows"]) == 3200
assert [row["estimated"] for row in compared["rows"]] == [True, False], compared["rows"]
model = json.loads(memstow("diff", "a.mst", "b.mst", "--by=model", "--json").stdout)["rows"]
assert [(row["name"], row["growth_bytes"], "error_bytes" in row) for row in model] == [("untagged", 3200, False)]

# A ledger with all stacks has no estimates.
Ledger().save("full.mst")
document = report("full.mst")
assert document["estimates"] is None and document["process"]["sample_bytes"] is None
assert "Call stacks" not in text("full.mst")
