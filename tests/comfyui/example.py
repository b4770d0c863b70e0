#!/usr/bin/env python3
# needs: cc
# timeout: 300
"""Runs the example of ./quickstart without memstow, with the test double, and, if the library of this build has
triggers, under memstow. Models that were to be freed are gone, models that were to be kept are there, and all checksums
match."""
import re

import support
import _double
from _comfy import has_real

EXAMPLE = support.ROOT / "examples/models.py"


def numbers(text):
    """Returns a dictionary and a list. The dictionary: model → (policy, MiB before, MiB in memory, MiB stowed). The
    list: RSS in MiB at each of the moments that the example prints."""
    rows = re.findall(r"^(\w+) +(keep|stow|free) +(\d+) MiB +(\d+) MiB +(\d+) MiB$", text, re.M)
    return {name: (policy, *map(int, rest)) for name, policy,
            *rest in rows}, [int(n) for n in re.findall(r"RSS +(\d+) MiB", text)]


bare = support.run("python3", EXAMPLE)
assert bare.stdout.count("still matches") == 3 and bare.stderr.count("not started under memstow") == 1, bare
on_double = support.run("python3", EXAMPLE, env=_double.environment()).stdout
assert on_double.count("still matches") == 2 and len(numbers(on_double)[0]) == 3, on_double

if not has_real("trigger_begin", "trigger_end", "decisions"):
    support.skip("the library of this build has no triggers yet")
text = support.track("python3", EXAMPLE).stdout
models, rss = numbers(text)
assert models["UNET"] == ("free", 160, 0, 0) and models["CLIP"] == ("keep", 64, 64, 0), text
assert models["VAE"][:2] == ("stow", 96), text
if has_real("stow") and "was not stowed" not in text:
    assert models["VAE"] == ("stow", 96, 0, 96) and rss[1] - rss[2] >= 240, text
assert rss[1] - rss[2] >= 150 and text.count("still matches") == 2, text
support.memstow("decisions", "out.mst", "--check")
