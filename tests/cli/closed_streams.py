# needs: cc
"""A command that is started with closed standard streams prints the same as with open ones, because none of its own
files and sockets gets the number of a standard stream."""
import os

import support

program = support.compile("#include <stdlib.h>\nint main(void) { return !malloc(100000); }\n", "hold",
                          flags=("-O0", "-g", "-w"))
support.track(program)
whole = support.memstow("report", "out.mst").stdout
assert "main" in whole


def close(numbers):
    return lambda: [os.close(number) for number in numbers]


for numbers in ((0,), (2,), (0, 2)):
    said = support.memstow("report", "out.mst", preexec_fn=close(numbers)).stdout
    assert said == whole, (numbers, said)

# If standard error is closed, messages are lost. They do not go into the file that the command writes.
program.unlink()
for numbers in ((2,), (0, 2), (1, 2), (0, 1, 2)):
    support.memstow("report", "out.mst", "--html", "-o", "page.html", preexec_fn=close(numbers))
    page = open("page.html").read()
    assert page.startswith("<!DOCTYPE html>") and page.rstrip().endswith("</html>"), numbers
    assert "memstow: " not in page, numbers

# A program that is started finds the same streams closed.
streams = support.compile("#include <fcntl.h>\n#include <stdio.h>\nint main(void) {\n"
                          "for (int fd = 0; fd < 3; fd++) printf(\"%d\", fcntl(fd, F_GETFD));\n return 0; }\n",
                          "streams")
for numbers in ((), (0,), (2,), (0, 2)):
    alone = support.run(streams, preexec_fn=close(numbers)).stdout
    assert support.track(streams, preexec_fn=close(numbers)).stdout == alone, numbers
