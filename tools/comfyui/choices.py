"""Remembers the policies that the user chose in ComfyUI's page. A choice belongs to the files of a model: it applies
again when a model is loaded from the same files, also after a restart of ComfyUI. In: choices, and a file in ComfyUI's
user folder. Out: the choice for a model. Each line of the file is one choice, so a damaged line does not affect the
other choices."""
import json
import os
from typing import Any, Iterable, Optional

from . import log
from .registry import MOST_PRIORITY, POLICIES, Setting

FOLDER, FILE = "__memstow", "policies.jsonl" # ComfyUI serves no file of a folder whose name begins with __

Key = tuple[str, tuple[tuple[str, int], ...]] # the type of the model; path and size in bytes of each of its files


def key_of(kind: str, paths: Iterable[str]) -> Optional[Key]:
    """The key of a model that was loaded from these files. None if there are no files, or if a file's size cannot be
    read."""
    try:
        files = tuple((os.path.realpath(path), os.stat(path).st_size) for path in paths)
    except OSError:
        return None
    return (kind, files) if files else None


def written(key: Key, setting: Setting) -> str:
    kind, files = key
    return json.dumps({"type": kind, "files": [{"path": path, "bytes": size} for path, size in files],
                       "policy": setting.policy, "priority": setting.priority}) + "\n"


def is_whole(value: Any) -> bool: # a bool is an int in Python, but no number here
    return isinstance(value, int) and not isinstance(value, bool)


def read(line: str) -> tuple[Key, Setting]:
    """The choice in a line. Raises ValueError if the line is damaged."""
    found = json.loads(line)
    try:
        files = tuple((file["path"], file["bytes"]) for file in found["files"])
        kind, policy, priority = found["type"], found["policy"], found["priority"]
        is_sound = (isinstance(kind, str) and policy in POLICIES and is_whole(priority)
                    and abs(priority) <= MOST_PRIORITY and files
                    and all(isinstance(path, str) and is_whole(size) for path, size in files))
    except (KeyError, TypeError) as error:
        raise ValueError(str(error)) from error
    if not is_sound:
        raise ValueError("not a choice")
    return (kind, files), Setting(policy, priority, chosen=True)


class Choices:
    """The choices in a folder. Without a folder they are forgotten when the process ends."""

    def __init__(self, folder: Optional[str] = None) -> None:
        self.path = os.path.join(folder, FILE) if folder else None
        self.has_complained = False
        self.known: dict[Key, Setting] = {}
        self.load()

    def of(self, key: Optional[Key]) -> Optional[Setting]:
        return self.known.get(key) if key is not None else None

    def load(self) -> bool:
        """Reads the file, which another ComfyUI may have changed. Returns whether a line of it is damaged."""
        if self.path is None:
            return False
        found, damaged = {}, 0
        try:
            with open(self.path, encoding="utf-8", errors="surrogateescape") as lines:
                for line in lines:
                    try:
                        key, setting = read(line)
                        found[key] = setting
                    except (ValueError, RecursionError):
                        damaged += 1
        except FileNotFoundError:
            pass
        except OSError as error:
            self._complain(f"cannot be read: {error.strerror}")
            return True
        if damaged:
            self._complain(f"{damaged} of the remembered policies cannot be read; the others hold")
        self.known = found
        return damaged > 0

    def _complain(self, words: str) -> None:
        if not self.has_complained:
            self.has_complained = True
            log.warning("memstow: %s: %s", self.path, words)

    def set(self, key: Optional[Key], setting: Optional[Setting]) -> bool:
        """Remembers the choice for the files of a model. If the setting is None, forgets the choice. Returns whether
        the change is in the file."""
        if key is None:
            return False
        is_damaged = self.load()
        self.known.pop(key, None)
        if setting is not None:
            self.known[key] = setting
        return self.path is not None and self._write(self.path, is_damaged)

    def _write(self, path: str, is_damaged: bool) -> bool:
        """Writes the file whole or not at all. A damaged old file stays beside the new one, as FILE.damaged. Returns
        whether the file was written."""
        try:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path + ".new", "w", encoding="utf-8", errors="surrogateescape") as file:
                file.writelines(written(key, setting) for key, setting in self.known.items())
                file.flush()
                os.fsync(file.fileno())
            if is_damaged:
                os.replace(path, path + ".damaged")
            os.replace(path + ".new", path)
        except OSError as error:
            log.warning("memstow: the policy holds, but is not remembered: %s", error)
            return False
        return True


def folder() -> Optional[str]:
    """The folder for the file; None for a ComfyUI without a user folder."""
    try:
        import folder_paths
        return os.path.join(folder_paths.get_user_directory(), FOLDER)
    except (ImportError, AttributeError):
        return None
