"""Starts ComfyUI as tests/comfyui_main.py does, in two thirds of its processor time. torchvision is loaded without
torch._dynamo. scipy's modules are loaded when they are used first. Two packages seem not to be installed: alembic,
without which ComfyUI has no database, and trio. Needs the folder tests in PYTHONPATH."""
import importlib, pathlib, runpy, sys, types

import torchvision_operators


class AtFirstUse(types.ModuleType):
    """Stands for a module, which is loaded when something of it is used."""

    def __getattr__(self, name):
        if name.startswith("__"): # inspect asks all modules for such names
            raise AttributeError(name)
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        return getattr(importlib.import_module(self.__name__), name)


torchvision_operators.ensure()
torchvision_operators.import_without_dynamo()
sys.modules["alembic"] = sys.modules["trio"] = None
for scipy_module in ("stats", "integrate", "ndimage"):
    sys.modules[f"scipy.{scipy_module}"] = AtFirstUse(f"scipy.{scipy_module}")
runpy.run_path(str(pathlib.Path(__file__).parents[1] / "comfyui_main.py"), run_name="__main__")
