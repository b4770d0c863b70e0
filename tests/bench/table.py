"""Makes a table in Markdown from measurements: medians with their spread, and ratios of runs of the same round."""
import statistics


def number(value):
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def spread(values, text=number):
    """The median, the smallest and the largest value."""
    if len(values) == 1:
        return text(values[0])
    return f"{text(statistics.median(values))} ({text(min(values))}–{text(max(values))})"


def ratios(runs, base, field):
    """Returns for each run its `field`, divided by that of the untracked run of the same round."""
    by_round = {run["round"]: run[field] for run in base}
    return [run[field] / by_round[run["round"]] for run in runs if by_round.get(run["round"])]


def beyond_headers(runs, base):
    """MiB of RSS above the untracked run of the same round, without the 16 bytes in front of each block."""
    by_round = {run["round"]: run["kib"] for run in base}
    more = [run["kib"] / 1024 - by_round[run["round"]] / 1024 - run["blocks"] * 16 / 2**20
            for run in runs if "blocks" in run and run["round"] in by_round]
    return f"{statistics.median(more):+.1f}" if more else ""


def rows(name, modes):
    """Yields the table's lines for one program. modes: {mode: [{"round", "seconds", "kib"}]}, "untracked" first."""
    base = modes["untracked"] if isinstance(modes["untracked"], list) else []
    for mode, runs in modes.items():
        if isinstance(runs, str):
            yield [name, mode, runs, "", "", "", ""]
        elif runs:
            seconds = [r["seconds"] for r in runs]
            memory = [r["kib"] / 1024 for r in runs]
            same = mode == "untracked"
            cost = "" if same else spread(ratios(runs, base, "seconds"), lambda r: f"{r:.2f}×")
            size = "" if same else f"{statistics.median(ratios(runs, base, 'kib')):.2f}×"
            more = beyond_headers(runs, base)
            yield [name, mode, spread(seconds), cost, number(statistics.median(memory)), size, more]
        name = ""


def markdown(results):
    lines = ["| program | mode | seconds | of untracked | largest RSS, MiB | of untracked | beyond 16 B a block, MiB |",
             "|---|---|---|---|---|---|---|"]
    for name, modes in results.items():
        lines += ["| " + " | ".join(row) + " |" for row in rows(name, modes)]
    return "\n".join(lines) + "\n"


def summary(results):
    """A table of how many times as long each program takes with memstow as without. It has only the medians."""
    modes = ["--stacks=none", "--stacks=sample", "default"]
    lines = ["| times as long as untracked | " + " | ".join(f"`{mode}`" for mode in modes) + " |", "|---|---|---|---|"]
    for name, runs in results.items():
        measured = {mode: times for mode, times in runs.items() if isinstance(times, list) and times}
        cells = ""
        for mode in modes:
            both = "untracked" in measured and mode in measured
            cell = f"{statistics.median(ratios(measured[mode], measured['untracked'], 'seconds')):.2f}×" if both else ""
            cells += f" {cell} |"
        lines.append(f"| {name} |{cells}")
    return "\n".join(lines) + "\n"


def text(results):
    """The table of all programs as text for a terminal."""
    table = [["program", "mode", "seconds", "of untracked", "RSS MiB", "of untracked", "beyond headers, MiB"]]
    for name, modes in results.items():
        table += rows(name, modes)
    widths = [max(len(row[i]) for row in table) for i in range(7)]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in table) + "\n"
