"""A ComfyUI node that starts a child server, for the test T6 of comfyui.scenario. Link this file into custom_nodes. If
memstow's node pack is installed, too, the server is registered with the coordinator of endings, and ends with ComfyUI.
Without the pack the server goes on when ComfyUI has ended, and T6 says so."""
import subprocess
import sys


class ChildServer:
    RETURN_TYPES, FUNCTION, CATEGORY, OUTPUT_NODE = (), "start", "memstow", True

    @classmethod
    def INPUT_TYPES(cls):
        return {"required": {"bind": ("STRING", {"default": "127.0.0.1"})}}

    def start(self, bind):
        child = subprocess.Popen([sys.executable, "-m", "http.server", "--bind", bind, "0"])
        shutdown = sys.modules.get("memstow_shutdown") # of the node pack
        if shutdown is not None:
            shutdown.process(child, "child server")
        return {}


NODE_CLASS_MAPPINGS = {"ChildServer": ChildServer}
