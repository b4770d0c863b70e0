#!/usr/bin/env python3
# needs: comfyui
# long
# timeout: 400
"""Translations of the node pack. ComfyUI serves the texts as they are in the pack's files. Each text belongs to a node,
an input, a setting or a category that exists. The English texts are those of the nodes and settings. The French files
have every text that the English files have."""
import json, re

import support
from _comfy import Comfy

PACK = support.ROOT / "tools/comfyui"
SCRIPT = "".join(file.read_text() for file in sorted(PACK.glob("web/*.js")))
FORBIDDEN = set("{}@|") # have a meaning in vue-i18n, which ComfyUI's page uses


def texts(document):
    if isinstance(document, str):
        return [document]
    return [text for value in document.values() for text in texts(value)]


def paths(document, before=()):
    if isinstance(document, str):
        return {before}
    return {path for key, value in document.items() for path in paths(value, (*before, key))}


def settings():
    """The settings that the script declares: the key of a setting's translation → (its categories, name, tooltip)."""
    constants = dict(re.findall(r'(?:const|,) (\w+) = "(memstow\.\w+)"', SCRIPT))
    found = {}
    for block in re.findall(r'\{\s*id: ([\w".]+), category: (\[.*?\])(.*?)(?=\n    \}[,\]])', SCRIPT, re.DOTALL):
        name = block[0].strip('"')
        found[constants.get(name, name).replace(".", "_")] = (json.loads(block[1]), *(
            re.search(rf'{word}: "(.*?)"', block[2])[1] for word in ("name", "tooltip")))
    return found


with Comfy(under="memstow") as comfy:
    served, nodes = comfy.get("/i18n"), comfy.get("/object_info")
nodes = {name: node for name, node in nodes.items() if node["category"].split("/")[0] == "memstow"}
declared = settings()
assert len(declared) == SCRIPT.count(", category: ["), declared
categories = {"settingsCategories": {part for found, *_texts in declared.values() for part in found},
              "nodeCategories": {part for node in nodes.values() for part in node["category"].split("/")}}

languages = {folder.name: {file.stem: json.loads(file.read_text()) for file in folder.iterdir()}
             for folder in (PACK / "locales").iterdir()}
assert {"en", "fr"} <= set(languages), languages
for language, files in languages.items():
    assert set(files) == {"main", "nodeDefs", "settings"}, (language, files.keys())
    for name, whole in files["main"].items():
        assert served[language][name] == whole and set(whole) <= categories[name], (language, name)
    for name in ("nodeDefs", "settings"):
        for key, whole in files[name].items():
            assert served[language][name][key] == whole, (language, name, key)
    for key in files["settings"]:
        assert key in declared and set(files["settings"][key]) == {"name", "tooltip"}, (language, key)
    for key, node in files["nodeDefs"].items():
        inputs = {name for part in nodes[key]["input"].values() for name in part}
        assert set(node) <= {"display_name", "description", "inputs"}, (language, key)
        assert set(node.get("inputs", {})) <= inputs, (language, key)
        assert all(set(one) <= {"name", "tooltip"} for one in node.get("inputs", {}).values()), (language, key)
    bad = [text for text in texts(files) if FORBIDDEN & set(text) or not text.strip()]
    assert not bad, (language, bad)

english = languages["en"]
assert set(english["settings"]) == set(declared)
for key, texts_of in english["settings"].items():
    assert (texts_of["name"], texts_of["tooltip"]) == declared[key][1:], key
internal = {"MemstowLoopLoad", "MemstowLoopSave"} # nodes that only the prompts of loops have
assert set(english["nodeDefs"]) == set(nodes) - internal, nodes.keys()
for key, texts_of in english["nodeDefs"].items():
    assert texts_of["display_name"] == nodes[key]["display_name"], key
    assert texts_of["description"] == " ".join(nodes[key]["description"].split()), key
    options = {name: spec[1] for part in nodes[key]["input"].values() for name, spec in part.items() if len(spec) > 1}
    for name, one in texts_of.get("inputs", {}).items():
        assert one == {"tooltip": options[name]["tooltip"]}, (key, name)
for file in english:
    missing = paths(english[file]) - paths(languages["fr"][file])
    assert not missing, (file, missing)
