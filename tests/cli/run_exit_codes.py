"""run passes on the exit code, and does not change the output."""
from support import memstow

for script, status in (("exit 0", 0), ("exit 1", 1), ("exit 42", 42), ("exit 255", 255), ("kill -9 $$", 137),
                       ("kill -TERM $$", 143)):
    memstow("run", "--quiet", "-o", "x.mst", "--", "sh", "-c", script, status=status)
done = memstow("run", "-o", "x.mst", "--", "sh", "-c", "cat; echo out; echo err >&2; exit 3", status=3, input="in\n")
assert done.stdout == "in\nout\n", done.stdout
assert done.stderr.startswith("err\nmemstow: sh exited with 3 after "), done.stderr
assert len(done.stderr.split("\n")) <= 14
assert all(len(line) <= 80 or "report" in line for line in done.stderr.split("\n"))
assert done.stderr.endswith("memstow report x.mst\n"), done.stderr
done = memstow("run", "--quiet", "-o", "x.mst", "sh", "-c", "echo $0 $@", "--json", "--", "-o")
assert (done.stdout, done.stderr) == ("--json -- -o\n", "")
