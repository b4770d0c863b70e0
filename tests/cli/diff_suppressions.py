"""diff --fail-over --suppressions: known growth counts neither for the total nor for its owner nor for its call site.
Lines that suppress nothing are named. A file with a fault is refused with line and column."""
import json, pathlib
from _ledger import MIB, Ledger
from support import memstow

KNOWN = pathlib.Path("known.txt")
for name, cache, other in (("a", 1, 1), ("b", 4, 2)):
    ledger = Ledger()
    unet, node = ledger.owner(1, "UNET", "wan"), ledger.owner(2, "KSampler")
    # In ledger b the functions are on other lines. diff must match them nevertheless, because it compares names.
    frames = [ledger.python(function, "/app/train.py", (10 if name == "a" else 20) + i) for i,
              function in enumerate(("fill", "work"))]
    for frame, tag, size in ((0, dict(model=unet), cache * MIB), (1, dict(node=node), other * MIB)):
        ledger.count(ledger.site(tag=ledger.tag(**tag), stack=ledger.node([frames[frame]])),
                     alloc=(size, 2 * size // MIB))
    ledger.save(name)


def diff(limits, known, status=0, *more):
    KNOWN.write_text(known)
    return memstow("diff", "a", "b", f"--fail-over={limits}", "--suppressions=known.txt", *more, status=status)


FILL = "function=fill module=train.py\n"
for limits, known, status in (("2MiB", FILL, 0), ("2MiB", "function=other\n", 1), ("0.9MiB", FILL, 1), ("3x", FILL, 0),
                              ("1x", FILL, 1), ("owner:2MiB", FILL, 0), ("owner:2MiB", "function=work\n", 1),
                              ("owner:2MiB", "owner=model:UNET\n", 0), ("owner:2MiB", "owner=model:CLIP\n", 1),
                              ("site:2MiB", FILL, 0), ("site:0.5MiB", FILL, 1),
                              ("site:0.5MiB", FILL + "function=w*\n", 0),
                              ("2MiB", "function=fill until=2020-01-01\n", 1)):
    done = diff(limits, known, status)
    assert (f": over the limit of {limits}\n" in done.stderr) is bool(status), (limits, known, done.stderr)

assert memstow("diff", "a", "b", "--fail-over=2MiB",
               status=1).stderr.startswith("memstow: live memory grew by 4.0 MiB and 8 blocks: ")
done = diff("0.9MiB", FILL, 1)
assert done.stderr == ("memstow: live memory grew by 1.0 MiB and 2 blocks, without 3.0 MiB that is suppressed: "
                       "over the limit of 0.9MiB\n"), done.stderr
assert ("\n3.0 MiB of the growth are suppressed: limits do not count them.\n" in done.stdout
        and "known.txt:" not in done.stdout), done.stdout
done = diff("site:0.5MiB", FILL, 1)
assert (
    done.stderr == "memstow: work@train.py, node:KSampler grew by 1.0 MiB and 2 blocks: over the limit of site:0.5MiB\n"
), done.stderr
done = diff("9MiB", "# two that are of no use\nfunction=other\n" + FILL.strip() + " until=2020-01-01\n")
assert done.stdout.endswith("\n\nknown.txt:2: function=other suppressed nothing\n"
                            "known.txt:3: function=fill module=train.py until=2020-01-01 has expired\n"), done.stdout
document = json.loads(diff("0.9MiB", FILL + "owner=CLIP\n", 1, "--json").stdout)
assert (document["suppressed_bytes"], document["over"], document["over_name"],
        document["growth_bytes"]) == (3 * MIB, "0.9MiB", None, 4 * MIB)
assert document["suppressions"] == [{"line": 1, "text": FILL.strip(), "used": True, "expired": False},
                                    {"line": 2, "text": "owner=CLIP", "used": False,
                                     "expired": False}], document["suppressions"]
document = json.loads(memstow("diff", "a", "b", "--json").stdout)
assert document["suppressed_bytes"] == 0 and document["suppressions"] == [], document

assert diff("1MiB", "functoin=x\n",
            3).stderr == "memstow: known.txt:1:1: function=, module=, owner= or until= expected\n"
assert memstow("diff", "a", "b", "--fail-over=1", "--suppressions=absent.txt",
               status=3).stderr.startswith("memstow: absent.txt: ")
assert "goes with --fail-over" in memstow("diff", "a", "b", "--suppressions=known.txt", status=2).stderr
sampled = Ledger(stacks=3, sample_bytes=4096)
sampled.unsampled()
sampled.save("b")
assert "the call sites of b are estimates" in diff("1MiB", FILL, 2).stderr
