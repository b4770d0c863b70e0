"""Wrong usage gives one line, and exit code 2. Every subcommand has --help in 80 columns."""
import re

from _ledger import simple
from support import LIBRARY, ROOT, features, memstow, run

simple().save("x.mst")
for words, message in (
        (("help", "frobnicate"), "unknown command 'frobnicate'"),
        (("run", "-o", "-", "true"), "-o -: a ledger must be a file, so it cannot go to standard output"),
        (("run", "-o", "", "true"), "-o '': not a file name"),
        (("snapshot", "1", "-o", "-"), "-: it cannot go to standard output"),
        (("frobnicate",), "unknown command 'frobnicate'"), (("leaks",), "one FILE or PID is needed, or several FILEs"),
        (("leaks", "--by=model", "x.mst"), "unknown option --by"),
        (("leaks", "--top=-1", "x.mst"), "--top=-1: not a number"),
        *((("leaks", f"--min={size}", "x.mst"), f"--min={size}: not a size like 64K or 1M")
          for size in ("", "5%", "9x", "-1", "1K,2K")),
        *((("leaks", f"--runs={runs}", "--series=y", "1"), f"--runs={runs}: not a number above 0")
          for runs in ("0", "-1", "x", "9" * 12)), (("leaks", "--runs=3", "x.mst"), "--runs goes with --series"),
        (("leaks", "--series=y", "x.mst"), "--series goes with one PID"),
        (("leaks", "--series=y", "1", "2"), "--series goes with one PID"), (("report",), "one FILE or PID is needed"),
        (("report", "a", "b"), "one FILE or PID is needed"),
        (("report", "--colour", "x.mst"), "unknown option --colour"), (("report", "-z", "x.mst"), "unknown option -z"),
        (("report", "--json=1", "x.mst"), "--json takes no value"), (("report", "x.mst", "--by"), "--by needs a value"),
        (("report", "--by=colour", "x.mst"), "--by=colour: not model, node, run, site, module or thread"),
        (("report", "--top=-1", "x.mst"), "--top=-1: not a number"),
        (("report", "--peak", "--churn", "x.mst"), "--peak and --churn exclude each other"),
        (("report", "--json", "--folded", "x.mst"), "--json and --folded exclude each other"),
        *((("report", f"--by={view}", form, "x.mst"), f"--by={view}: {form} is by model, node or run")
          for view in ("site", "module", "thread") for form in ("--folded", "--pprof", "--speedscope")),
        *((("report", f"--by={view}", "--csv", "x.mst"), f"--by={view}: --csv is by site")
          for view in ("model", "node", "run", "module", "thread")),
        *((("report", f"--by={view}", "--massif", "x.mst"), f"--by={view}: --massif is by site")
          for view in ("model", "node", "run", "module", "thread")),
        (("report", "--massif"), "one FILE or PID is needed"),
        (("report", "--massif", "--top=3", "x.mst"), "--top does not go with --massif: --min does"),
        *((("report", "--massif", measure, "x.mst"), "--massif has what is live, and the peak: no other measure")
          for measure in ("--peak", "--churn")),
        *((("report", "--csv", form, "x.mst"), f"--csv and {form} exclude each other")
          for form in ("--json", "--html", "--speedscope", "--folded")),
        *((("report", option, *form, "x.mst"),
           f"{option.partition('=')[0]} goes with --folded, --pprof, --speedscope or --massif")
          for option in ("--python", "--min=1K") for form in ((), ("--json",), ("--csv",))),
        *((("report", f"--min={size}", "--folded", "x.mst"), f"--min={size}: not a size like 64K or 1M")
          for size in ("", "5%", "-1", "x", "9x", "1K,2K", "9" * 15 + "T")),
        (("report", "--min=1K", "--top=3", "--folded", "x.mst"), "--min and --top exclude each other"),
        (("diff", "x.mst"), "two files or PIDs are needed"),
        *((("diff", f"--by={view}", form, "x.mst", "x.mst"), f"--by={view}: {form} is by model, node or run")
          for view in ("site", "module", "thread") for form in ("--folded", "--pprof")),
        *((("diff", "--folded", form, "x.mst", "x.mst"), f"--folded and {form} exclude each other")
          for form in ("--json", "--html", "--pprof")),
        *((("diff", "--python", *form, "x.mst", "x.mst"), "--python goes with --folded or --pprof")
          for form in ((), ("--json",), ("--html",))),
        (("diff", "-o", "y", "--folded", "x.mst", "x.mst"), "-o goes with --html"),
        (("diff", "--folded", "--min=1", "x.mst", "x.mst"), "unknown option --min"),
        (("diff", "--fail-over=5MiBs", "x.mst", "x.mst"), "--fail-over=5MiBs: not SIZE, PCT% or COUNTx"),
        (("check", "true"), "--baseline or --comfy is needed"), (("check", "--baseline=x"), "no command given"),
        *((("check", option, *more, "true"), f"{option} needs =FILE")
          for option in ("--html", "--baseline", "--comfy", "--suppressions") for more in (("--",), ("--json",))),
        (("check", "--keep", "--", "true"), "--keep needs =DIR"),
        (("check", "--runs=0", "true"), "--runs=0: not a number from 1 to 10000"),
        (("check", "--colour", "true"), "unknown option --colour"), (("snapshot", "x.mst"), "x.mst is not a PID"),
        (("decisions",), "one FILE or PID is needed"), (("decisions", "x.mst", "x.mst"), "one FILE or PID is needed"),
        (("decisions", "x.mst", "--by=model"), "unknown option --by"),
        (("decisions", "x.mst", "--check=all"), "--check takes no value"), (("ps", "x"), "no argument is needed"),
        (("owners",), "one FILE or PID is needed"), (("owners", "--by=model", "x.mst"), "unknown option --by"),
        (("stow", "1"), "a PID and an OWNER are needed"), (("restore", "x.mst", "1"), "x.mst is not a PID"),
        (("release", "1", "2", "3"), "a PID and an OWNER are needed"),
        (("stow", "--reason=x", "1", "2"), "unknown option --reason"),
        (("release", "1", "2", "--cancel"), "unknown option --cancel"),
        (("stow", "--cancel"), "a PID is needed, and at most one OWNER"),
        (("restore", "--cancel", "1", "2", "3"), "a PID is needed, and at most one OWNER"),
        (("trigger",), "one PID is needed"), (("trigger", "1", "2"), "one PID is needed"),
        (("trigger", "0"), "0 is not a PID"),
        (("trigger", "--reason=a\nb", "1"), "--reason: not a line of text of at most 255 bytes"),
        (("trigger", "--reason=" + "x" * 256, "1"), "--reason: not a line of text of at most 255 bytes"),
        *((("trigger", f"--timeout={seconds}", "1"), f"--timeout={seconds}: not a number of seconds above 0")
          for seconds in ("0", "-1", "x", "5s", "inf", "nan", "1e999", " 1")),
        (("trigger", "--timeout"), "--timeout needs a value"), (("run",), "no command given"),
        *(((command, "--server-mode=a,", "x"), "--server-mode: a name is empty, or there are more than 64")
          for command in ("watch", "lifecycle")), (("watch", "--pid=x"), "--pid=x: not a PID"),
        *((("watch", "--pid=1", *more), "--pid goes with --grace only")
          for more in (("true",), ("--end",), ("--stacks=none",))),
        (("run", "--stacks=some", "true"), "--stacks=some: not full, none or sample[:BYTES], 1 to 1T"),
        *((("run", f"--stacks=sample{size}", "true"),
           f"--stacks=sample{size}: not full, none or sample[:BYTES], 1 to 1T")
          for size in (":", ":0", ":0.5", ":-1", ":1.1T", ":4P", ":5%", ":9x", ":64K,1M", ":64Q", ":0x10", ":nan",
                       "512K", "d")), (("run", "--allocator=mine", "true"), "--allocator=mine: not keep or mimalloc"),
        (("run", "--follow=a,,b", "true"), "--follow=a,,b: not all, none or names"),
        (("run", "--follow", "--", "true"), "--follow=--: not all, none or names"),
        *((("run", f"--stack-memory={size}", "true"), f"--stack-memory={size}: not a size like 64M or 1G")
          for size in ("0", "1", "63K", "65535", "064M", "-1", "64X", "5%", "5x", "M", "1M,2M", "inf", "0.5",
                       "9" * 15 + "T")), (("run", "--stack-memory=", "true"), "--stack-memory=: not a size"),
        (("run", "--stack-memory"), "--stack-memory needs a value"),
        (("run", "--python-objects=yes", "true"), "--python-objects takes no value"),
        *((("run", f"--pressure={limit}", "true"), f"--pressure={limit}: not 90%, 4G, psi:20% or some of them")
          for limit in ("", "kept", "0", "101%", "90%,", "psi:20", "4GB", "1.5G", "most")),
        *((("run", f"--idle={seconds}", "true"), f"--idle={seconds}: not a number of seconds")
          for seconds in ("", "0", "-1", "5m", "1.5", "9" * 12)), (("reap", "--kill"), "unknown option --kill"),
        (("reap", "--end=1"), "--end takes no value"), (("lifecycle",), "one SCENARIO is needed"),
        *((("lifecycle", f"--test={tests}", "x"), f"--test={tests}: not some of T1 to T6")
          for tests in ("", "T", "T0", "T7", "T1,", "T1;T2", "1", "T11")),
        *((("lifecycle", f"--repeat={number}", "x"), f"--repeat={number}: not a number from 1 to 9999")
          for number in ("", "0", "-1", "x", "10000", "1.5")),
        (("lifecycle", "--observe=long", "x"), "--observe=long: not a time like 60s"), (("watch",), "no command given"),
        *((("watch", f"--grace={time}", "true"), f"--grace={time}: not a time like 60s, 500ms or 2m")
          for time in ("", "x", "-1s", "60x", "1e3", "25h", "1.2.3s", "9" * 20)),
        (("watch", "--strict=1", "true"), "--strict takes no value"),
        (("watch", "--stacks=some", "true"), "--stacks=some: not full, none or sample[:BYTES], 1 to 1T"),
        (("run", "-o", "%z.mst", "true"), "-o %z.mst: only %n, %p, %x and %% are known")):
    done = memstow(*words, status=2)
    assert done.stderr.startswith("memstow: ") and message in done.stderr, (words, done.stderr)
    assert done.stderr.count("\n") == 1 and not done.stdout, (words, done.stderr)
alone, help = memstow(status=2), memstow("--help").stdout
assert not alone.stdout
assert alone.stderr.startswith("memstow: no command given (see 'memstow --help')\nusage: memstow COMMAND ")
assert help.startswith(alone.stderr.split("\n", 1)[1]), alone.stderr
for command in ("", "run", "watch", "report", "diff", "decisions", "snapshot", "ps", "owners", "stow", "restore",
                "release", "trigger", "reap", "lifecycle", "leaks", "check"):
    text = memstow(*command.split(), "--help").stdout
    assert text.startswith("usage: memstow") and max(map(len, text.split("\n"))) <= 80, command
    if command:
        assert memstow("help", command).stdout == text, command
assert memstow("--version").stdout == memstow("-V").stdout and memstow("-V").stdout.startswith("memstow ")
told = dict(line.split(maxsplit=1) for line in memstow("--version").stdout.splitlines())
assert list(told) == ["memstow", "commit", "ABI", "files", "allocators", "probes", "libraries"], told
header = (ROOT / "include/memstow.h").read_text()
major, minor = map(int, told["ABI"].split("."))
assert f"MEMSTOW_ABI_VERSION 0x{major:04x}{minor:04X}u" in header, told
numbers = dict(re.findall(r"SNAP_(MAJOR|MINOR) = (\d+)", (ROOT / "preload/shared/snapshot.h").read_text()))
assert told["files"] == f"{numbers['MAJOR']}.{numbers['MINOR']}", (told, numbers)
assert told["memstow"] in re.findall(r"^project\(memstow VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text(), re.M)
assert ("mimalloc" in told["allocators"]) == features()["mimalloc"] and "glibc" in told["allocators"], told
probed = run("readelf", "--notes", "--wide", LIBRARY).stdout.count("Provider: otel_memory")
assert (told["probes"] == "otel_memory") == (probed > 0), (told, probed)
if (ROOT / ".git").exists(): # the commit of the last build: it may be older than the tree, but the repository has it
    commit = told["commit"].removesuffix("-dirty")
    assert run("git", "-C", ROOT, "cat-file", "-t", commit).stdout == "commit\n" and len(commit) == 12, told
else:
    assert told["commit"].startswith("unknown"), told
assert memstow("help").stdout == memstow("--help").stdout
assert "3 processes\ncannot be looked at" in memstow("ps", "--help").stdout
for words in (("report", ""), ("diff", "", ""), ("owners", ""), ("leaks", "")):
    assert memstow(*words, status=3).stderr == "memstow: '': not a file name, and no PID\n"
