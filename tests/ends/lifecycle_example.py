"""The scenario that is shipped for ComfyUI is the same as in docs/endings.md. With it, lifecycle runs all six tests,
three times each. (A program that ends at once takes ComfyUI's place. shutdown_no_leaks.py uses ComfyUI itself.)"""
import json, pathlib, re

from _comfyui import EXAMPLE, scenario
from support import ROOT, memstow

text = (EXAMPLE / "comfyui.scenario").read_text()
shown = re.search(r"```\n(folder: .*?)```", (ROOT / "docs/endings.md").read_text(), re.S)[1]
assert shown == "".join(line for line in text.splitlines(True) if not line.startswith("#")), shown
assert json.loads(
    (EXAMPLE / "child.json").read_text())["child"]["class_type"] in (EXAMPLE / "child_server.py").read_text()

pathlib.Path("x.scenario").write_text(scenario("sh -c 'exit 3'"))
document = json.loads(memstow("lifecycle", "--json", "--untracked", "x.scenario", status=4).stdout)
assert document["skipped_tests"] == 0 and document["failed"] == 18
assert [life["test"] for life in document["lives"]] == [f"T{i // 3 + 1}" for i in range(18)]
assert all("ready: http GET /system_stats" in life["reasons"][0] for life in document["lives"]), document
