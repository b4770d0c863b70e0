"""A terminal of a given width, for commands whose output depends on it."""
import fcntl, os, pty, struct, subprocess, termios, threading

from support import skip

END = b"\x00end\x00"


def need():
    """Skips the test if there is no terminal."""
    try:
        [os.close(end) for end in pty.openpty()]
    except OSError as error:
        skip(f"no pseudo terminal: {error}")


def shown(columns, *argv):
    """The output of a command on a terminal of this width. The terminal stays open until an end mark has come back,
    because a terminal may lose its content when its last writer closes it."""
    terminal, end = pty.openpty()
    try:
        fcntl.ioctl(end, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        child = subprocess.Popen(argv, stdin=end, stdout=end, stderr=end, start_new_session=True,
                                 preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        mark = threading.Thread(target=lambda: (child.wait(), os.write(end, END)))
        mark.start()
        written = b""
        while not written.endswith(END):
            written += os.read(terminal, 4096)
        mark.join()
    finally:
        os.close(terminal), os.close(end)
    return written.removesuffix(END).decode()
