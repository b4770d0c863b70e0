# needs: pip:pytest==8.3.4
"""The pytest plugin: limits per test under memstow; nothing at all without --memstow, or without memstow."""
import os, pathlib, re, sys
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
pathlib.Path("test_wrong.py").write_text("import pytest\n@pytest.mark.limit_memory('much')\ndef test(): pass\n"
                                         "@pytest.mark.limit_leaks('1 KB', current_thread_only=True)\ndef test_thread(): pass\n")
PYTEST = [support.PYTHON, "-m", "pytest", "-p", "pytest_memstow", "-p", "no:cacheprovider", "--strict-markers", "-q", "-rA"]
env = {**os.environ, "PYTHONPATH": str(support.ROOT / "tools/python")}


def verdicts(done):
    return dict((name, word) for word, name in re.findall(r"^(PASSED|FAILED|SKIPPED) (?:\[1\] )?\S*?(test_memory\.py:\d+|(?<=::)[\w:]+)",
                                                          re.sub(r"test_memory\.py::", "::", done.stdout), re.M))


def run(*options, memstow=True, status=1):
    under = [support.MEMSTOW, "run", "--quiet", "-o", "t.mst", "--python-objects", "--"] if memstow else []
    return support.run(*under, *PYTEST, *options, env=env, status=status)


done = run("--memstow", "test_memory.py", "--junit-xml=o.xml")
found = verdicts(done)
failed = {name for name, word in found.items() if word == "FAILED"}
assert failed == {"test_peak_over", "test_leaks_over", "test_fails_by_itself", "OfUnittest::test_over"}, (found, done.stdout)
assert {n for n, w in found.items() if w == "PASSED"} == {"test_peak_fine", "test_leaks_nothing", "test_leaks_below_at_each_place",
                                                           "test_leaks_filtered", "test_leaks_warm", "test_unmarked"}, (found, done.stdout)
assert "Test is limited to 24.0 MiB and had 32.0 MiB at once" in done.stdout, done.stdout
leak = done.stdout[done.stdout.index("left more at:"):]
assert re.match(r"left more at:\n  3\.0 MiB\n(?:      .*\n)*?      keep_it  .*test_memory\.py:15\n      test_leaks_over  .*test_memory\.py:18\n", leak), leak
assert "AssertionError: its own failure" in done.stdout and "memstow: what tests had at most, and left behind (11)" in done.stdout, done.stdout[-3000:]
assert re.search(r"^ +32\.\d MiB +\S+ \S+  test_memory.py::test_peak_over$", done.stdout, re.M), done.stdout[-3000:]
assert 'name="memstow_peak_bytes"' in pathlib.Path("o.xml").read_text()

# Harmless: without the option, and without memstow.
only_own = {"test_fails_by_itself"}
for options, memstow in (((), True), ((), False), (("--memstow",), False)):
    done = run(*options, "test_memory.py", memstow=memstow)
    assert {n for n, w in verdicts(done).items() if w == "FAILED"} == only_own, (options, memstow, done.stdout)
    assert "what tests had at most" not in done.stdout
assert "memstow: not in this process, nothing is measured; start:" in run("--memstow", "-v", "test_memory.py", memstow=False).stdout
done = run("--memstow", "test_wrong.py")
assert "'much' is not a size like '24 MB'" in done.stdout and "memstow counts all threads" in done.stdout, done.stdout
assert "Traceback" not in done.stdout and "def parse_size" not in done.stdout, done.stdout
