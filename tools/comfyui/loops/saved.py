"""The workflows that ComfyUI's editor has saved. In: a name. Out: the document. Never reads a file outside the folder
of saved workflows."""
import os
import pathlib
from typing import Any, Mapping

from memstow_loops.graph import document_at


def folder() -> pathlib.Path:
    import folder_paths
    return pathlib.Path(folder_paths.get_user_directory(), "default", "workflows").resolve()


def read(name: str) -> Mapping[str, Any]:
    """The saved workflow with this name. The name may lack the ending .json. Raises ValueError if it cannot be read."""
    root = folder()
    given = pathlib.PurePosixPath(name.strip())
    if not given.name or given.is_absolute() or ".." in given.parts or "\0" in name:
        raise ValueError(f"{name!r} is no name of a saved workflow")
    path = root / given if given.suffix == ".json" else root / given.with_name(given.name + ".json")
    if not os.path.realpath(path).startswith(f"{root}{os.sep}"): # a link that leads out of the folder
        raise ValueError(f"{name!r} lies outside of the folder of saved workflows")
    return document_at(path, f"the saved workflow {name!r}")
