#!/usr/bin/env python3
# needs: comfyui deb:chromium deb:chromium-driver pip:selenium==4.51.0 pip:comfyui-frontend-package==1.32.9
# long
# timeout: 600
"""stitch_workflows joins two workflows that ComfyUI's editor saved. The editor opens the result with all its nodes,
titles, positions and links. The editor's own conversion for the queue gives the same graph as convert_workflow."""
import sys

import support
from _comfy import Comfy

sys.path[:0] = [str(support.ROOT / "tools/python"), str(support.ROOT / "tests/html")]
import memstow_loops # noqa: E402
from _page import Browser # noqa: E402
from _sidebar import PAGE, browse, settle # noqa: E402

EXAMPLES = support.ROOT / "examples/loops"
browser = Browser(1400, 1000)
browser.driver.set_script_timeout(60)


def plain(graph):
    """Class and inputs of each node, by its id."""
    return {str(id): (node["class_type"], node["inputs"]) for id, node in graph.items()}


settle("comfyui")
with Comfy(under="memstow", arguments=("--front-end-root", str(PAGE))) as comfy:
    support.run(sys.executable, EXAMPLES / "make_models.py", comfy.folder)
    info = comfy.get("/object_info")
    both = memstow_loops.stitch_workflows([str(EXAMPLES / "picture.json"), str(EXAMPLES / "refine.json")], info)
    browse(browser, comfy)
    support.wait_for(lambda: browser.js("return window.comfyAPI.app.app.graph?.nodes.length > 0"), 300,
                     "the first workflow, which comes when the page knows all nodes")
    shown = browser.driver.execute_async_script("""
        const [document, done] = arguments, app = window.comfyAPI.app.app;
        app.loadGraphData(document).then(() => app.graphToPrompt()).then((prompt) => done({
            nodes: app.graph.nodes.map((node) => [node.id, node.type, node.title, [...node.pos]]),
            output: prompt.output}), (error) => done({error: String(error)}))""", both)
    browser.driver.save_screenshot("editor.png")
    assert "error" not in shown, shown
    opened = {id: (kind, pos) for id, kind, _title, pos in shown["nodes"]}
    assert opened == {node["id"]: (node["type"], list(node["pos"])) for node in both["nodes"]}, shown["nodes"]
    titles = {id: title for id, _kind, title, _pos in shown["nodes"]}
    assert all(titles[node["id"]] == node["title"] for node in both["nodes"] if node.get("title")), titles
    assert plain(shown["output"]) == plain(memstow_loops.convert_workflow(both, info)), shown["output"]
