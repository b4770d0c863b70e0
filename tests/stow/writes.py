# timeout: 300
# alone
"""No write is lost while memory is moved out and back. Three threads make three million writes with each method of
moving: the two atomic methods, and comparing, for which the owner is idle during the move."""
import _moving, support


def main(writes, timeout=110):
    program, folder, skipped = _moving.program("writes"), _moving.real_disk(), []
    for mode in ("move", "remap", "comparing"):
        status, output = _moving.execute([program, mode, writes, 3], folder, timeout)
        print(mode, output.strip())
        if status == 77:
            skipped.append(f"{mode}: {output.strip()}")
        else:
            assert status == 0, f"{mode}: exit status {status}\n{output}"
    folder.rmdir()
    if skipped:
        support.skip("; ".join(skipped))


if __name__ == "__main__":
    main(3_000_000)
