# needs: pip:pytest==8.3.4
"""The pytest plugin checks the limits of each test. Without --memstow the plugin does nothing. With --memstow, it is an
error if memstow is missing, or if a selected test has a limit that makes no sense."""
import os, pathlib, re
import support

TESTS = '''
import pytest
kept = []

@pytest.mark.limit_memory("24 MB")
def test_peak_fine(): bytearray(20 * 2**20)

@pytest.mark.limit_memory("24 MB")
def test_peak_over(): bytearray(32 * 2**20)

@pytest.mark.limit_leaks("1 MB")
def test_leaks_nothing():
    kept_not = [bytearray(2**20) for _ in range(8)]

def keep_it(size): kept.append(bytearray(size))

@pytest.mark.limit_leaks("1 MB")
def test_leaks_over(): keep_it(3 * 2**20)

@pytest.mark.limit_leaks("1 MB")
def test_leaks_below_at_each_place():
    kept.append(bytearray(700000))
    kept.append(bytearray(700000))

@pytest.mark.limit_leaks("1 MB", filter_fn=lambda stack: not any(f.function == "keep_it" for f in stack.frames))
def test_leaks_filtered(): keep_it(3 * 2**20)

cache = {}
@pytest.mark.limit_leaks("1 MB", warmups=1)
def test_leaks_warm():
    if "it" not in cache: cache["it"] = bytearray(5 * 2**20)

@pytest.mark.limit_leaks("1 MB")
def test_fails_by_itself():
    kept.append(bytearray(3 * 2**20))
    assert 0, "its own failure"

@pytest.mark.limit_leaks("1 MB")
def test_skipped(): pytest.skip("no")

def test_unmarked(): kept.append(bytearray(2 * 2**20))

import unittest
class OfUnittest(unittest.TestCase):
    @pytest.mark.limit_memory("1 MB")
    def test_over(self): bytearray(4 * 2**20)
'''
pathlib.Path("test_memory.py").write_text(TESTS)
WRONG = {"test_size": "'much' is not a size like '24 MB'", "test_number": "24 is not a size like '24 MB'",
         "test_negative": "'-1 MB' is not a size like '24 MB'",
         "test_thread": "current_thread_only is pytest-memray's: memstow counts all threads",
         "test_none": "limit_memory: missing 1 required positional argument: 'memory_limit'",
         "test_unknown": "limit_leaks: got an unexpected keyword argument 'peak'",
         "test_filter": "filter_fn='keep_it' is not a function",
         "test_warmups": "warmups=-1 is not how often a test can be run"}
MARKS = {"test_size": "limit_memory('much')", "test_number": "limit_memory(24)",
         "test_negative": "limit_leaks('-1 MB')", "test_thread": "limit_leaks('1 KB', current_thread_only=True)",
         "test_none": "limit_memory()", "test_unknown": "limit_leaks('1 KB', peak=1)",
         "test_filter": "limit_leaks('1 KB', filter_fn='keep_it')", "test_warmups": "limit_leaks('1 KB', warmups=-1)",
         "test_right": "limit_memory('1 MB')"}
pathlib.Path("test_wrong.py").write_text(
    "import pytest\n" + "".join(f"@pytest.mark.{mark}\ndef {test}(): pass\n" for test, mark in MARKS.items()))
pathlib.Path("test_late.py").write_text(
    "import pytest\n@pytest.fixture(autouse=True)\ndef late(request):\n"
    "    request.node.add_marker(pytest.mark.limit_memory('late'))\ndef test(): pass\n")
PYTEST = [support.PYTHON, "-m", "pytest", "-p", "pytest_memstow", "-p", "no:cacheprovider", "--strict-markers", "-q",
          "-rA"]
env = {**os.environ, "PYTHONPATH": str(support.ROOT / "tools/python")}


def verdicts(done):
    return dict((name, word) for word,
                name in re.findall(r"^(PASSED|FAILED|SKIPPED) (?:\[1\] )?\S*?(test_memory\.py:\d+|(?<=::)[\w:]+)",
                                   re.sub(r"test_memory\.py::", "::", done.stdout), re.M))


def run(*options, memstow=True, status=1):
    under = [support.MEMSTOW, "run", "--quiet", "-o", "t.mst", "--python-objects", "--"] if memstow else []
    return support.run(*under, *PYTEST, *options, env=env, status=status)


done = run("--memstow", "test_memory.py", "--junit-xml=o.xml")
found = verdicts(done)
failed = {name for name, word in found.items() if word == "FAILED"}
assert failed == {"test_peak_over", "test_leaks_over", "test_fails_by_itself",
                  "OfUnittest::test_over"}, (found, done.stdout)
assert {n for n,
        w in found.items() if w == "PASSED"} == {
            "test_peak_fine", "test_leaks_nothing", "test_leaks_below_at_each_place", "test_leaks_filtered",
            "test_leaks_warm", "test_unmarked"}, (found, done.stdout)
assert "Test is limited to 24.0 MiB and had 32.0 MiB at once" in done.stdout, done.stdout
leak = done.stdout[done.stdout.index("left more at:"):]
assert re.match(r"left more at:\n  3\.0 MiB\n(?:      .*\n)*?      keep_it  .*test_memory\.py:15\n      "
                r"test_leaks_over  .*test_memory\.py:18\n", leak), leak
assert ("AssertionError: its own failure" in done.stdout
        and "memstow: what tests had at most, and left behind (11)" in done.stdout), done.stdout[-3000:]
assert re.search(r"^ +32\.\d MiB +\S+ \S+  test_memory.py::test_peak_over$", done.stdout, re.M), done.stdout[-3000:]
assert 'name="memstow_peak_bytes"' in pathlib.Path("o.xml").read_text()

# Without the option it is harmless.
for memstow in (True, False):
    done = run("test_memory.py", memstow=memstow)
    assert {n for n, w in verdicts(done).items() if w == "FAILED"} == {"test_fails_by_itself"}, (memstow, done.stdout)
    assert "what tests had at most" not in done.stdout
    run("test_wrong.py", memstow=memstow, status=0)

# An error before any test runs.
done = run("--memstow", "test_memory.py", memstow=False, status=4)
assert done.stderr.startswith("ERROR: --memstow: memstow did not start this process"), done
assert "start: memstow run" in done.stderr, done
assert not done.stdout.strip(), done.stdout
run("--memstow", "--help", memstow=False, status=0)
done = run("--memstow", "test_wrong.py", "test_memory.py", status=4)
for test, why in WRONG.items():
    assert f"ERROR: test_wrong.py::{test}: memstow: {why}\n" in done.stderr, (test, done.stderr)
assert ("Traceback" not in done.stderr + done.stdout and "PASSED" not in done.stdout
        and "def parse_size" not in done.stdout), done
done = run("--memstow", "test_wrong.py", "-k", "test_right", status=0)
assert "1 passed" in done.stdout, done.stdout
done = run("--memstow", "test_late.py") # a fixture adds the limit
assert "'late' is not a size like '24 MB'" in done.stdout and "def parse_size" not in done.stdout, done.stdout
