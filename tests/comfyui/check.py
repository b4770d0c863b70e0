#!/usr/bin/env python3
# needs: comfyui
# long
# timeout: 900
"""memstow check --comfy with a real ComfyUI. A workflow with a node that keeps 3 MB of each run fails without a
baseline, and the verdict names the node. A clean workflow passes with a baseline from another process. check_long.py
has the clean workflow without a baseline."""
import json, pathlib

from _check import check, folder, workflow
from _comfy import MB

clean, leaky = workflow("clean.json", 0), workflow("leaky.json", 3)
done = check(clean, "--runs=3", "--warm-up=5", "--update-baseline", "--baseline=base.txt")
text = pathlib.Path("base.txt").read_text()
assert 'model "MODEL WAN21" "tiny.safetensors"' in text and str(folder) not in text, text[:3000]
done = check(leaky, "--runs=6", "--warm-up=4", "--json=o.json", "--github=o.github", status=1)
document = json.loads(pathlib.Path("o.json").read_text())
over = [f for f in document["findings"] if f["verdict"] == "over"]
print(done.stdout, done.stderr[-1500:])
assert document["baseline"] is None and document["runs"] == 6 and document["baseline_runs"] == 2
assert over[0]["kind"] == "total" and over[0]["growth_bytes"] > 8 * MB, over
assert any(f["kind"] == "owner" and f["name_parts"][0] == "KeepsSome" for f in over), over
assert not any("Runs.trigger@runs.py" in f["name"] for f in document["findings"]), "the node pack's own memory"
assert "Runs.trigger@runs.py" not in text
assert "KeepsSome.keep@keeps_some.py" in done.stderr, done.stderr[-1500:]
assert "keeps_some.py,line=10" in pathlib.Path("o.github").read_text(), pathlib.Path("o.github").read_text()
done = check(clean, "--baseline=base.txt", "--runs=3", "--warm-up=6")
# A warning is allowed, because Python may have taken a mebibyte more for its objects than in the process of the
# baseline.
assert done.stdout.split("\n")[0] in ("clean.json: fine", "clean.json: a warning"), done.stdout
