"""The status line is cut to the terminal's width. It leaves the program's output whole, even incomplete lines."""
import re
import _terminal
from support import MEMSTOW, PYTHON

_terminal.need()


def shown(columns, script):
    """The output of a run on a terminal of this width."""
    return _terminal.shown(columns, MEMSTOW, "run", "-o", f"{columns}.mst", "--", PYTHON, "-Sc", script)


def screen(written, columns):
    """The lines that are left on the screen."""
    lines, row, column, saved = [[]], 0, 0, (0, 0)
    for number, code, single, char in re.findall(r"\x1b\[(\d*)([GK])|\x1b([78])|([^\x1b])", written):
        line = lines[row]
        if code == "G":
            column = int(number) - 1
        elif code == "K":
            del line[column:]
        elif single == "7":
            saved = row, column
        elif single == "8":
            row, column = saved
        elif char == "\r":
            column = 0
        elif char == "\n":
            row += 1
            lines += [[]] if row == len(lines) else []
        else:
            line.extend(" " * (column + 1 - len(line)))
            line[column] = char
            column += 1
            assert column <= columns, (written, columns)
    return ["".join(line).rstrip() for line in lines]


script = """
import sys, time
sys.stdout.write('ask: ')
sys.stdout.flush()
time.sleep(2.4)
print('answer')
"""
for columns in (80, 20):
    written = shown(columns, script)
    ticks = re.findall(r"\x1b7\x1b\[\d+G\x1b\[K\x1b\[\d+G(.*?)\x1b8", written)
    assert len(ticks) >= 3 and ticks[0].startswith("mem") and ticks[-1] == "", written
    assert all(len(tick) < columns for tick in ticks), ticks
    if columns == 80:
        assert re.fullmatch(r"memstow: [\d.]+ s, .+ live, peak .+", ticks[0]), ticks
        lines = screen(re.split(r"memstow: \S*python", written)[0], columns)
        assert re.fullmatch("ask: answer {20,}memstow: .*", lines[0]) and len(lines[0]) == 79, lines
        assert lines[1] == "", lines # and the end of the status line is empty
