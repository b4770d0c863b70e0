"""CPython's own test suite (python -m test), as Debian installs it. The result of a run is {test file: (outcome, failed
cases, skipped cases)}."""
import re
import xml.etree.ElementTree as xml

import support
from _suite import command

PYTHON = "/usr/bin/python3.11"
LINE = re.compile(r"\[ *\d+(?:/\d+)+\] (test\S+) (.+)")


def file_of(case, files):
    """The test file of a case such as test.test_json.Class.name or ctypes.test.test_x.Class.name."""
    parts = case.split(".")
    prefixes = [".".join(parts[:n]) for n in range(len(parts), 0, -1)]
    return next((name for name in (*prefixes, *parts[1:2], f"test_{parts[0]}") if name in files), None)


def cases(file, files):
    """The failed and the skipped cases, by test file."""
    failed, skipped = {}, {}
    for case in xml.parse(file).iter("testcase"):
        for kind, names in (("failure", failed), ("error", failed), ("skipped", skipped)):
            if case.find(kind) is not None:
                names.setdefault(file_of(case.get("name"), files), set()).add(case.get("name"))
    return failed, skipped


def suite(default, arguments, seconds):
    """Returns a function for _suite.compare. If no tests are named, the function runs the tests in `default`. If
    `default` is empty, it runs all tests."""
    def execute(tests, tracked):
        argv = command([PYTHON, "-m", "test", "-j2", "--timeout", "600", "--junit-xml", support.HERE / "cases.xml",
                        *arguments, *(tests or default)], tracked, "ledgers")
        output = support.run(*argv, status=None, timeout=seconds).stdout
        lines = {m[1]: m[2] for m in map(LINE.search, output.split("\n")) if m}
        failed, skipped = cases("cases.xml", lines)
        return {name: (re.split(r" \(| -- ", said)[0], sorted(failed.get(name, ())), sorted(skipped.get(name, ())))
                for name, said in lines.items()}
    return execute
