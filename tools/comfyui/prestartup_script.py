"""Starts ComfyUI again in the same process, under memstow, if the user asked for it. ComfyUI runs this file before it
loads anything large. In: MEMSTOW=1 in the environment (MEMSTOW=0: never), or the setting memstow.start. Out: the same
process with the library preloaded and with the same arguments. ComfyUI is started again only once. If memstow is
missing or does not fit, ComfyUI goes on without it. One line in the log says which of these happened."""
import ctypes
import json
import logging
import os
import pathlib
import re
import runpy
import shlex
import subprocess
import sys
import tempfile

log = logging.getLogger("memstow")
GUARD = "MEMSTOW_RESTARTED"
NOT_FOUND = 127 # the exit status of a program that does not exist
LOOKS = "import ctypes; ctypes.CDLL(None).memstow_abi_version"


def is_preloaded():
    try:
        return hasattr(ctypes.CDLL(None), "memstow_abi_version")
    except (OSError, TypeError):
        return False


def is_wanted():
    """Whether the user asked for memstow: in the environment, else in the settings of ComfyUI's page."""
    said = os.environ.get("MEMSTOW", "").strip().lower()
    if said in ("1", "yes", "on", "true", "0", "no", "off", "false"):
        return said in ("1", "yes", "on", "true")
    try:
        import folder_paths
        settings = pathlib.Path(folder_paths.get_user_directory(), "default", "comfy.settings.json")
        return json.loads(settings.read_text(encoding="utf-8")).get("memstow.start") is True
    except Exception: # there are no settings yet, or this ComfyUI has them elsewhere
        return False


def command():
    """The path of the command memstow, or None."""
    return runpy.run_path(str(pathlib.Path(__file__).resolve().with_name("command.py")))["find"]()


def attempt(words):
    """Runs a short process. Returns its exit status, and the last line that it said on standard error."""
    try:
        tried = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                               text=True, errors="replace", timeout=60)
    except (OSError, subprocess.TimeoutExpired) as error:
        return None, str(error)
    said = tried.stderr.strip().splitlines() or [f"exit status {tried.returncode}"]
    return tried.returncode, said[-1]


def fault_of(start, folder):
    """The reason why this Python cannot be started by these words; None: it can. The trial has a ledger in `folder`."""
    status, said = attempt([*start, "-o", os.path.join(folder, "try.mst"), "--", sys.executable, "-c", LOOKS])
    return None if status == 0 else said


def fault_of_ledger(start, folder):
    """The reason why the ledger cannot be written where these words say; None: it can. memstow looks at the ledger's
    place before it looks for the program, and the program of this trial does not exist."""
    pid = str(os.getpid()) # the trial has another one
    words = [re.sub("%[%p]", lambda found: pid if found[0] == "%p" else found[0], word) for word in start[3:]]
    program = os.path.join(folder, os.path.basename(sys.executable))
    status, said = attempt([*start[:3], "-o", f"memstow.%n.{pid}.mst", *words, "--", program])
    return None if status == NOT_FOUND else said


def choose(start):
    """The words to start memstow with, and a remark for the log; or (None, the reason why memstow cannot be started).
    The ledger goes where the user wants it, else to the working folder or, if it cannot be there, to the folder of
    temporary files."""
    with tempfile.TemporaryDirectory() as folder:
        why = fault_of(start, folder)
        if why is not None:
            return None, why
        why = fault_of_ledger(start, folder)
        if why is None:
            return start, ""
        place = tempfile.gettempdir()
        elsewhere = [*start[:3], "-o", os.path.join(place.replace("%", "%%"), "memstow.%n.%p.mst"), *start[3:]]
        if fault_of_ledger(elsewhere, folder) is not None:
            return None, why
        return elsewhere, f"; its ledger is in {place} ({why})"


def restart():
    if is_preloaded():
        os.environ.pop(GUARD, None)
        return
    if sys.platform != "linux" or not is_wanted():
        return
    if os.environ.pop(GUARD, None):
        log.warning("memstow: ComfyUI was started under memstow, and the library is not there; it runs as always")
        return
    path = command()
    if path is None:
        log.warning("memstow: the command memstow was not found (docs/install.md); ComfyUI runs as always")
        return
    start = [path, "run", "--exec", *shlex.split(os.environ.get("MEMSTOW_OPTIONS", ""))]
    try:
        chosen, remark = choose(start)
    except OSError as error: # there is no folder of temporary files
        chosen, remark = None, str(error)
    if chosen is None:
        log.warning("memstow: cannot start this Python (%s); ComfyUI runs as always", remark)
        return
    log.info("memstow: starting ComfyUI again, under memstow%s", remark)
    sys.stdout.flush()
    sys.stderr.flush()
    words = getattr(sys, "orig_argv", [sys.executable, *sys.argv])
    os.environ[GUARD] = "1"
    try:
        os.execv(path, [*chosen, "--", sys.executable, *words[1:]])
    except OSError as error:
        del os.environ[GUARD]
        log.warning("memstow: %s: %s; ComfyUI runs as always", path, error.strerror)


try:
    restart()
except Exception: # ComfyUI must start
    log.exception("memstow: could not start ComfyUI again; it runs as always")
