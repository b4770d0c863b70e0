"""Runs the test suite of another project with and without memstow. The same tests pass, fail and are skipped."""
import pathlib

import support


def compare(execute, repeats=2):
    """Runs all tests of a suite with and without memstow, and compares their outcomes. execute(tests, tracked) runs the
    named tests (None: all of them), and returns {name: outcome}. A test whose outcomes differ is repeated. It is
    excused in two cases:
    - When it is repeated without memstow, its outcome differs from its first outcome without memstow.
    - Each time it is repeated under memstow, its outcome is the first outcome without memstow.
    Prints the excused tests. Fails if a test differs and is not excused."""
    plain, tracked = execute(None, False), execute(None, True)
    assert plain, "the suite ran nothing"
    suspects = sorted(t for t in plain.keys() | tracked.keys() if plain.get(t) != tracked.get(t))
    guilty = [t for t in suspects if not excused(execute, t, plain.get(t), tracked.get(t), repeats)]
    print(f"{len(plain)} tests, {len(suspects)} differed at first, {len(guilty)} differ")
    assert not guilty, "\n".join(f"{t}: {brief(plain.get(t))} without memstow, {brief(tracked.get(t))} with it"
                                 for t in guilty)


def brief(outcome, limit=300):
    text = str(outcome)
    return text if len(text) <= limit else f"{text[:limit // 2]} … {text[-limit // 2:]}"


def excused(execute, test, plain, tracked, repeats):
    again = execute([test], False).get(test)
    if again != plain:
        print(f"{test}: {brief(plain)}, then {brief(again)}, both without memstow")
        return True
    under = [execute([test], True).get(test) for _ in range(repeats)]
    if all(outcome == plain for outcome in under):
        print(f"{test}: once {brief(tracked)} under memstow, then {repeats} times {brief(plain)}, as without it")
        return True
    return False


def command(argv, tracked, folder):
    """Returns the command that runs argv: if `tracked`, under memstow with ledgers in `folder`; otherwise alone."""
    if not tracked:
        return argv
    pathlib.Path(folder).mkdir(exist_ok=True)
    return [support.MEMSTOW, "run", "--quiet", "-o", f"{folder}/%n.%p.mst", "--", *argv]


def check_ledgers(folder, named=1):
    """Asserts that each process of the suite left a file that can be read. The report of every `named`-th file also
    names functions. Looking up these names takes most of the time."""
    files = sorted(pathlib.Path(folder).iterdir())
    assert len(files) > 1, files
    for number, file in enumerate(files):
        support.memstow("report", file, "--by=thread" if number % named else "--json")
    print(f"{len(files)} ledgers open")
