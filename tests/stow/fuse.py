# needs: root deb:bindfs deb:fuse3
"""Memory moves neither to a directory on FUSE nor to an overlay over such a directory. A refused move leaves no
file."""
import errno, os

import _moving, support

program, elsewhere = _moving.program("full"), _moving.real_disk()
behind, place, merged = (support.HERE / name for name in ("behind", "fuse", "merged"))


def answer(directory):
    """Tries to move memory to `directory`. Asserts that the memory stays whole, and that a later move to `elsewhere`
    succeeds. Returns the result of the first move, and the reason."""
    status, output = _moving.execute([program, "32", elsewhere], directory)
    assert status == 0, f"exit status {status}\n{output}"
    moved, _, text = output.strip().split(" ", 2)
    return int(moved), text


def overlay_over_fuse():
    """Whether an overlay over FUSE could be mounted. Usually it cannot, because the kernel needs features of an upper
    file system that bindfs lacks."""
    for folder in (place / "upper", place / "work", support.HERE / "lower", merged):
        folder.mkdir()
    options = f"lowerdir={support.HERE}/lower,upperdir={place}/upper,workdir={place}/work"
    return support.run("mount", "-t", "overlay", "-o", options, "overlay", merged, status=None).returncode == 0


support.mount_fuse(behind, place)
try:
    (place / "file").write_text("it takes files")
    moved, text = answer(place)
    assert moved == -errno.ENOTSUP and "FUSE" in text, (moved, text)
    assert os.listdir(behind) == ["file"], os.listdir(behind)

    # By default memory goes elsewhere, although the user's cache is on FUSE.
    usual = {"MEMSTOW_STOW_DIR": "", "XDG_CACHE_HOME": str(place)}
    status, output = _moving.execute([program, "4"], "", env=usual)
    assert status == 0 and output.startswith("4 "), (status, output)

    if overlay_over_fuse():
        try:
            moved, text = answer(merged)
        finally:
            support.run("umount", "-l", merged)
        assert moved == -errno.ENOTSUP, ("overlay over FUSE", moved, text)
finally:
    support.run("umount", "-l", place)
elsewhere.rmdir()
