# needs: root
# timeout: 200
"""Memory moves to a real disk and to an overlay over it. It does not move to a full disk, to tmpfs, to ramfs, to an
overlay over tmpfs, or to /proc. If no directory is named, it moves to a default one."""
import errno, os

import _moving, support

program, elsewhere = _moving.program("full"), _moving.real_disk()


def answer(directory, mib=32):
    status, output = _moving.execute([program, str(mib), elsewhere], directory)
    assert status == 0, f"exit status {status}\n{output}"
    moved, _, text = output.strip().split(" ", 2)
    return int(moved), text


def overlay(upper):
    for name in ("lower", "merged"):
        (support.HERE / name).mkdir(exist_ok=True)
    for name in ("upper", "work"):
        (upper / name).mkdir(exist_ok=True)
    options = f"lowerdir={support.HERE}/lower,upperdir={upper}/upper,workdir={upper}/work"
    if support.run("mount", "-t", "overlay", "-o", options, "overlay", support.HERE / "merged", status=None).returncode:
        support.skip("cannot mount an overlay here")
    return support.HERE / "merged"


moved, text = answer(elsewhere)
assert (moved, text) == (32, "it moved"), (moved, text)
with _moving.mounted("tmpfs", 64) as disk:
    moved, text = answer(disk)
    assert moved == -errno.ENOTSUP and "tmpfs" in text, (moved, text)
    merged = overlay(disk)
    try:
        moved, text = answer(merged)
    finally:
        support.run("umount", "-l", merged)
    assert moved == -errno.ENOTSUP and "tmpfs" in text, ("overlay over tmpfs", moved, text)
with _moving.mounted("ramfs", 64, "ram") as disk:
    moved, text = answer(disk)
    assert moved == -errno.ENOTSUP and "in memory" in text, (moved, text)
with _moving.mounted("ext4", 48, "disk2") as disk:
    moved, text = answer(disk, 16)
    assert (moved, text) == (16, "it moved"), (moved, text)
    moved, text = answer(disk, 64)
    assert moved == -errno.ENOSPC and "full" in text, (moved, text)
    merged = overlay(disk)
    try:
        moved, text = answer(merged, 16)
    finally:
        support.run("umount", "-l", merged)
    assert (moved, text) == (16, "it moved"), ("overlay over ext4", moved, text)
moved, text = answer("/proc")
assert moved == -errno.ENOTSUP, (moved, text)
elsewhere.rmdir()

# If no directory is named, memory moves to the user's cache directory, or to /var/tmp if that directory is in memory.
home = support.HERE / "home"
home.mkdir()
unsaid = {"MEMSTOW_STOW_DIR": "", "XDG_CACHE_HOME": "", "HOME": str(home)}
status, output = _moving.execute([program, "4"], "", env=unsaid)
assert status == 0 and output.startswith("4 "), output
assert (home / ".cache/memstow").is_dir() and not list((home / ".cache/memstow").iterdir())
assert os.stat(home / ".cache/memstow").st_mode & 0o777 == 0o700
status, output = _moving.execute([program, "4"], "", env={**unsaid, "XDG_CACHE_HOME": "/dev/shm"})
assert status == 0 and output.startswith("4 "), output
os.rmdir("/dev/shm/memstow")
