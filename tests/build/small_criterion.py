#!/usr/bin/env python3
"""Unit tests use only names of Criterion that tests/unit/tsan/criterion/criterion.h has. Builds with
ThreadSanitizer use this header in place of Criterion. Other builds use Criterion itself, so they would not notice that
the header lacks a name."""
import re

import support

header = (support.ROOT / "tests/unit/tsan/criterion/criterion.h").read_text()
known = set(re.findall(r"#define (cr_\w+)", header))
assert len(known) > 20, known
for source in sorted((support.ROOT / "tests/unit").glob("*.[ch]")):
    unknown = set(re.findall(r"\bcr_\w+(?=\()", source.read_text())) - known
    assert not unknown, f"{source.name}: {sorted(unknown)}"
