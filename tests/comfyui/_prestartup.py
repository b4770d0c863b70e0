"""A ComfyUI that was not started under memstow, and may start itself again."""
import pathlib

import support
from _comfy import AGAIN, Comfy


def started(name, expect, count=1, **env):
    """Starts a ComfyUI with this environment, and asserts that its log has the text `expect` `count` times. Returns the
    ComfyUI, and whether memstow is in it."""
    is_new = not (support.HERE / name / "custom_nodes").exists()
    comfy = Comfy(under=None, name=name, pack=is_new, env={"MEMSTOW_COMMAND": str(support.MEMSTOW), **env})
    log = comfy.log()
    preloaded = "libmemstow" in pathlib.Path(f"/proc/{comfy.server.pid}/maps").read_text()
    assert log.count(AGAIN) == int(preloaded) and log.count(expect) == count, (name, preloaded, log[:3000])
    return comfy, preloaded
