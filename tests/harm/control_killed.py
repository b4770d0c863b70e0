# timeout: 200
"""Who asks a process that is being killed hears that it has ended, at whichever moment that is: not that it is not
tracked, or that it went on as another program. Its memory takes a while to go."""
import signal, time

from _control import *

TRUE = ("has ended", "no such process", "does not answer: it has ended")
heard = []
for turn in range(3):
    program = Program()
    program.tell("[owner('one'), block := bytearray(600 << 20)][0]") # written to: bytearray clears it
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
