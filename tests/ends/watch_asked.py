"""watch names a process that ignores SIGTERM while the process is still there. Under --end, watch sends it SIGKILL. If
watch itself gets SIGTERM, it passes the signal on to the program."""
import pathlib, re, signal, subprocess

from _ends import faults, pids
from support import MEMSTOW, is_gone, start, wait_for

program = faults()


def watch(*options):
    """Starts the program under watch, and returns when the faults are planted."""
    pathlib.Path("planted").unlink(missing_ok=True)
    split = options.index("here")
    process = start(MEMSTOW, "watch", "--quiet", *options[:split], "--", program, *options[split:], "planted",
                    stderr=subprocess.PIPE, text=True)
    wait_for(pathlib.Path("planted").exists, what="the program")
    return process


def pending(pid, number):
    """Whether the signal is still pending in the process, which blocks it and takes it later."""
    masks = re.findall(r"(?:SigPnd|ShdPnd):\s*(\w+)", pathlib.Path(f"/proc/{pid}/status").read_text())
    return any(int(mask, 16) >> number - 1 & 1 for mask in masks)


process = watch("--grace=2s", "--end", "--strict", "here", "ignore", "stuck")
process.send_signal(signal.SIGTERM)
text = process.communicate(timeout=60)[1]
assert process.returncode == 128 + signal.SIGKILL, (process.returncode, text)
assert re.search(r"\S+ s after faults was asked to end, 1 process is still there\n"
                 r"  faults, pid \d+ \(the program itself\)", text), text
assert re.search(r"\d+ stuck, since \S+ s: in futex", text) and "ended on SIGKILL" in text, text
assert is_gone(pids(text)[0])

# Under --end, watch waits five seconds before it sends SIGKILL. A second request ends this wait. The program would end
# by itself a little later.
process = watch("--grace=0s", "--end", "here", "ignore", "seconds=4")
for _ in range(2):
    process.send_signal(signal.SIGTERM)
    wait_for(lambda: not pending(process.pid, signal.SIGTERM), what="a request that is taken")
assert "ended on SIGKILL" in process.communicate(timeout=60)[1]

process = watch("here")
process.send_signal(signal.SIGTERM)
assert process.communicate(timeout=60)[1] == "" and process.returncode == 128 + signal.SIGTERM
