"""A program on a pseudo terminal, and what it shows there. The screen is a model of the few sequences that ncurses
writes for TERM=xterm-256color; any other sequence is an error, so that nothing is passed over."""
import atexit, codecs, fcntl, os, pathlib, pty, re, select, signal, struct, subprocess, termios, time

CONTROL = re.compile(r"\x1b\[([?>]?)([\d;]*)([@A-Za-z])|\x1b([()][0AB]|[=>78M])|\x1b\][^\x07]*\x07", re.S)


class Screen:
    def __init__(self, lines, columns):
        self.resize(lines, columns)
        self.row = self.column = 0
        self.alternate = False
        self.colours = set() # SGR parameters that were seen
        self.rest = ""
        self.decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def resize(self, lines, columns):
        self.lines, self.columns = lines, columns
        self.cells = [[" "] * columns for _ in range(lines)]
        self.top, self.bottom = 0, lines - 1
        self.row = self.column = 0

    def text(self):
        return ["".join(line).rstrip() for line in self.cells]

    def feed(self, data):
        text = self.rest + self.decoder.decode(data)
        self.rest, at = "", 0
        while at < len(text):
            if text[at] != "\x1b":
                self.character(text[at])
                at += 1
                continue
            found = CONTROL.match(text, at)
            if not found:
                assert len(text) - at < 40, f"a sequence that the model does not know: {text[at:at + 40]!r}"
                self.rest = text[at:]
                return
            if found[3]:
                self.control(found[1], [int(n or 0) for n in found[2].split(";")], found[3])
            elif found[4] == "M":
                self.scroll(-1) if self.row == self.top else self.go(self.row - 1, self.column)
            at = found.end()

    def go(self, row, column):
        self.row = min(max(row, 0), self.lines - 1)
        self.column = min(max(column, 0), self.columns - 1)

    def character(self, c):
        if c == "\r":
            self.column = 0
        elif c == "\n":
            self.scroll(1) if self.row == self.bottom else self.go(self.row + 1, self.column)
        elif c == "\b":
            self.go(self.row, self.column - 1)
        elif c == "\t":
            self.go(self.row, (self.column // 8 + 1) * 8)
        elif c not in "\x07\x0e\x0f\x00":
            assert c >= " ", f"a control character on the screen: {c!r}"
            if self.column >= self.columns:
                self.column = 0
                self.scroll(1) if self.row == self.bottom else self.go(self.row + 1, 0)
            self.cells[self.row][self.column] = self.last = c
            self.column += 1

    def scroll(self, by):
        part = self.cells[self.top:self.bottom + 1]
        blank = [[" "] * self.columns for _ in range(min(abs(by), len(part)))]
        self.cells[self.top:self.bottom + 1] = part[by:] + blank if by > 0 else blank + part[:len(part) + by]

    def erase(self, row, first, end):
        self.cells[row][first:end] = [" "] * (min(end, self.columns) - first)

    def control(self, mark, numbers, kind):
        n, line = max(numbers[0], 1), self.cells[self.row]
        if kind in "hl" and mark:
            if 1049 in numbers:
                self.alternate = kind == "h"
        elif kind == "H":
            self.go(n - 1, (numbers[1] if len(numbers) > 1 and numbers[1] else 1) - 1)
        elif kind == "m":
            self.colours.update(numbers)
        elif kind == "J":
            assert numbers[0] in (0, 2), numbers
            if numbers[0] == 0:
                self.erase(self.row, self.column, self.columns)
            for row in range(self.row + 1 if numbers[0] == 0 else 0, self.lines):
                self.erase(row, 0, self.columns)
        elif kind == "K":
            first, end = ((self.column, self.columns), (0, self.column + 1), (0, self.columns))[numbers[0]]
            self.erase(self.row, first, end)
        elif kind == "X":
            self.erase(self.row, self.column, self.column + n)
        elif kind == "P":
            gone = min(n, self.columns - self.column)
            self.cells[self.row] = line[:self.column] + line[self.column + gone:] + [" "] * gone
        elif kind == "@":
            self.cells[self.row] = (line[:self.column] + [" "] * n + line[self.column:])[:self.columns]
        elif kind in "LM":
            top, self.top = self.top, self.row
            self.scroll(n if kind == "M" else -n)
            self.top = top
        elif kind in "ST":
            self.scroll(n if kind == "S" else -n)
        elif kind == "b":
            for _ in range(n):
                self.character(self.last)
        elif kind in "ABCD":
            self.go(self.row + {"A": -n, "B": n}.get(kind, 0), self.column + {"C": n, "D": -n}.get(kind, 0))
        elif kind == "G":
            self.go(self.row, n - 1)
        elif kind == "d":
            self.go(n - 1, self.column)
        elif kind == "r":
            self.top, self.bottom = (n - 1, numbers[1] - 1) if len(numbers) > 1 else (0, self.lines - 1)
            self.go(0, 0)
        else:
            assert kind in "tlhnc", f"a sequence that the model does not know: {mark}{numbers}{kind}"


class Driven:
    """A program on a terminal of its own. `environment` has variables that are added to the present environment. A
    variable whose value is None is removed from it."""

    def __init__(self, *argv, lines=30, columns=120, **environment):
        self.screen = Screen(lines, columns)
        self.terminal, self.end = pty.openpty()
        self.before = termios.tcgetattr(self.end)
        self.size(lines, columns)
        # ThreadSanitizer reports that ncurses' own signal handlers change errno. memstow cannot mend that.
        pathlib.Path("ncurses.suppressions").write_text("signal:libncurses\n")
        variables = {**os.environ, "TERM": "xterm-256color",
                     "TSAN_OPTIONS": f"suppressions={pathlib.Path('ncurses.suppressions').resolve()}", **environment}
        variables.pop("LD_PRELOAD", None)
        variables = {name: value for name, value in variables.items() if value is not None}
        self.child = subprocess.Popen([str(a) for a in argv], stdin=self.end, stdout=self.end, stderr=self.end,
                                      start_new_session=True, env=variables,
                                      preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        atexit.register(lambda: (self.child.poll() is None and self.child.kill(), self.child.wait()))

    def size(self, lines, columns):
        fcntl.ioctl(self.terminal, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def resize(self, lines, columns):
        self.read()
        self.screen.resize(lines, columns)
        self.size(lines, columns)
        os.kill(self.child.pid, signal.SIGWINCH)

    def read(self, seconds=0.0):
        while select.select([self.terminal], [], [], seconds)[0]:
            self.screen.feed(os.read(self.terminal, 65536))
            seconds = 0

    def press(self, keys):
        os.write(self.terminal, keys.encode())

    def wait(self, condition, what="it", seconds=60):
        """Waits until condition(lines of the screen) is true, and returns its value."""
        end = time.monotonic() + seconds
        while not (value := condition(self.screen.text())):
            shown = "\n".join(self.screen.text())
            assert time.monotonic() < end, f"{what} did not come within {seconds} s:\n{shown}"
            self.read(0.05)
        return value

    def see(self, pattern, seconds=60):
        """Waits until a line matches; returns the match."""
        return self.wait(lambda lines: next(filter(None, (re.search(pattern, line) for line in lines)), None),
                         what=f"/{pattern}/", seconds=seconds)

    def finish(self, status=0, seconds=60):
        """Waits until the program ends. Its exit status must be `status`, and the terminal must be as it was before."""
        end = time.monotonic() + seconds
        while self.child.poll() is None:
            assert time.monotonic() < end, "it does not end:\n" + "\n".join(self.screen.text())
            self.read(0.05)
        self.read(0.05)
        assert self.child.returncode == status, (self.child.returncode, self.screen.text())
        assert termios.tcgetattr(self.end) == self.before, "the terminal is not as it was"
        assert not self.screen.alternate, "the terminal still shows the other screen"
