"""A bare root of a Debian release: debootstrap's least system with Python."""
import shlex, subprocess, sys

import support

# The loader needs /proc for $ORIGIN, by which it finds the command's libraries. The test's folder and this tree have
# the same paths inside the root as outside. Inside, the tree is read-only.
ENTER = """
mount -t proc proc "$ROOT/proc"
mkdir -p "$ROOT$HERE" "$ROOT$TREE"
mount --bind "$HERE" "$ROOT$HERE"
mount --bind "$TREE" "$ROOT$TREE"
mount -o remount,bind,ro "$ROOT$TREE"
exec chroot "$ROOT" sh -c 'cd "$0" && exec "$@"' "$HERE" "$@"
"""
PATH = "/v/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class Bare:
    def __init__(self, suite):
        self.folder = support.HERE / suite
        made = subprocess.run(["debootstrap", "--variant=minbase", "--include=python3-venv,python3-pip", suite,
                               self.folder], capture_output=True, text=True)
        self.why_not = (made.stdout + made.stderr).strip().splitlines()[-1] if made.returncode else None

    def run(self, *command, **options):
        """Runs a command inside the root. The command begins in the test's folder. /v is the Python environment of the
        root."""
        return support.run(*self.enter(), *command, env={"PATH": PATH, "HOME": "/root", "LC_ALL": "C.UTF-8"}, **options)

    def enter(self):
        places = {"ROOT": self.folder, "HERE": support.HERE, "TREE": support.ROOT}
        return ["unshare", "--mount", "env", *(f"{name}={place}" for name, place in places.items()), "sh", "-ec", ENTER,
                "sh"]

    def command(self, name):
        """A command outside of the root that runs this command in it."""
        path = support.HERE / f"{self.folder.name}-{name}"
        path.write_text(f"#!/bin/sh\nPATH={PATH}\nexec {shlex.join(map(str, self.enter()))} {name} \"$@\"\n")
        path.chmod(0o755)
        return path

    def install_packages(self, *specs):
        """Installs Python packages for /v. The pip outside of the root installs them, because that pip's
        configuration says where packages are found. Returns None, or why the installation failed."""
        version = self.run("/v/bin/python", "-c", "import sys; print('%d.%d' % sys.version_info[:2])").stdout.strip()
        done = support.run(sys.executable, "-m", "pip", "-q", "--disable-pip-version-check", "install",
                           "--only-binary=:all:", "--python-version", version, "--target", self.folder / "packages",
                           *specs, status=None, timeout=1500)
        [site] = self.folder.glob("v/lib/python3.*/site-packages")
        (site / "packages.pth").write_text("/packages\n")
        errors = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
        return (errors or ["pip failed"])[0] if done.returncode else None
