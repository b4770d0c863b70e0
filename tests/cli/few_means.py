"""A command that lacks descriptors or memory says that, and blames no file and no process for it."""
import resource

import support

FEW, LITTLE = "Too many open files", "Cannot allocate memory"
if support.features()["sanitize"]:
    support.skip("sanitizers take more than is allowed here")
program = support.compile("#include <stdlib.h>\n#include <unistd.h>\n"
                          "int main(void) { for (int i = 0; i < 100; i++) malloc(10000); pause(); }\n", "hold",
                          flags=("-O0", "-g", "-w"))
process = support.start(support.MEMSTOW, "run", "--exec", "-o", "hold.mst", "--", program)
pid = str(process.pid)
support.wait_for(lambda: "main" in support.memstow("report", pid, status=None).stdout, what="its blocks")


def limited(limit, value, *words):
    return support.memstow(*words, status=None, preexec_fn=lambda: resource.setrlimit(limit, (value, value)))


def judge(done, reason):
    """Returns whether there was a complaint. There is at most one, and it gives this reason."""
    complaints = [line for line in done.stderr.split("\n") if line]
    assert all(reason in line for line in complaints) and len(complaints) <= 1, done
    assert done.returncode == 0 or (done.returncode == 3 and complaints), done
    return bool(complaints)


said = {"ps": 0, "report": 0}
for count in range(4, 12):
    done = limited(resource.RLIMIT_NOFILE, count, "ps")
    said["ps"] += judge(done, FEW)
    assert done.returncode or pid in done.stdout, (count, done)
    for subject in (pid, "hold.mst"):
        done = limited(resource.RLIMIT_NOFILE, count, "report", subject)
        said["report"] += judge(done, FEW)
        assert done.returncode or "hold" in done.stdout, (count, done)
assert all(said.values()), said
assert not judge(limited(resource.RLIMIT_NOFILE, 40, "report", "hold.mst"), FEW)
said = 0
for size in range(16, 41, 4):
    said += judge(limited(resource.RLIMIT_AS, size << 20, "report", "hold.mst"), LITTLE)
assert said
