"""If a request comes right after the first owner was registered, it waits for the socket, which a thread opens a moment
later."""
import fcntl, threading

from _control import *

program = Program()
folder = program.runtime / "memstow"
folder.mkdir(mode=0o700)
held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
fcntl.flock(held, fcntl.LOCK_EX) # the thread waits for this, up to half a second
program.tell("owner('a')")
later = threading.Timer(0.2, fcntl.flock, (held, fcntl.LOCK_UN))
later.start()
assert not program.socket_path().exists()
program.ask("release", "a")
later.join()
program.end()
