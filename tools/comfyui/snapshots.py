"""The snapshots that clients request over HTTP: files that the pack makes in output/memstow. In: names that the
pack itself has given; other names are refused. Out: files. The pack never touches other files, or links, in that
folder."""
import contextlib
import os
import re
import time
from typing import Any, Optional

from . import report

NAME = re.compile(r"\d{8}-\d{6}-\d+-\d{6}\.mst")
UNFINISHED = re.compile(rf"({NAME.pattern})\.\w{{6}}") # memstow gives the file its final name when it is whole
QUIET = 60.0 # if a file has not changed for so many seconds, nobody writes it any more
FOLDER = "memstow" # below ComfyUI's output folder, as clients see it


class TooMany(Exception):
    pass


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


class Snapshots:
    def __init__(self, most: int = 20) -> None:
        self.most = most
        # path of each snapshot that is being written → whether the snapshot was cancelled
        self.at_work: dict[str, bool] = {}

    def listed(self) -> list[dict[str, Any]]:
        """The list of snapshots, the oldest first."""
        found = []
        with os.scandir(report.folder()) as entries:
            for entry in entries:
                if NAME.fullmatch(entry.name) and entry.is_file(follow_symlinks=False):
                    about = entry.stat(follow_symlinks=False)
                    found.append({"file": self.file_of(entry.name), "bytes": about.st_size, "taken": about.st_mtime})
        return sorted(found, key=lambda one: one["file"])

    def tidy(self) -> None:
        """Removes the files of snapshots whose writing was killed. Another ComfyUI may write into the same folder, so
        a file that another process began is removed only if that process is gone and the file no longer changes."""
        with os.scandir(report.folder()) as entries:
            for entry in entries:
                found = UNFINISHED.fullmatch(entry.name)
                if found and entry.is_file(follow_symlinks=False) and self._is_left(entry, found[1]):
                    with contextlib.suppress(OSError):
                        os.unlink(entry.path)

    def _is_left(self, entry: os.DirEntry, name: str) -> bool:
        pid = int(name.split("-")[2])
        if pid == os.getpid():
            return os.path.join(report.folder(), name) not in self.at_work
        return not is_running(pid) and time.time() - entry.stat(follow_symlinks=False).st_mtime > QUIET

    def begin(self) -> str:
        """Returns the path for a new snapshot. The caller must call end() with this path later. Runs on the server's
        thread."""
        self.tidy()
        if len(self.listed()) + len(self.at_work) >= self.most:
            raise TooMany(f"there are {self.most} snapshots: DELETE /memstow/snapshot?file=… removes one")
        name = f"{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}-{time.monotonic_ns() % 10**6:06}.mst"
        path = os.path.join(report.folder(), name)
        self.at_work[path] = False
        return path

    def end(self, path: str) -> bool:
        """Ends the writing of a snapshot, and removes its file if it was cancelled. Returns whether the file stays."""
        is_cancelled = self.at_work.pop(path)
        if is_cancelled:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)
        return not is_cancelled

    def cancel(self) -> bool:
        """Cancels all snapshots that are being written, so that end() removes their files. Returns whether there were
        any."""
        self.at_work = dict.fromkeys(self.at_work, True)
        return bool(self.at_work)

    def newest(self) -> Optional[str]:
        """The path of the newest snapshot that is complete, or None if there is no such snapshot."""
        paths = [os.path.join(report.folder(), os.path.basename(one["file"])) for one in self.listed()]
        return next((path for path in reversed(paths) if path not in self.at_work), None)

    @staticmethod
    def file_of(path: str) -> str:
        """The name in the list of the snapshot with this path."""
        return f"{FOLDER}/{os.path.basename(path)}"

    def remove(self, file: str) -> bool:
        """Removes the snapshot with this name. Returns whether there was one."""
        if all(one["file"] != file for one in self.listed()):
            return False
        os.unlink(os.path.join(report.folder(), os.path.basename(file)))
        return True
