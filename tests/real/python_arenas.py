#!/usr/bin/env python3
"""Small Python objects are made in a model's scope. Their arenas do not belong to the model, because later objects of
other owners lie there, too. Larger objects belong to the model."""
import os

if "libmemstow" not in os.environ.get("LD_PRELOAD", ""):
    import support
    for options in (["--stacks=full"], ["--stacks=sample"]):
        support.memstow("run", "--quiet", *options, "-o", "out.mst", "--", support.PYTHON, __file__,
                        env={**os.environ, "PYTHONPATH": str(support.ROOT / "tools/python")})
    document = support.report("out.mst")
    assert document["totals"]["mapped"]["peak_bytes"] >= 32 << 20, document["totals"]["mapped"]
    raise SystemExit

import memstow

model = memstow.owner("model")
kept = [None] * 2_000_000
with model.scope():
    for i in range(len(kept)):
        kept[i] = object()
    large = bytearray(5 << 20)
has = model.figures()
assert 5 << 20 <= has.live_bytes < 6 << 20 and not has.mapped_bytes, has
