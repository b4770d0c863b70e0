"""A terminal of a given width, for commands whose output depends on it."""
import fcntl, os, pty, struct, termios

from support import skip


def need():
    """Skips the test where there is none to be had."""
    try:
        [os.close(end) for end in pty.openpty()]
    except OSError as error:
        skip(f"no pseudo terminal: {error}")


def shown(columns, *argv):
    """What a command writes to a terminal of so many columns."""
    pid, terminal = pty.fork()
    if pid == 0:
        fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        os.execv(argv[0], argv)
    written = b""
    try:
        while data := os.read(terminal, 4096):
            written += data
    except OSError: # the terminal has no writer any more
        pass
    os.waitpid(pid, 0)
    return written.decode()
