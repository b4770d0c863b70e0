# needs: cc
"""memstow check fails for a program that leaks. A program that does not leak passes after one run. Each kind of failure
has its own exit code."""
import json, os, pathlib, re, signal, subprocess
import support
from support import memstow

temporary = support.HERE / "tmp"
temporary.mkdir()
os.environ["TMPDIR"] = str(temporary)

SOURCE = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static void *kept[10000];
__attribute__((noinline)) void *cache_fill(size_t n) { return memset(malloc(n), 1, n); }
__attribute__((noinline)) void *leak(size_t n) { return memset(malloc(n), 1, n); }
int main(int argc, char **argv) { /* PROGRAM kilobytes [status [file]]: with a file, every second run has 300 KB more */
    puts("the program says");
    FILE *file = argc > 3 ? fopen(argv[3], "a") : NULL;
    if (file) fputc('x', file);
    int odd = file && ftell(file) % 2;
    if (file) fclose(file);
    for (int i = 0; i < 10 + 300 * odd; i++) kept[i] = cache_fill(1000);
    for (int i = 0; i < atoi(argv[1]); i++) kept[1000 + i] = leak(1024);
    return argc > 2 ? atoi(argv[2]) : 0;
}
"""
program = support.compile(SOURCE, "prog")


def check(*arguments, leak=0, status=0, options=(), **more):
    return memstow("check", *options, "--", program, leak, *arguments, status=status, **more)


# The baseline is text without paths of this machine. If it is written twice, the texts are equal.
done = check(options=("--baseline=base.txt", "--update-baseline", "--runs=2"))
assert done.stderr.count("the program says") == 3 and not done.stdout, "a warm-up and two runs; stdout is the verdict's"
assert re.search(r"memstow: base.txt written: \d+\.\d KiB, \d call sites, of 2 runs\n", done.stderr), done.stderr
text = pathlib.Path("base.txt").read_text()
assert 'site 10000 10 at "cache_fill@(program)" "main@(program)"\n' in text and str(support.HERE) not in text, text
assert "0x" not in text, text
check(options=("--baseline=base.txt", "--update-baseline", "--runs=2"))
assert pathlib.Path("base.txt").read_text() == text
assert not list(support.HERE.glob("memstow*")) and not list(support.HERE.glob("base.txt.*"))

# A baseline does not contain memstow's own functions, such as the hook of pthread_create.
THREAD = """
#include <pthread.h>
#include <unistd.h>
static void *wait(void *nothing) { pause(); return nothing; }
int main(void) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, wait, NULL)) return 1;
    _exit(0);
}
"""
memstow("check", "--baseline=thread.txt", "--update-baseline", "--runs=1", "--",
        support.compile(THREAD, "thread", ("-pthread",)))
text = pathlib.Path("thread.txt").read_text()
assert re.search(r'^site \d+ 1 at "\(libc\)@libc\.so\.6" "main@\(program\)"$', text,
                 re.M) and "libmemstow" not in text, text

# One run is enough if the result is fine. All runs are made if it is over a limit.
done = check(options=("--baseline=base.txt",))
assert done.stderr.count("the program says") == 2 and done.stdout.split("\n")[0].endswith("prog 0: fine"), done.stdout
done = check(leak=100, options=("--baseline=base.txt", "--runs=3", "--warm-up=0", "--fail-over=50K"), status=1)
assert done.stderr.count("the program says") == 3
assert done.stderr.endswith("memstow: all memory grew by 100.0 KiB and 100 blocks: over the limit of 50K;\n"
                            "         most of it (+100.0 KiB) at leak@(program) < main@(program)\n"), done.stderr
assert "leak@(program) < main@(program) (new)" in done.stdout and "cache_fill" not in done.stdout, done.stdout

# Limits for call sites. By the default rule, growth below 1 MiB is fine, growth over 5 MiB or 10 % is a failure, and
# other growth gets a warning.
check(leak=100, options=("--baseline=base.txt", "--runs=1", "--fail-over=site:99K"), status=1)
check(leak=100, options=("--baseline=base.txt", "--runs=1", "--fail-over=site:100K,site:100x"))
check(leak=1000, options=("--baseline=base.txt", "--runs=1"))
check(leak=1100, options=("--baseline=base.txt", "--runs=1"), status=1) # over 10 %: the baseline is small
done = check(leak=1100, options=("--baseline=base.txt", "--runs=1", "--fail-over=5M", "--pass-under=1M"))
assert "memstow: warning: all memory grew by 1.1 MiB" in done.stderr and ": a warning\n" in done.stdout, done.stderr

# Noise: runs that differ by 300 KB. No single run decides.
check(0, "count", options=("--baseline=noisy.txt", "--update-baseline", "--runs=2"))
check(0, "count", options=("--baseline=base.txt", "--runs=2", "--fail-over=50K"))
check(0, "count", options=("--baseline=noisy.txt", "--runs=1", "--fail-over=0"))

# The check passes if a line of the suppressions file names the growth. If a line suppresses nothing, the check reports
# that line.
pathlib.Path("known.txt").write_text("# known\nfunction=leak  module=(program) until=2999-12-31\nfunction=never\n"
                                     "owner=model:UNET until=2001-01-01\n")
known = ("--baseline=base.txt", "--runs=1", "--fail-over=50K", "--suppressions=known.txt")
done = check(leak=100, options=known)
assert "suppressed by line 2" in done.stdout, done.stdout
assert "known.txt:3: function=never suppressed nothing\n" in done.stdout, done.stdout
assert "known.txt:4: owner=model:UNET until=2001-01-01 has expired\n" in done.stdout, done.stdout
assert "known.txt:2:" in check(options=known).stdout, "nothing leaks: the line is of no use any more"

# --keep keeps the ledgers of the runs. The check also counts the memory of child processes.
memstow("check", "--baseline=base.txt", "--runs=1", "--keep=kept", "--fail-over=50K", "--", "sh", "-c",
        f"{program} 100; exit 0", status=1)
assert {p.name for p in pathlib.Path("kept").iterdir()} == {"warm-up-1", "run-1"}
assert support.report("kept/run-1/run.mst")["totals"]["live_bytes"] > 0
assert "is not an empty folder" in check(options=("--baseline=base.txt", "--keep=kept"), status=2).stderr

# The peaks.
check(options=("--baseline=peak.txt", "--update-baseline", "--peak"))
assert "measure peak\n" in pathlib.Path("peak.txt").read_text()
check(leak=2000, options=("--baseline=peak.txt", "--runs=1", "--fail-over=1M"), status=1)
assert "--peak: base.txt is a baseline of live memory, not of the peak" in check(
    options=("--baseline=base.txt", "--peak"), status=2).stderr

# Each fault has an exit code and one line.
for options, status, message in (
        (("--baseline=none.txt",), 3, "none.txt: No such file or directory: --update-baseline writes one"),
        (("--baseline=known.txt",), 3, "known.txt:2:1: not a baseline: the file does not begin with memstow-baseline"),
        (("--baseline=known.txt", "--update-baseline", "--runs=1"), 3,
         "known.txt: exists and is not a baseline: not replaced"),
        (("--baseline=base.txt", "--suppressions=base.txt"), 3,
         "base.txt:1:1: function=, module=, owner= or until= expected"),
        (("--baseline=base.txt", "--junit=/nowhere/x.xml"), 3, "/nowhere/x.xml: No such file or directory"),
        (("--baseline=.",), 3, ".: not a regular file"), ((), 2, "--baseline or --comfy is needed"),
        (("--update-baseline", "--comfy=x"), 2, "--update-baseline needs --baseline"),
        (("--baseline=base.txt", "--runs=0"), 2, "--runs=0: not a number from 1 to 10000"),
        (("--baseline=base.txt", "--warm-up=x"), 2, "--warm-up=x: not a number from 0 to 10000"),
        (("--baseline=base.txt", "--fail-over=5q"), 2, "--fail-over=5q: not SIZE, PCT% or COUNTx"),
        (("--baseline=base.txt", "--pass-under=5%"), 2, "--pass-under=5%: not a size"),
        (("--baseline=base.txt", "--stacks=sample"), 2, "--stacks=sample: not full or none"),
        (("--baseline=base.txt", "--json", "--junit"), 2, "--json must be alone on standard output"),
        (("--baseline=base.txt", "--top=x"), 2, "--top=x: not a number")):
    done = check(options=options, status=status)
    lines = [line for line in done.stderr.split("\n") if line.startswith("memstow: ")]
    assert len(lines) == 1 and message in lines[0], (options, done.stderr)
# An output that cannot be written is refused before anything runs.
pathlib.Path("folder").mkdir()
for name, why in (("--junit=nowhere/x.xml", "nowhere/x.xml: No such file or directory"),
                  ("--json=folder", "folder: Is a directory"), ("--html=base.txt/x", "base.txt/x: Not a directory")):
    done = memstow("check", "--baseline=base.txt", name, "--", "touch", "it-ran", status=3)
    assert done.stderr == f"memstow: {why}\n" and not pathlib.Path("it-ran").exists(), (name, done.stderr)
done = memstow("check", "--baseline=known.txt", "--update-baseline", "--", "touch", "it-ran", status=3)
assert "known.txt: exists and is not a baseline: not replaced" in done.stderr, done.stderr
assert not pathlib.Path("it-ran").exists()
# An output that fails after the runs does not stop the other outputs.
pathlib.Path("gone").mkdir()
done = memstow("check", "--baseline=base.txt", "--runs=1", "--warm-up=0", "--fail-over=1G", "--json=gone/x.json",
               "--markdown=left.md", "--", "sh", "-c", f"rmdir gone; exec {program} 0", status=3)
assert "memstow: gone/x.json: No such file or directory\n" in done.stderr, done.stderr
assert "memstow" in pathlib.Path("left.md").read_text() and done.stdout, done
done = check(3, options=("--baseline=base.txt",), status=4)
assert "memstow: warm-up 1 exited with 3: a program that fails by itself is not checked\n" in done.stderr, done.stderr
done = memstow("check", "--baseline=base.txt", "--", "sh", "-c", "kill -SEGV $$", status=4)
assert "warm-up 1 exited with 139, as after SIGSEGV: a program" in done.stderr, done.stderr
assert "exited with 127:" in memstow("check", "--baseline=base.txt", "--", "/nowhere/prog", status=4).stderr
assert "no command given" in memstow("check", "--baseline=base.txt", status=2).stderr

# An interrupt ends the whole check, even if the program takes the signal as a request to end, and exits with 0.
pathlib.Path("server.sh").write_text("trap 'exit 0' TERM; echo x >> started; while :; do sleep 0.1; done")
for target in (os.kill, os.killpg):
    pathlib.Path("started").write_text("")
    process = support.start(support.MEMSTOW, "check", "--baseline=base.txt", "--", "sh", "server.sh",
                            start_new_session=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    support.wait_for(lambda: pathlib.Path("started").read_text(), what="the program")
    target(process.pid, signal.SIGTERM)
    output, errors = process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGTERM and not output, (process.returncode, output)
    assert errors.endswith("memstow: ended by signal 15: there is no verdict\n"), errors
    assert pathlib.Path("started").read_text() == "x\n"
assert not list(temporary.iterdir()), "nothing is left"
document = json.loads(check(options=("--baseline=base.txt", "--json")).stdout)
assert (document["format"], document["result"], document["runs"], document["over"]) == ("memstow-check", "pass", 1, 0)
