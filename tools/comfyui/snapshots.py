"""The snapshots that clients request over HTTP: files that the pack makes in output/memstow. In: only names that the
pack has given itself. Out: files. It never touches other files or links in that folder."""
import os
import re
import time
from typing import Any

from . import report

NAME = re.compile(r"\d{8}-\d{6}-\d+-\d{6}\.mst")
FOLDER = "memstow" # below ComfyUI's output folder, as clients see it


class TooMany(Exception):
    pass


class Snapshots:
    def __init__(self, most: int = 20) -> None:
        self.most, self.in_work = most, 0

    def listed(self) -> list[dict[str, Any]]:
        """The list of snapshots, the oldest first."""
        found = []
        with os.scandir(report.folder()) as entries:
            for entry in entries:
                if NAME.fullmatch(entry.name) and entry.is_file(follow_symlinks=False):
                    about = entry.stat(follow_symlinks=False)
                    found.append({"file": self.file_of(entry.name), "bytes": about.st_size, "taken": about.st_mtime})
        return sorted(found, key=lambda one: one["file"])

    def begin(self) -> str:
        """The path of a new snapshot; end() must follow. Runs on the server's thread."""
        if len(self.listed()) + self.in_work >= self.most:
            raise TooMany(f"there are {self.most} snapshots: DELETE /memstow/snapshot?file=… removes one")
        self.in_work += 1
        name = f"{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}-{time.monotonic_ns() % 10**6:06}.mst"
        return os.path.join(report.folder(), name)

    def end(self) -> None:
        self.in_work -= 1

    @staticmethod
    def file_of(path: str) -> str:
        """Its name in the list."""
        return f"{FOLDER}/{os.path.basename(path)}"

    def remove(self, file: str) -> bool:
        """Removes the snapshot with this name. False: there is none."""
        if all(one["file"] != file for one in self.listed()):
            return False
        os.unlink(os.path.join(report.folder(), os.path.basename(file)))
        return True
