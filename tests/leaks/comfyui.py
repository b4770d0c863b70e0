#!/usr/bin/env python3
# needs: comfyui
# timeout: 900
# long
"""A real ComfyUI under memstow does four things, one after another:
- A dozen runs of honest nodes. No leak is found.
- A dozen runs in which two nodes leak: one keeps weights of a freed model in a list, the other keeps copies of weights.
  There are exactly two findings, with their model or node and their function. A search of ten seconds of processor time
  (--holders) names the holder of the weights. The example in docs/leaks.md is the output after such runs.
- Four more runs of these two nodes. There still are exactly two findings.
- A dozen runs without these two nodes, in which an error leaves features of a third node behind. There are two
  findings: the features, and the memory of freed models. The copies of weights do not grow in these runs, so they only
  count as memory of freed models."""
import re, sys

import support
from _leaks import HERE, brief, functions, leaks

sys.path.insert(0, str(support.ROOT / "tests/comfyui"))
from _comfy import Comfy, link, policy, sample, unet # noqa: E402

RUNS, LATER = 12, 4


def workflow(seed, *kinds):
    found, model = {"unet": unet(), "policy": policy("unet", "free")}, "policy"
    for kind in kinds:
        found[kind] = {"class_type": kind, "inputs": {"model": link(model), "seed": seed}}
        model = kind
    return {**found, **sample(model, seed)}


def failing(seed):
    found = workflow(seed)
    found["features"] = {"class_type": "FeatureCache", "inputs": {"latent": link("sample"), "seed": seed}}
    found["digest"]["inputs"]["value"] = link("features")
    return found


def repeat(make, first, status="success", runs=RUNS):
    for seed in range(first, first + runs):
        comfy.run(make(seed), status)
    document = leaks(comfy.pid(), "--holders")
    print(make.__name__, brief(document), document["runs"], document["not_leaks"])
    return document


def blamed(document, **owner):
    """The functions of the findings at this node or model, and their bytes a run."""
    found = [l for l in document["leaks"] if all(l[key] == value for key, value in owner.items())]
    return {name for l in found for name in functions(l["stack"])[:1]}, sum(l["bytes_per_run"] for l in found)


def leaking(seed):
    return workflow(seed, "KeepWeights", "PatchWithoutEnd")


comfy = Comfy("memstow", ffn=4096, before=((HERE / "_leaking_nodes.py").read_text(),), quick=False)
try:
    document = repeat(workflow, 1000)
    assert not document["found"] and document["runs"]["judged"] >= 8, (brief(document), document["runs"])

    document = repeat(leaking, 2000)
    assert document["found"] == 2, (document["found"], brief(document))
    gone = [r for r in document["retired"] if r["leak"]]
    assert [r["origin"] for r in gone] == ["tiny.safetensors"], brief(document)
    assert gone[0]["owners"] >= RUNS - 1 and gone[0]["live_bytes"] >= 4 * 2**20 * (RUNS - 1), gone
    assert any("aaa_other.kept[" in holder for holder in gone[0]["holders"]), gone[0]["holders"]
    found, grown = blamed(document, node="PatchWithoutEnd")
    assert found == {"PatchWithoutEnd.patch"} and grown >= 2**20, brief(document)
    assert {l["node"] for l in document["leaks"]} <= {"PatchWithoutEnd", "UNETLoader"}, brief(document)

    [example] = re.findall("This is the output for .*?\n\n(    .*?)\nHow to read it:",
                           (support.ROOT / "docs/leaks.md").read_text(), re.S)
    text = support.memstow("leaks", comfy.pid(), status=1).stdout
    print(text)
    # The example has rows about memory that is no leak. These rows may be missing in this run's output.
    said, rows = set(support.shapes(text)), (support.ROOT / "tools/leaks/leaks_text.c").read_text()
    missing = [line for line in support.shapes(example) if line not in said and f'"{line.lstrip("# ")}"' not in rows]
    assert not missing, f"docs/leaks.md shows what is not said: {missing}"

    document = repeat(leaking, 2500, runs=LATER)
    assert document["found"] == 2, (document["found"], brief(document))

    document = repeat(failing, 3000, "error")
    assert document["found"] == 2, (document["found"], brief(document))
    found, grown = blamed(document, node="FeatureCache")
    assert "FeatureCache.encode" in found and 400_000 <= grown, brief(document)
    support.memstow("snapshot", comfy.pid(), "-o", "leaks.mst")
    text = support.memstow("leaks", "leaks.mst", status=1).stdout
    print(text)
    assert "aaa_other.kept[" in text, text
except BaseException:
    print(comfy.log()[-3000:])
    raise
finally:
    comfy.stop()
