# needs: deb:musl-tools
"""A musl program cannot be preloaded: it runs as without us, and a line says so."""
import shutil

import support

if not shutil.which("musl-gcc"):
    support.skip("musl-gcc is missing")
support.HERE.joinpath("hello.c").write_text('#include <stdio.h>\nint main(void) { puts("hello"); return 9; }\n')
support.run("musl-gcc", "hello.c", "-o", "hello")
done = support.memstow("run", "-o", "out.mst", "--", "./hello", status=9)
alone = support.run("./hello", status=9)
assert done.stdout == alone.stdout == "hello\n", done
assert "musl" in done.stderr and "cannot be preloaded" in done.stderr, done.stderr
assert done.stderr.count("Error") == 0, done.stderr
