"""Loads the modules that are beside memstow.py. In: a name. Out: the module, loaded once for the whole process. Loads a
module by its path, and never changes sys.path. Another pack may have a module of the same name, and an import that
searches sys.path could find the wrong one."""
import importlib.util
import pathlib
import sys
from typing import Any, Optional

from . import memstow


def module(name: str) -> Optional[Any]:
    """The module or package with this name: the one in sys.modules, else the one beside memstow.py. None if there is
    none."""
    if name in sys.modules:
        return sys.modules[name]
    folder = pathlib.Path(memstow.__file__).parent
    for path, places in ((folder / f"{name}.py", None), (folder / name / "__init__.py", [str(folder / name)])):
        if path.is_file():
            spec = importlib.util.spec_from_file_location(name, path, submodule_search_locations=places)
            if spec is None or spec.loader is None:
                continue
            found = sys.modules[name] = importlib.util.module_from_spec(spec)
            try:
                spec.loader.exec_module(found)
            except BaseException:
                del sys.modules[name]
                raise
            return found
    return None
