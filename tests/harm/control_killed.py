# timeout: 200
"""A client that asks a process while it is killed is always told that the process has ended. It is never told that the
process is not tracked, or became another program. The process has much memory, so that its end takes a while."""
import signal, time

from _control import *

TRUE = ("has ended", "no such process", "does not answer: it has ended")
heard = []
for turn in range(3):
    program = Program()
    program.tell("[owner('one'), block := bytearray(600 << 20)][0]") # its pages exist: bytearray clears them
    program.tell("[block.__setitem__(i, 1) for i in range(0, len(block), 4096)][0]")
    program.listening()
    asked = []
    os.kill(program.pid, signal.SIGKILL)
    end = time.monotonic() + 0.5
    while time.monotonic() < end:
        asked.append(memstow("stow", program.pid, "one", status=3).stderr)
    program.process.wait()
    asked.append(memstow("trigger", program.pid, status=3).stderr)
    for words in asked:
        assert any(true in words for true in TRUE), words
    heard += [words.strip() for words in asked]
print({words: heard.count(words) for words in sorted(set(words.split(str(program.pid))[0] for words in heard))})
