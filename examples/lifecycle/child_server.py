"""A ComfyUI node that starts a child server, for the test T6 of comfyui.scenario: link it into custom_nodes. With
memstow's node pack there, the server is registered with the coordinator of endings, and ends with ComfyUI. Without the
pack the server stays, and T6 says so."""
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
