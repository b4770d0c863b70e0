# needs: root deb:bindfs deb:fuse3
"""A directory on FUSE is refused for files and for a prefix, as each file system is that is not known to be a local
disk, such as NFS. Nothing is left in it."""
import os

import _state, support

folder, behind, place = _state.real_disk(), support.HERE / "behind", support.HERE / "fuse"
support.mount_fuse(behind, place)
try:
    _state.python(f"""
        for options in (dict(use_ram=False), dict(persist_prefix="p")):
            try:
                store = memstow_state.open(str(list(options)), directory={str(place)!r}, **options)
                store.begin(); store.put("x", bytes(100_000)); store.commit()
            except memstow_state.StateError as error:
                assert error.errno == errno.ENOTSUP, error
            else:
                raise AssertionError(f"a folder on FUSE is taken with {{options}}")
        """, folder)
    assert not os.listdir(behind), os.listdir(behind)
finally:
    support.run("umount", "-l", place)
