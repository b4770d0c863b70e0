"""Under RLIMIT_FSIZE, memstow's writes cause no SIGXFSZ, and what does not fit into the ledger is counted as lost. If
the limit leaves too little room for a ledger, there is none, and a line says so."""
import resource

import _bad_day, support

program = _bad_day.program()
for bytes in (0, 4096, 300_000, 600_000, 3_000_000):
    for when in ("at the start", "during the run"):
        if when == "at the start" and support.features()["sanitize"] == "thread":
            print(f"{bytes}: not tried: a command with ThreadSanitizer dies of SIGXFSZ when it starts under this limit")
            continue
        inside = [f"fsize={bytes}"] if when == "during the run" else []
        outside = {} if inside else {"preexec_fn": _bad_day.limit(resource.RLIMIT_FSIZE, bytes)}
        file = f"{bytes}-{len(inside)}.mst"
        said = _bad_day.same([program, *inside], file=file, **outside)
        if not support.HERE.joinpath(file).exists():
            assert "no ledger" in said, said
            assert bytes < 262144 and not inside, (bytes, when)
            continue
        report = support.report(file)
        assert bytes < 3_000_000 or _bad_day.is_exact(report, program), (bytes, when, report["lost"])
        assert _bad_day.is_exact(report, program) or report["lost"]["file"], (bytes, when, report["lost"])
        assert report["totals"]["host"]["live_bytes"] >= _bad_day.LARGE + _bad_day.PAGES, (bytes, when)
        assert report["process"]["state"] == "exited", (bytes, when)
