"""A program that cannot be tracked runs as it would without us, and a line says so. A program that cannot run has the
exit status that a shell gives."""
import os, pathlib, shutil

import support

hello = '#include <stdio.h>\nint main(void) { puts("hello"); return 9; }\n'


def said(*argv, status, words=(), output="", options=()):
    done = support.memstow("run", "-o", "out.mst", *options, "--", *argv, status=status)
    assert done.stdout == output, done
    for word in words:
        assert word in done.stderr, (argv, word, done.stderr)
    assert len(done.stderr.split("\n")) < 12, done.stderr


said("./absent", status=127, words=["./absent: not found"])
said("absent-from-path", status=127, words=["not found"])
pathlib.Path("plain").write_text("no program\n")
said("./plain", status=126, words=["not executable"])
said("/", status=126, words=["is a directory"])
pathlib.Path("no-interpreter").write_text("#!/nowhere/at-all\n")
os.chmod("no-interpreter", 0o755)
alone = support.run("sh", "-c", "./no-interpreter", status=None)
done = support.memstow("run", "-o", "out.mst", "--", "./no-interpreter", status=None)
assert done.returncode in (126, 127), done
pathlib.Path("script").write_text("#!/bin/sh\necho hello; exit 9\n")
os.chmod("script", 0o755)
said("./script", status=9, output="hello\n")
said("sh", "-c", "kill -9 $$", status=137)

static = support.compile(hello, "static", flags=("-static",))
said(static, status=9, output="hello\n", words=["static", "cannot be preloaded"])
done = support.memstow("run", "--quiet", "-o", "quiet.mst", "--", static, status=9)
assert "cannot be preloaded" in done.stderr and not pathlib.Path("quiet.mst").exists(), done

dynamic = support.compile(hello, "dynamic", flags=())
said(dynamic, status=9, output="hello\n", words=["peak"])
done = support.run("cc", "-m32", "program.c", "-o", "narrow", status=None) if shutil.which("cc") else None
if done and done.returncode == 0:
    said("./narrow", status=9, output="hello\n", words=["cannot be preloaded"])
