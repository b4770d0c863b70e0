"""Checks that the report of any real program must pass."""

def check_report(report, frames=1000):
    """Asserts that the numbers agree with each other, and that little was lost: fewer than `frames` frames of call
    stacks, few stacks and Python frames, and nothing of another kind."""
    totals = report["totals"]
    for part in (totals, totals["host"], totals["mapped"]):
        assert 0 <= part["live_bytes"] <= part["peak_bytes"] <= part["allocated_bytes"], part
    assert totals["live_bytes"] == sum(totals[k]["live_bytes"] for k in ("host", "mapped", "cuda")), totals
    listed = sum(site["live_bytes"] for site in report["sites"]) + report["sites_omitted"]["live_bytes"]
    assert totals["live_bytes"] == listed, "the sites add up to the total"
    # No caller can be found for MKL's kernels, so some frames are lost. If call stacks take more than 64 MB, memstow
    # folds stacks without live blocks. It does so early enough to have space for nearly all new stacks.
    lost = report["lost"]
    assert lost["stacks"] <= lost["folded"] / 100, lost
    assert lost["frames"] < frames and lost["python"] < 100, lost # Python frames that were just being entered or left
    assert not [kind for kind, n in lost.items() if n
                and kind not in ("frames", "python", "stacks", "folded", "reasons")], lost


def check_residency(report):
    """Asserts that at most 2 % + 4 MiB of the resident set is unexplained."""
    residency = report["residency"]
    rest, rss = residency["rest_bytes"], residency["rss_bytes"]
    assert abs(rest) <= 0.02 * rss + 4 * 2**20, f"{rest} of {rss} resident bytes are not explained: {residency}"
