#!/usr/bin/env python3
# needs: comfyui
# long
# timeout: 600
"""The examples of loops run as docs/loops.md says. The script make_models.py makes their models. Each of the three
examples is started by its workflow, as the editor saves it. The first refines a picture until it is wide enough. The
second takes each picture of a folder. The third runs one branch, then the other."""
import sys

import support
from _loops import Loops

sys.path.insert(0, str(support.ROOT / "tools/python"))
import memstow_loops

EXAMPLES = support.ROOT / "examples/loops"

with Loops() as comfy:
    made = support.run(sys.executable, EXAMPLES / "make_models.py", comfy.folder).stdout
    again = support.run(sys.executable, EXAMPLES / "make_models.py", comfy.folder).stdout
    files = 2 + len(list(EXAMPLES.glob("*.json")))
    assert made.count("was made") == again.count("is there already") == files, (made, again)
    assert not list((comfy.folder / "models").rglob("tae*")), "TAESD's names are its own"
    support.run(sys.executable, EXAMPLES / "make_models.py", status=1)
    bare = support.run(sys.executable, "-S", EXAMPLES / "make_models.py", comfy.folder, status=1).stderr
    assert "no torch and no safetensors and no PIL" in bare and "Traceback" not in bare, bare
    info = comfy.get("/object_info")

    def start(name):
        """Runs the workflow that starts an example. Returns the state of its loop at the end."""
        comfy.run(memstow_loops.convert_workflow(str(EXAMPLES / f"start_{name}.json"), info))
        found = comfy.over(name.replace("_", " "), 200)
        assert found["state"] == "done" and not found["warnings"] and not found["failures"], found
        return found

    refined = start("refine")
    widths, width = 0, 64
    while width < 256: # each iteration widens the picture by 1.25, after the VAE has cut it to a multiple of eight
        width, widths = round(width // 8 * 8 * 1.25), widths + 1
    assert refined["values_of_ports"]["width"] == width and refined["committed"] == widths, (refined, width, widths)
    assert refined["values_of_ports"]["image"]["shape"] == [1, width, width, 3], refined
    assert len(list((comfy.folder / "output/loops").glob("refined_*.png"))) == widths
    walked = start("walk_folder")
    assert walked["values_of_ports"] == {"name": [f"picture{number}.png" for number in range(1, 6)]}, walked
    assert len(list((comfy.folder / "output/loops").glob("picture_*.png"))) == 5
    branched = start("branch")
    assert branched["values_of_ports"]["polished"] == 256 and branched["committed"] == 2, branched
    assert len(list((comfy.folder / "output/loops").glob("polished_*.png"))) == 1
    for path in sorted(EXAMPLES.glob("*.json")):
        memstow_loops.discover_ports(str(path), info)
    both = memstow_loops.stitch_workflows([str(EXAMPLES / "picture.json"), str(EXAMPLES / "refine.json")], info)
    ports = {(p.id, p.mode) for p in memstow_loops.discover_ports(both, info).ports}
    assert ports == {("image", "OUTPUT"), ("image", "PASSTHRU"), ("width", "OUTPUT")}, ports
