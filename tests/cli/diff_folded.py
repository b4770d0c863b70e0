"""diff --folded writes one line for each stack, with the stack's bytes in A and in B, in the form that flamegraph.pl
reads. No two lines have the same stack. Each column adds up to the bytes of its whole file. Small stacks are merged,
and a line says so."""
import subprocess
import _hostile
from _ledger import Ledger
from support import MEMSTOW, memstow, report


def folded(a, b, *options, status=0):
    """Runs `memstow diff --folded`. Returns {stack: (bytes in a, bytes in b)}, and the lines on standard error."""
    done = subprocess.run([MEMSTOW, "diff", a, b, "--folded", *options], capture_output=True)
    assert done.returncode == status, done
    found = {}
    for row in done.stdout.decode(errors="surrogateescape").split("\n")[:-1]:
        stack, before, after = row.rsplit(" ", 2)
        assert stack not in found and (before, after) != ("0", "0"), row
        found[stack] = int(before), int(after)
    said = "".join(row for row in done.stderr.decode().splitlines(True) if "functions are not named" not in row)
    return found, said


def ledger(sizes, **header):
    """Makes a ledger. `sizes` is {(model, *names): bytes}. The names are those of the frames, outermost first."""
    made = Ledger(**header)
    lib = made.module("/opt/libx.so")
    models = {}
    for (model, *names), size in sizes.items():
        if model and model not in models:
            models[model] = made.tag(model=made.owner(1, model, "a.st"))
        frames = [made.python(name, "/a.py", 1) for name in names]
        made.count(made.site(0 if frames else lib, models.get(model, 0), stack=made.node(frames) if frames else 0,
                             peak=7 * size if made.header["picture"] else None), alloc=(size, 1))
    return made


ledger({("UNET", "main", "grows"): 100, ("", "main", "grows"): 5, ("UNET", "main", "same"): 70,
        ("UNET", "main", "gone", "inner"): 30, ("UNET",): 4}).save("a.mst")
ledger({("UNET", "main", "grows"): 300, ("UNET", "main", "same"): 70, ("CLIP", "main", "new"): 40,
        ("UNET",): 9}).save("b.mst")
at = lambda *names: ";".join(f"py:{name} (a.py:1)" for name in names)
PLAIN = {at("main", "grows"): (105, 300), at("main", "same"): (70, 70), at("main", "gone", "inner"): (30, 0),
         at("main", "new"): (0, 40), "libx.so": (4, 9)}
assert folded("a.mst", "b.mst") == (PLAIN, ""), folded("a.mst", "b.mst")
assert folded("b.mst", "a.mst")[0] == {stack: amounts[::-1] for stack, amounts in PLAIN.items()}
UNET, CLIP = "model:UNET (a.st)", "model:CLIP (a.st)"
OWNED = {f"{UNET};{at('main', 'grows')}": (100, 300), f"(untagged);{at('main', 'grows')}": (5, 0),
         f"{UNET};{at('main', 'same')}": (70, 70), f"{UNET};{at('main', 'gone', 'inner')}": (30, 0),
         f"{CLIP};{at('main', 'new')}": (0, 40), f"{UNET};libx.so": (4, 9)}
assert folded("a.mst", "b.mst", "--by=model") == (OWNED, ""), folded("a.mst", "b.mst", "--by=model")
assert set(folded("a.mst", "b.mst", "--by=node")[0]) == {f"(untagged);{stack}" for stack in PLAIN}

# With --top, only the stacks that changed most have lines of their own. One more line has the sum of all other stacks.
# The exit status is 1 because the growth is over the limit of --fail-over.
found, said = folded("a.mst", "b.mst", "--top=2", "--fail-over=100", status=1)
assert found == {at("main", "grows"): (100, 300), at("main", "new"): (0, 40), "(4 more)": (109, 79)}, found
assert '4 call stacks are not shown by themselves: "(4 more)" has 188 B\n' in said and "over the limit of 100" in said
assert folded("a.mst", "b.mst", "--top=0")[0] == {"(6 more)": (209, 419)}

# --python: stacks that differ in native frames alone are one line. Stacks without Python have a line of their own.
def mixed(address, inner, native):
    made = Ledger()
    lib = made.module("/opt/libx.so")
    outer = [made.frame(address, lib), made.python("main", "/a.py", 1), made.frame(address + 16, lib)]
    unet = made.tag(model=made.owner(1, "UNET", "a.st"))
    made.count(made.site(lib, unet, stack=made.node([*outer, made.python("f", "/a.py", 1)])), alloc=(inner, 1))
    made.count(made.site(lib, stack=made.node(outer[:1])), alloc=(native, 1))
    made.count(made.site(lib), alloc=(3, 1))
    return made


mixed(0x10, 100, 20).save("mixed_a.mst")
mixed(0x40, 400, 30).save("mixed_b.mst")
both = {at("main", "f"): (100, 400), "(no Python)": (23, 33)}
assert folded("mixed_a.mst", "mixed_b.mst", "--python")[0] == both, folded("mixed_a.mst", "mixed_b.mst", "--python")
assert folded("mixed_a.mst", "mixed_b.mst", "--python", "--by=model")[0] == {
    f"{UNET};{at('main', 'f')}": (100, 400), "(untagged);(no Python)": (23, 33)}

# --peak compares peaks. --by=run refuses files of two processes, because no run is in both.
ledger({("", "f"): 100}, total_peak=800, host_peak=800, picture=(800, 700, 2 * 10**9)).save("peak.mst")
assert folded("peak.mst", "peak.mst", "--peak")[0] == {at("f"): (700, 700)}
other = ledger({("", "f"): 100}, pid=77, run_id=b"x" * 16)
other.save("other.mst")
assert "--by=run: the files are of two processes" in memstow("diff", "a.mst", "other.mst", "--folded", "--by=run",
                                                             status=2).stderr
ledger({}).save("empty.mst")
assert folded("empty.mst", "empty.mst") == ({}, "")
assert folded("empty.mst", "b.mst")[0] == {stack: (0, after) for stack, (_, after) in PLAIN.items() if after}
none = Ledger(stacks=0)
none.count(none.site(), alloc=(70, 1))
none.save("none.mst")
assert folded("none.mst", "b.mst")[0].pop("libx.so") == (0, 9)

# Each side has 20,000 small stacks. They are merged, so that a picture can show all lines.
def many(first):
    made = Ledger()
    outer = made.node([made.python("main", "/a.py", 1)])
    leaves = [made.python(f"leaf{n}", "/a.py", 10 + n) for n in range(80)]
    for n in range(first, first + 20_000):
        made.count(made.site(stack=made.node([leaves[n % 60], leaves[n // 60 % 60], leaves[n // 3600]], outer)),
                   alloc=(100 + n % 7, 1))
    return made


many(0).save("many_a.mst")
many(10_000).save("many_b.mst")
found, said = folded("many_a.mst", "many_b.mst")
assert len(found) < 400 and 'are merged into "(n smaller)": ' in said, (len(found), said)
for side, file in enumerate(("many_a.mst", "many_b.mst")):
    assert sum(amounts[side] for amounts in found.values()) == report(file, "--top=0")["totals"]["live_bytes"], file

# Figures that are estimated from samples are never negative.
sampled = Ledger(stacks=3, sample_bytes=1000)
sampled.count(sampled.unsampled(), alloc=(50_000, 500))
sampled.count(sampled.site(stack=sampled.node([sampled.python("f", "/a.py", 1)])), alloc=(3000, 30))
sampled.save("sampled.mst")
found, said = folded("sampled.mst", "sampled.mst")
assert min(min(amounts) for amounts in found.values()) >= 0 and at("f") in found, (found, said)

# Names never break a line.
sizes = _hostile.save("hostile.mst")
for options in ((), ("--by=model",)):
    found, _ = folded("empty.mst", "hostile.mst", *options)
    assert sum(after for _, after in found.values()) == sum(sizes.values())
    assert not any(ord(c) < 32 or ord(c) == 127 for stack in found for c in stack)
