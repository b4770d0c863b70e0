"""Starts ComfyUI again in this process, under memstow. In: the environment, the settings of ComfyUI's page, and the
command. Out: the same process with the library preloaded and with the same arguments; or the reason why ComfyUI cannot
be started under memstow. prestartup_script.py loads this file before the pack is a package, so it imports nothing of
the pack."""
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


def said():
    """Whether the environment asks for memstow (True) or forbids it (False). None if it says neither."""
    word = os.environ.get("MEMSTOW", "").strip().lower()
    return True if word in ("1", "yes", "on", "true") else False if word in ("0", "no", "off", "false") else None


def is_wanted():
    """Whether the user asked for memstow: in the environment, else in the settings of ComfyUI's page."""
    if said() is not None:
        return said()
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
    lines = tried.stderr.strip().splitlines() or [f"exit status {tried.returncode}"]
    return tried.returncode, lines[-1]


def fault_of(start, folder):
    """The reason why memstow cannot start this Python, or None if it can. To find out, this function starts this Python
    once under memstow, with a ledger in `folder`. `start`: the words to start memstow with."""
    status, line = attempt([*start, "-o", os.path.join(folder, "try.mst"), "--", sys.executable, "-c", LOOKS])
    return None if status == 0 else line


def fault_of_ledger(start, folder):
    """The reason why the ledger cannot be written to the place that the words `start` name, or None if it can be
    written. To find out, this function lets memstow start a program that does not exist. memstow checks the ledger's
    place before it looks for the program. So the exit status NOT_FOUND means that the place is good."""
    pid = str(os.getpid()) # the process of the trial has another pid
    words = [re.sub("%[%p]", lambda found: pid if found[0] == "%p" else found[0], word) for word in start[3:]]
    program = os.path.join(folder, os.path.basename(sys.executable))
    status, line = attempt([*start[:3], "-o", f"memstow.%n.{pid}.mst", *words, "--", program])
    return None if status == NOT_FOUND else line


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


def plan():
    """The words to start memstow with, and a remark for the log; or (None, the reason why ComfyUI cannot be started
    under memstow). The function takes a second or two, because it starts trial processes."""
    path = command()
    if path is None:
        return None, "the command memstow was not found (docs/install.md)"
    try:
        options = shlex.split(os.environ.get("MEMSTOW_OPTIONS", ""))
    except ValueError as error: # a quote without its partner
        return None, f"MEMSTOW_OPTIONS cannot be read ({error})"
    try:
        chosen, remark = choose([path, "run", "--exec", *options])
    except OSError as error: # there is no folder of temporary files
        chosen, remark = None, str(error)
    return (chosen, remark) if chosen is not None else (None, f"cannot start this Python ({remark})")


def become(chosen, remark):
    """Replaces the program of this process by memstow, which then replaces itself by ComfyUI. `chosen`: the words to
    start memstow with. If the replacement fails, returns the reason."""
    log.info("memstow: starting ComfyUI again, under memstow%s", remark)
    sys.stdout.flush()
    sys.stderr.flush()
    words = getattr(sys, "orig_argv", [sys.executable, *sys.argv])
    os.environ[GUARD] = "1"
    try:
        os.execv(chosen[0], [*chosen, "--", sys.executable, *words[1:]])
    except OSError as error:
        del os.environ[GUARD]
        return f"{chosen[0]}: {error.strerror}"


def start():
    """Starts ComfyUI again if the user asked for it, and if that was not done already."""
    if is_preloaded():
        os.environ.pop(GUARD, None)
        return
    if sys.platform != "linux" or not is_wanted():
        return
    if os.environ.pop(GUARD, None):
        log.warning("memstow: ComfyUI was started under memstow, and the library is not there; it runs as always")
        return
    chosen, remark = plan()
    why = remark if chosen is None else become(chosen, remark)
    log.warning("memstow: %s; ComfyUI runs as always", why)
