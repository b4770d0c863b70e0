# needs: root
"""A setuid program ignores preloading. So it runs with its privileges, as without us, and a line says that it is
untracked."""
import os, pathlib

import support

if os.geteuid() != 0:
    support.skip("needs root, to make a setuid program")
program = support.compile(
    '#include <stdio.h>\n#include <unistd.h>\n'
    'int main(void) { printf("%d %d\\n", getuid(), geteuid()); return 6; }\n', "whoami2", flags=())
folder = pathlib.Path("shared").resolve()
folder.mkdir()
os.chmod(folder, 0o777)
os.chmod(program, 0o4755)
memstow = support.command_for_others()
alone = support.run(program, status=6, preexec_fn=support.as_nobody)
if alone.stdout != "65534 0\n":
    support.skip("setuid has no effect on this file system")
done = support.run(memstow, "run", "-o", folder / "out.mst", "--", program, status=6, preexec_fn=support.as_nobody)
assert done.stdout == alone.stdout, done
assert "setuid" in done.stderr and "untracked" in done.stderr, done.stderr
assert not (folder / "out.mst").exists()
done = support.run(memstow, "run", "-o", folder / "sh.mst", "--", "sh", "-c", f"{program}; exit 4", status=4,
                   preexec_fn=support.as_nobody)
assert done.stdout == alone.stdout and (folder / "sh.mst").exists(), done
# for root it is an ordinary program
support.track(program, status=6, file="root.mst")
assert support.report("root.mst")["process"]["state"] == "exited"
