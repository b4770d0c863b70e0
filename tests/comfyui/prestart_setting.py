#!/usr/bin/env python3
# needs: comfyui
# timeout: 600
# long
"""A ComfyUI that was not started under memstow starts itself again in place if its settings say so. With MEMSTOW=0 it
does not, whatever the settings say."""
import support
from _comfy import AGAIN
from _prestartup import started

settings = support.HERE / "by-setting/user/default/comfy.settings.json"
settings.parent.mkdir(parents=True)
settings.write_text('{"memstow.start": true}')
comfy, preloaded = started("by-setting", AGAIN)
assert preloaded
comfy.stop()
comfy, preloaded = started("by-setting", "ComfyUI was not started under memstow", MEMSTOW="0")
assert not preloaded and comfy.get("/memstow/owners") is None
comfy.stop()
