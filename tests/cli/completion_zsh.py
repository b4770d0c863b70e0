#!/usr/bin/env python3
# needs: deb:zsh
"""zsh completes commands, options, files and processes, and the words of the program that is to run."""
import fcntl, os, pathlib, pty, shutil, termios, threading

import support, _terminal
from _completion import check

# A completion offers its words to zsh's compadd. The compadd below also notes in a file which of these words fit the
# line. Ctrl-N completes. The file gets its name `offered` last, so the test never reads an unfinished file.
SETTINGS = r"""
PS1='> ' fpath=("$COMPLETION" $fpath)
autoload -U compinit && compinit -u -D
compadd() {
    local -a fitting
    if (( ! $@[(I)-[OAD]] )); then
        builtin compadd -O fitting "$@"
        (( ! $#fitting )) || print -rl -- $fitting >>$HOME/writing
    fi
    builtin compadd "$@"
}
offer() {
    : >$HOME/writing
    _main_complete
    compstate[insert]= compstate[list]=
    mv $HOME/writing $HOME/offered
}
typed() { print -rn -- "$BUFFER" >$HOME/writing; mv $HOME/writing $HOME/offered }
zle -C offer complete-word offer
zle -N typed
bindkey '^N' offer
bindkey '^O' typed
bindkey '^U' kill-whole-line
zle-line-init() { : >$HOME/offered }
zle -N zle-line-init
"""

if not shutil.which("zsh"):
    support.skip("zsh is not installed")
_terminal.need()
(support.HERE / ".zshrc").write_text(SETTINGS)
environment = {**os.environ, "PATH": f"{pathlib.Path(support.MEMSTOW).parent}:{os.environ['PATH']}", "TERM": "dumb",
               "COMPLETION": str(support.ROOT / "tools/completion"), "HOME": str(support.HERE),
               "ZDOTDIR": str(support.HERE)}
terminal, end = pty.openpty()
shell = support.start("zsh", "-d", "-i", stdin=end, stdout=end, stderr=end, env=environment, start_new_session=True,
                      preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
shown = []


def read():
    while written := os.read(terminal, 4096):
        shown.append(written)


threading.Thread(target=read, daemon=True).start()
offered = support.HERE / "offered"


def answer():
    """What the shell wrote to the file. The file is removed, so that the next answer is a new one."""
    try:
        support.wait_for(offered.exists, what="an answer of zsh")
    except AssertionError:
        print(b"".join(shown).decode(errors="replace"))
        raise
    text = offered.read_text()
    offered.unlink()
    return text


def press(keys):
    os.write(terminal, keys)
    return answer()


def complete(line):
    return set(press(b"\x15" + line.encode() + b"\x0e").splitlines())


answer() # the first prompt is there
check(complete)

# What a user sees in the line after the Tab key.
for typed, expected in (("rep", "report "), ("run --quie", "run --quiet "), ("run --stacks", "run --stacks="),
                        ("report thi", "report this.mst "),
                        ("check --baseline=mem", "check --baseline=memory.txt ")):
    line = press(f"\x15memstow {typed}\t\x0f".encode())
    assert line == f"memstow {expected}", (typed, line)
