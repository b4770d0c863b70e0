"""`memstow check` replaces the baseline and the page (--html) by new files. These two may be read-only, but their
folder may not. A verdict, such as --json=FILE, is written into the file that is there, so this file may not be
read-only. If an output cannot be written, the check refuses before it runs anything."""
import os

import support

command, folder, work = support.command_for_others(), support.HERE / "folder", support.HERE / "work"
other = {"preexec_fn": support.as_nobody} if os.geteuid() == 0 else {}
for made in (folder, work):
    made.mkdir()
    made.chmod(0o777)


def check(*words, status=0):
    """Returns whether the program ran, and what was said."""
    said = support.run(command, "check", "--baseline=base.txt", "--runs=1", "--warm-up=0", *words, "--", "touch",
                       work / "ran", cwd=folder, status=status, env={**os.environ, "TMPDIR": str(work)}, **other).stderr
    ran = (work / "ran").exists()
    (work / "ran").unlink(missing_ok=True)
    return ran, said


check("--update-baseline")
for name in ("base.txt", "page.html", "verdict.json"):
    (folder / name).touch()
    (folder / name).chmod(0o444)
check("--update-baseline")
check("--html=page.html")
assert (folder / "page.html").read_text().startswith("<!DOCTYPE html>")
refused = (False, "memstow: verdict.json: Permission denied\n")
assert check("--json=verdict.json", status=3) == refused

(folder / "base.txt").chmod(0o666)
(folder / "page.html").chmod(0o666)
(folder / "verdict.json").chmod(0o666)
folder.chmod(0o555)
assert check("--update-baseline", status=3) == (False, "memstow: base.txt: Permission denied\n")
assert check("--html=page.html", status=3) == (False, "memstow: page.html: Permission denied\n")
assert check("--json=verdict.json")[0]
folder.chmod(0o755)
