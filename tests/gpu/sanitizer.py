# timeout: 600
"""Runs programs under NVIDIA's compute-sanitizer, where it is installed. A model leaves the device and comes back,
graphs replay, and no kernel or copy touches memory that is not there. Errors of the driver's calls are not reported,
because these programs cause some on purpose."""
import glob, os, re, shutil

import _gpu, support

PLACES = ("/usr/local/cuda*/bin/compute-sanitizer", "/usr/local/cuda*/compute-sanitizer/compute-sanitizer",
          "/opt/cuda*/bin/compute-sanitizer")
CHECKS = (("memcheck", "moves"), ("memcheck", "graphs"), ("initcheck", "moves"))
ERRORS = 99 # the exit status of compute-sanitizer if it has found errors


def sanitizer():
    return shutil.which("compute-sanitizer") or next((p for place in PLACES for p in sorted(glob.glob(place))), None)


def checked(tool, program):
    """Fails with what the tool said, if it found an error or did not come to its end."""
    command = [sanitizer(), "--tool", tool, "--target-processes", "all", "--report-api-errors", "no",
               "--error-exitcode", ERRORS, support.MEMSTOW, "run", "--quiet", "-o", f"{tool}_{program}.mst", "--",
               support.BUILD / "tests/gpu" / program]
    done = _gpu.kept(f"{tool}_{program}", support.run, *command, env={**os.environ, "MEMSTOW_CUDA_MOVES": "2M"})
    said = f"{tool}, {program}: exit status {done.returncode}\n{done.stdout}{done.stderr}"
    found = re.findall(r"ERROR SUMMARY: (\d+) error", done.stdout + done.stderr)
    assert done.returncode == 0 and found and not any(map(int, found)), said
    assert re.search(r"^ok$", done.stdout, re.M), said
    print(f"{tool}, {program}: no error")


def outside():
    if not sanitizer():
        support.skip("there is no compute-sanitizer")
    for tool, program in CHECKS:
        checked(tool, program)


if __name__ == "__main__":
    _gpu.main(__file__, outside)
