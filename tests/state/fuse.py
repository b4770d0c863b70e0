# needs: root deb:bindfs deb:fuse3
"""A directory on FUSE is refused for files and for a prefix. So is every file system that is not known to be a local
disk, such as NFS. Nothing is left in the directory."""
import os

import _state, support

folder, behind, place = _state.real_disk(), support.HERE / "behind", support.HERE / "fuse"
support.mount_fuse(behind, place)
try:
    _state.is_refused(place, folder)
    assert not os.listdir(behind), os.listdir(behind)
finally:
    support.run("umount", "-l", place)
folder.rmdir()
