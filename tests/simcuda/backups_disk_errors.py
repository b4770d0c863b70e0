# needs: root
# The disk is full or fails while a model moves to it: the model stays on its device, whole, and the answer says why.
# Over the simulated driver (a test double).
import errno, json, pathlib, sys

import support
from _simcuda import BUILD, environment

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "stow"))
import _moving

program = BUILD / "backups"


def refused(image, mib, name, answers):
    """Moves a model of 20 MiB to a disk of `mib` MiB. The disk is a file system in the sparse file `image`. The move
    must fail with one of the errors `answers`. Returns the reasons in the trace."""
    place = support.HERE / name
    place.mkdir()
    with open(image, "wb") as file:
        file.truncate(mib << 20)
    if support.run("mkfs.ext4", "-q", image, status=None).returncode:
        support.skip("mkfs.ext4 is missing")
    if support.run("mount", "-o", "loop,errors=continue", image, place, status=None).returncode:
        support.skip("cannot mount a file system here")
    wish = {
        "MEMSTOW_CUDA_MOVES": "2M", "SIMCUDA_CAPACITY": "64M", "MEMSTOW_CUDA_HOST": "12M", "MEMSTOW_CUDA_DISK": "40M",
        "MEMSTOW_STOW_DIR": str(place)
    }
    try:
        tried = [
            support.track(program, "refused", -answer, env=environment(**wish), file=f"{name}.mst", status=None)
            for answer in answers
        ]
    finally:
        support.run("umount", "-l", place)
    assert any(done.returncode == 0 for done in tried), "".join(done.stdout + done.stderr for done in tried)
    lines = json.loads(support.memstow("decisions", f"{name}.mst", "--check", "--json").stdout)["lines"]
    return [line["because"] for line in lines if line["kind"] == "REFUSED"]


# memstow requests all of the space before it writes.
assert refused(support.HERE / "full.image", 16, "full", [errno.ENOSPC]) == ["the disk is too full for it"]
# The file system has room, but the disk below it has none: the error comes during a write.
with _moving.mounted("tmpfs", 12, "small") as small:
    because = refused(small / "image", 64, "failing", [errno.EIO, errno.ENOSPC])
    assert because and set(because) <= {"the disk answered with an error", "the disk is too full for it"}, because
