"""Finds the installed Pythons that preload/stacks/python.c can read, and builds a library that shows what it reads."""
import glob, os, pathlib, re, sys

import support

VERSIONS = ["3.11", "3.12", "3.13", "3.14"]
PLACES = ["/usr/bin/python3.*", "/usr/local/bin/python3.*", "~/.pyenv/versions/*/bin/python3",
          "~/.local/share/uv/python/*/bin/python3"]
SOURCES = ["base/arena", "base/lock", "base/seal", "base/symbol", "base/words", "ledger/ledger", "ledger/ledger_file",
           "ledger/ledger_strings", "ledger/series", "shared/os", "shared/utf8", "stacks/python",
           "stacks/python_code", "stacks/python_layout", "stacks/python_record"]
HERE = support.ROOT / "tests/real"
PRELOAD = support.ROOT / "preload"


def version_of(python):
    done = support.run(python, "-c", "import sys; print('%d.%d' % sys.version_info[:2])", status=None, timeout=20)
    return done.stdout.strip() if done.returncode == 0 else ""


def pythons():
    """{real path: version} of the Pythons that can be read."""
    found = [sys.executable, *(p for place in PLACES for p in sorted(glob.glob(os.path.expanduser(place))))]
    real = {os.path.realpath(p) for p in found if re.fullmatch(r"python3?(\.\d+)?", pathlib.Path(p).name)}
    return {p: v for p in sorted(real) if (v := version_of(p)) in VERSIONS}


def ask(python, expression):
    """The value of an expression in that Python, as text."""
    done = support.run(python, "-c", f"import sys, sysconfig; print({expression})", timeout=20)
    return done.stdout.strip()


def build_probe():
    probe = support.HERE / "probe.so"
    support.run("cc", "-D_GNU_SOURCE", "-O2", "-g", "-fPIC", "-shared", "-fvisibility=hidden", f"-I{support.ROOT}",
                "-o", probe, HERE / "_python_probe.c", *(PRELOAD / f"{name}.c" for name in SOURCES), "-lunwind",
                "-lpthread")
    return probe
