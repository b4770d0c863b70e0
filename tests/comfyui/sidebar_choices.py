#!/usr/bin/env python3
# needs: comfyui deb:chromium deb:chromium-driver pip:selenium==4.51.0 pip:comfyui-frontend-package==1.32.9
# timeout: 900
# long
"""A policy and a priority that are chosen in the tab "Memory" hold for the model's file, also in a later ComfyUI, and
for no other file. While a policy node sets a policy, this policy takes precedence over the choice. The policy "none"
forgets the choice. Damaged lines of the file of choices lead to one warning, and no other choice is lost."""
import json, pathlib, sys

import support
from _comfy import Comfy, mixed, unet

sys.path.insert(0, str(support.ROOT / "tests/html"))
from _page import Browser # noqa: E402
from _sidebar import PAGE, browse, choose, rows, settle # noqa: E402

browser = Browser(1400, 1000)
file = support.HERE / "comfyui/user/__memstow/policies.jsonl"


def start(pack=True):
    return Comfy(under="memstow", arguments=("--front-end-root", str(PAGE)), pack=pack)


def policies(comfy):
    return {kind: (owner["policy"], owner["priority"]) for kind, owner in comfy.owners().items()}


def written():
    return {line["type"]: line for line in map(json.loads, file.read_text().splitlines())}


settle("comfyui")
with start() as comfy:
    comfy.run(mixed(1, None, None))
    assert policies(comfy) == {"MODEL": (None, 0), "CLIP": (None, 0), "VAE": (None, 0)} and not file.exists()
    browse(browser, comfy)
    browser.wait("document.querySelectorAll('.memstow-models > li').length === 3")
    assert browser.js("return [...document.querySelectorAll('.memstow-models input')].every((one) => one.disabled)")
    choose(browser, "MODEL", policy="stow")
    choose(browser, "MODEL", priority=7)
    choose(browser, "CLIP", policy="keep")
    choose(browser, "VAE", policy="free")
    assert policies(comfy) == {"MODEL": ("stow", 7), "CLIP": ("keep", 0), "VAE": ("free", 0)}, policies(comfy)
    assert any("remembered for its file" in said for said in browser.js("return window.said"))
    choose(browser, "MODEL", priority=1001, done=False)
    support.wait_for(lambda: any("from -1000 to 1000" in said for said in browser.js("return window.said")))
    owner = comfy.owners()["MODEL"]["id"]
    for fault in ({"priority": 1001}, {"priority": True}, {"priority": "1"}, {"priority": 1.5}, {"do": "free"}):
        body = {"owner": owner, "do": "policy", "policy": "keep", "priority": 1, **fault}
        assert comfy.status_of("/memstow/model", json.dumps(body).encode()) == 400, body
    assert policies(comfy)["MODEL"] == ("stow", 7), policies(comfy)
    comfy.run(mixed(2, None, None))
    assert set(comfy.owners()) == {"MODEL", "CLIP"} and comfy.owners()["MODEL"]["stowed_bytes"], comfy.owners()

[path] = written()["MODEL"]["files"]
assert pathlib.Path(path["path"]).name == "tiny.safetensors" and path["bytes"] == pathlib.Path(path["path"]).stat(
).st_size, path
whole = file.read_text()
damage = ["{", "[1]", "\udcff", whole.splitlines()[0][:-20], whole.splitlines()[0].replace('"stow"', '"sell"')]
file.write_text("\n".join([damage[0], whole.splitlines()[0], *damage[1:3], *whole.splitlines()[1:], *damage[3:]]),
                errors="surrogateescape")

with start(pack=False) as comfy: # the pack is in the folder still
    comfy.run(mixed(3, None, None))
    assert policies(comfy) == {"MODEL": ("stow", 7), "CLIP": ("keep", 0)}, comfy.owners() # VAE was freed
    assert comfy.owners()["MODEL"]["rule"] == "chosen in the side bar" and comfy.owners()["MODEL"]["stowed_bytes"]
    [known] = [one for one in json.loads(support.memstow("owners", comfy.pid(), "--json").stdout)["owners"]
               if one["id"] == comfy.owners()["MODEL"]["id"]]
    assert (known["policy"], known["priority"]) == ("stow", 7), known
    browse(browser, comfy)
    browser.wait("document.querySelectorAll('.memstow-models > li').length === 2")
    [row] = [row for name, row in rows(browser).items() if name.startswith("MODEL")]
    assert (row["policy"], row["priority"]) == ("stow", "7") and "chosen in the side bar" in row["why"], row

    # a policy node rules while it is there
    comfy.run(mixed(4, "keep", None))
    assert comfy.owners()["MODEL"]["policy"] == "keep" and not comfy.owners()["MODEL"]["stowed_bytes"], comfy.owners()
    comfy.run(mixed(5, None, None))
    assert policies(comfy)["MODEL"] == ("stow", 7) and comfy.owners()["MODEL"]["stowed_bytes"], comfy.owners()
    comfy.check_trace()

    # another file of the same type
    other = mixed(6, None, None)
    other["unet"] = unet("other.safetensors")
    comfy.run(other)
    models = {owner["origin"]: owner["policy"] for owner in comfy.get("/memstow/owners")["owners"]
              if owner["type"] == "MODEL"}
    assert models == {"tiny.safetensors": "stow", "other.safetensors": None}, models

    # what is chosen now forgets no other choice
    browser.wait("document.querySelectorAll('.memstow-models > li').length === 3")
    choose(browser, "MODEL WAN21 (tiny", policy="none")
    comfy.settled()
    assert set(written()) == {"CLIP", "VAE"} and written()["VAE"]["policy"] == "free", file.read_text()
    kept = file.with_name("policies.jsonl.damaged").read_text(errors="surrogateescape")
    assert all(line in kept.splitlines() for line in damage), kept
    assert comfy.log().count("of the remembered policies cannot be read") == 1, comfy.log()
    assert "5 of the remembered" in comfy.log(), comfy.log()
    comfy.run(mixed(7, None, None))
    models = {owner["origin"]: owner["policy"] for owner in comfy.get("/memstow/owners")["owners"]
              if owner["type"] == "MODEL"}
    assert models["tiny.safetensors"] is None, models

with start(pack=False) as comfy:
    comfy.run(mixed(8, None, None))
    assert policies(comfy) == {"MODEL": (None, 0), "CLIP": ("keep", 0)}, comfy.owners()
    assert "of the remembered policies" not in comfy.log()
