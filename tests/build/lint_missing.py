#!/usr/bin/env python3
"""On a machine without linters, tests/lint skips each linter and says why. In .ci/run each missing linter is a failure,
and no test runs."""
import os, shutil

import support

TOOLS = ["clang-format-14", "clang-tidy-14", "build/venv/bin/ruff", "build/venv/bin/mypy", "../build/venv/bin/mypy",
         "shellcheck"]

# PATH has these few programs only. None of them is a linter, and the script cannot install other programs with them.
found = support.HERE / "found"
found.mkdir()
for name in "bash cat dirname env git grep mkdir sed xargs".split():
    (found / name).symlink_to(shutil.which(name))
environment = os.environ | {"PATH": str(found)}

tree = support.HERE / "tree"
for name in ("tests/lint", "cmake/setup.sh", ".ci/run"):
    (tree / name).parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(support.ROOT / name, tree / name)
(tree / "tools").mkdir()
(tree / "tests/check").write_text("#!/usr/bin/env bash\necho tests were run\n") # a double of the runner
(tree / "tests/check").chmod(0o755)
support.run("git", "init", "--quiet", tree)


def words(command, status):
    """What the command says of each linter: the first word and the reason, sorted, because linters may run beside one
    another."""
    done = support.run(*command, cwd=tree, env=environment, status=status)
    assert "tests were run" not in done.stdout, done
    lines = [line for line in done.stderr.splitlines() if line.startswith(("passed ", "skipped ", "failed "))]
    return sorted((line.split()[0], line.split(": ")[-1]) for line in lines)


missing = sorted(f"there is no {tool}" for tool in TOOLS)
said = words(["tests/lint"], 0)
assert said == [("skipped", why) for why in missing], said
said = words([".ci/run"], 1)
assert said == [("failed", why) for why in missing], said
