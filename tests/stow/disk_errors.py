# needs: root
# timeout: 200
"""A disk fails during writes (a file system on a sparse image without room to grow) or during reads (an image that lost
its end). Memory stays whole, and stays stowed as long as it cannot be read."""
import errno, shutil, subprocess

import _moving, support


def drop_caches():
    with open("/proc/sys/vm/drop_caches", "w") as file:
        file.write("3")


def loop_mount(image, name):
    place = support.HERE / name
    place.mkdir()
    if support.run("mkfs.ext4", "-q", image, status=None).returncode:
        support.skip("mkfs.ext4 is missing")
    if support.run("mount", "-o", "loop,errors=continue", image, place, status=None).returncode:
        support.skip("cannot mount a file system here")
    return place


def sparse(path, mib):
    with open(path, "wb") as file:
        file.truncate(mib << 20)
    return path


full, unreadable = _moving.program("full"), _moving.program("unreadable")
with _moving.mounted("tmpfs", 12, "small") as small:
    place = loop_mount(sparse(small / "image", 64), "writing")
    try:
        status, output = _moving.execute([full, "32"], place)
    finally:
        support.run("umount", "-l", place)
assert status == 0, f"exit status {status}\n{output}"
moved = output.split()[0]
assert int(moved) in (-errno.EIO, -errno.ENOSPC), output # the kernel decides which

image = sparse(support.HERE / "image", 48)
place = loop_mount(image, "reading")
try:
    process = subprocess.Popen([unreadable], env=_moving.environment(place), stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    said = process.stdout.readline()
    assert said == "moved\n", said
    support.run("sync")
    drop_caches()
    shutil.copy(image, "kept")
    with open(image, "r+b") as file:
        file.truncate(1 << 20)
    drop_caches()
    for _ in range(2):
        process.stdin.write("\n"), process.stdin.flush()
        while (said := process.stdout.readline()) not in ("moved\n", ""):
            print(said, end="")
        assert said == "moved\n", f"exit status {process.wait()}"
    with open(image, "r+b") as file, open("kept", "rb") as kept:
        shutil.copyfileobj(kept, file)
    drop_caches()
    process.stdin.write("\n"), process.stdin.flush()
    said = process.stdout.read()
    assert process.wait(60) == 0 and said == "back\n", said
finally:
    process.kill()
    support.run("umount", "-l", place)
