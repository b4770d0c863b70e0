"""With this folder in PYTHONPATH, ComfyUI's main.py may be started directly, as users start it. As in
tests/comfyui_main.py, torchvision loads even where its compiled part does not load."""
import importlib.abc, sys


class BeforeTorchvision(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name == "torchvision":
            sys.meta_path.remove(self)
            import torchvision_operators
            torchvision_operators.ensure()


sys.meta_path.insert(0, BeforeTorchvision())
