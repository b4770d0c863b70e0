# timeout: 600
"""Every recorded call stack is the same as libunwind's. A library made for this test compares each stack when it is
recorded. It does so in small C and C++ programs, in a threaded one, in lua, sqlite3 and jq, and in Python with each
object from malloc."""
import os, shutil, struct, sys

import support

library = support.BUILD / "libmemstow_oracle.so"
if not library.exists():
    support.skip("libunwind-dev is not installed")
counts = support.HERE / "counts"
counts.mkdir()
os.environ.update(LD_PRELOAD=str(library), MEMSTOW_ORACLE=str(counts), MEMSTOW_OUT=str(support.HERE / "%n.%p.mst"))
WORK = support.ROOT / "tests/bench/work"
SMALL = "import json, functools, threading, re\n" \
        "def leaf(n): return [bytearray(n), str(n) * 3]\n" \
        "def work():\n" \
        "    sorted(range(200), key=leaf)\n" \
        "    functools.reduce(lambda a, b: leaf(b), range(200))\n" \
        "    re.sub('a', lambda m: str(leaf(7)), 'a' * 100)\n" \
        "    json.loads(json.dumps([{'a': i, 'b': [i] * 9} for i in range(300)]))\n" \
        "threads = [threading.Thread(target=work) for _ in range(3)]\n" \
        "[t.start() for t in threads], work(), [t.join() for t in threads]\n"


def totals():
    sums = [0, 0, 0]
    for file in counts.iterdir():
        sums = [a + b for a, b in zip(sums, struct.unpack("<3Q", file.read_bytes()[:24]))]
        file.unlink()
    return sums


def check(name, *argv, least, **env):
    if not shutil.which(str(argv[0])):
        print(f"{name}: not installed, left out")
        return
    done = support.run(*argv, status=None, env={**os.environ, **env})
    compared, wrong, short = totals()
    print(f"{name}: {compared} stacks, {wrong} wrong, {short} short")
    assert compared >= least, done.stderr
    assert wrong == short == 0, done.stderr


programs = support.BUILD / "tests/prog"
check("threads", programs / "random_operations", least=100_000)
check("exceptions, coroutines", programs / "cpp_exceptions_coroutines", least=100)
check("coroutines that come and go", programs / "stacks_coroutines_gone", least=100_000)
check("signals", programs / "stacks_signals", least=6)
check(
    "sqlite3", "sqlite3", ":memory:",
    "create table t(a, b); with recursive n(i) as (select 1 union all select i + 1 from n "
    "where i < 3000) insert into t select i, hex(randomblob(20)) from n; select count(*), b from t group by a % 7;",
    least=3000)
check("jq", "jq", "-n", "[range(2000) | {a: ., b: [range(3)]}] | group_by(.a % 5) | length", least=3000)
check("lua", "lua5.4", "-e", "local t = {} for i = 1, 20000 do t[i % 100] = tostring(i) .. ('x'):rep(i % 50) end",
      least=3000)
check("Python", sys.executable, "-c", SMALL, least=1000)
check("Python, PYTHONMALLOC=malloc", sys.executable, "-c", SMALL, least=50_000, PYTHONMALLOC="malloc")
