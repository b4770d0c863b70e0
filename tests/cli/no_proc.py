"""Without /proc, nothing can be said about processes. The commands say so and exit with 3, but `run` works."""
import pathlib, shlex, subprocess

import support

if subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode:
    support.skip("namespaces cannot be made here")
if support.features()["sanitize"]:
    support.skip("sanitizers need /proc themselves")
tracked = support.start(support.MEMSTOW, "run", "--exec", "-o", "tracked.mst", "--", "sleep", "100")
pid = str(tracked.pid)
support.wait_for(lambda: pid in support.memstow("ps").stdout, what="the ledger of sleep")


def without_proc(*argv, status):
    """Runs the command from a shell in whose mount namespace /proc is not mounted."""
    command = f"umount -l /proc && exec {shlex.join(map(str, argv))}"
    return support.run("unshare", "-m", "sh", "-c", command, status=status)


for words in (["ps"], ["ps", "--json"], ["metrics", "--all"]):
    done = without_proc(support.MEMSTOW, *words, status=3)
    assert done.stderr == "memstow: /proc cannot be read: it is not mounted\n", done
    assert not done.stdout, done
for words in (["report", pid], ["snapshot", pid], ["owners", pid], ["stow", pid, "1"]):
    done = without_proc(support.MEMSTOW, *words, status=3)
    assert done.stderr == f"memstow: process {pid} cannot be looked at: /proc is not mounted\n", done
# the library is found beside the command, also if the command is named by a relative path or a link
link = pathlib.Path("link")
link.symlink_to(support.MEMSTOW)
for command in (support.MEMSTOW, "./link"):
    file = pathlib.Path("run.mst")
    done = without_proc("env", "-u", "MEMSTOW_LIBRARY", command, "run", "-o", file, "--", "true", status=0)
    assert file.exists() and "peak" in done.stderr, done
    file.unlink()
