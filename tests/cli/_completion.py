"""What a shell's completion of memstow must offer; each shell has its own test."""
import re

import support


def check(complete):
    """complete(line) returns the words that the shell offers at the end of the line. They are whole words, not only the
    part that the line lacks."""
    for name in ("this.mst", "that.mst", "memory.txt"):
        (support.HERE / name).write_text("")
    commands = set(re.findall(r"^  ([a-z]+)  +\S", support.memstow("--help").stdout, re.M))
    assert len(commands) > 15

    def offers(line, *words):
        found = complete(line)
        assert set(words) <= found, (line, found)
        return found

    def offers_only(line, *words):
        assert complete(line) == set(words), (line, complete(line))

    # --- commands
    offers_only("memstow rep", "report")
    assert offers("memstow ", *commands, "help").isdisjoint({"this.mst"})
    offers_only("memstow --ver", "--version")
    offers_only("memstow help trig", "trigger")

    # --- options: all that the command's help has
    for command in ("run", "report", "diff", "check", "leaks"):
        listed = re.findall(r"^  +(?:-[a-z], )?(--[a-z][a-z-]*=?)", support.memstow(command, "--help").stdout, re.M)
        assert len(listed) > 4, command
        offers(f"memstow {command} --", *listed)
    offers("memstow run -", "-o", "--stacks=", "--quiet")
    offers_only("memstow report --folde", "--folded")
    assert not any(word.startswith("-") for word in complete("memstow report t"))

    # --- files, also after an option and behind its sign of equality
    for line in ("memstow report t", "memstow diff this.mst t", "memstow leaks t", "memstow run -o t"):
        found = offers(line)
        assert {"this.mst", "that.mst"} <= found and "memory.txt" not in found, (line, found)
    assert {word.rpartition("=")[2] for word in complete("memstow check --baseline=mem")} == {"memory.txt"}

    # --- processes that are tracked
    support.start(support.MEMSTOW, "run", "--quiet", "-o", "sleeps.mst", "--", "sleep", "100")
    pid = support.wait_for(lambda: re.search(rf'"pid":\s*(\d+)[^{{}}]*{re.escape(str(support.HERE))}/sleeps.mst',
                                             support.memstow("ps", "--json").stdout), what="a tracked process")[1]
    for command in ("report", "stow", "top", "metrics", "push"):
        offers(f"memstow {command} ", pid)

    # --- after `--`, the words of the program that is to run are offered, and no options of memstow
    offers_only("memstow run -- memstow rep", "report")
    offers_only("memstow run --quiet -- memstow report --folde", "--folded")
    assert complete("memstow run -- cat t") >= {"this.mst", "that.mst"}
    assert complete("memstow run -- cat --s").isdisjoint({"--stacks=", "--stack-memory="})
