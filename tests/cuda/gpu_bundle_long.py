#!/usr/bin/env python3
# needs: root deb:debootstrap
# timeout: 1200
# long
"""The folder that tests/gpu/carry makes runs where there is nothing but Python: on bare roots of Debian 12 and 13,
which have different versions of glibc, and whose package manager has been removed. The driver is the simulated one, a
test double."""
import shutil, subprocess

import support, _simulated

PARTS = ("facts", "costs", "moves", "graphs", "routes", "cupti", "speed")

support.run(support.ROOT / "tests/gpu/carry", support.HERE / "carried", "--build", support.BUILD)


def bare(suite):
    root = support.HERE / suite
    made = subprocess.run(["debootstrap", "--variant=minbase", "--include=python3", suite, root], capture_output=True,
                          text=True)
    return (root, "") if made.returncode == 0 else (None, (made.stdout + made.stderr).strip().splitlines()[-1])


def try_in(root):
    """The last line of the suite, and glibc's version."""
    for name in ("apt", "apt-get", "dpkg"):
        (root / "usr/bin" / name).unlink()
    support.run("tar", "xzf", support.HERE / "carried.tar.gz", "-C", root)
    shutil.copytree(_simulated.LIBRARIES, root / "double")
    script = """mount -t proc proc "$1"/proc && mount -t tmpfs none "$1"/dev/shm && exec chroot "$@" """
    command = ["/usr/bin/env", "-i", "PATH=/usr/bin:/bin", "LD_LIBRARY_PATH=/double:/double/13:/double/12",
               "/carried/tests/gpu/run", "--out", "/results", "--budget", "560", *PARTS]
    said = support.run("unshare", "-m", "sh", "-c", script, "sh", root, *command, timeout=600).stdout.splitlines()
    assert f"{len(PARTS)} passed, 0 failed, 0 skipped" in said and (root / "results.tar.gz").exists(), said
    return next(line for line in said if "glibc" in line)


outcomes = []
for suite in ("bookworm", "trixie"):
    root, why = bare(suite)
    outcomes.append(f"{suite}: " + (try_in(root) if root else f"not to be had here: {why}"))
print("\n".join(outcomes))
if not any("glibc" in outcome for outcome in outcomes):
    support.skip("; ".join(outcomes))
