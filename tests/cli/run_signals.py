"""run forwards the signals that ask a program to end, and passes on how the program ended."""
import signal, subprocess
from support import MEMSTOW, expect_exit, start

script = "trap 'echo got; exit 7' {0}; echo ready; while :; do sleep 0.05; done"
for name, number in (("TERM", signal.SIGTERM), ("HUP", signal.SIGHUP), ("USR1", signal.SIGUSR1)):
    process = start(MEMSTOW, "run", "--quiet", "-o", "x.mst", "--", "sh", "-c", script.format(name),
                    stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "ready\n"
    process.send_signal(number)
    assert process.stdout.readline() == "got\n" and process.wait(20) == 7
process = start(MEMSTOW, "run", "--quiet", "-o", "x.mst", "--", "sh", "-c", "echo ready; sleep 1; exit 5",
                stdout=subprocess.PIPE, text=True)
process.stdout.readline()
process.send_signal(signal.SIGINT)  # the terminal sends it to the program itself
expect_exit(process, 5, seconds=20)
