#!/usr/bin/env python3
# timeout: 300
"""Tests loops with a prefix. A later process finds their values; the files have mode 0600 and no links. A second loop
with the prefix is refused. A prefix outside of the directory, a link, a file of another user and a missing file each
lead to one clear error, and nothing is written or removed."""
import os, shutil, stat

import _state, support

folder = _state.real_disk()
outside = support.HERE / "outside"
outside.mkdir()
(outside / "there").write_text("as it was")

# --- a loop has one file for each value, also for strange ids; the files have mode 0600
_state.python("""
    with memstow_state.open("loop", persist_prefix="my loop", directory=folder) as store:
        for step in range(1, 30):
            store.begin()
            store.put("../x", b"x" * step); store.put("ä" * 100, {"step": step}); store.put("." , [step, None])
            assert store.commit() == step
            names = sorted(os.listdir(folder / "my loop.state"))
            assert len(names) == 5, names
        try:
            memstow_state.open("other", persist_prefix="my loop", directory=folder)
            raise AssertionError("a second loop of the prefix")
        except memstow_state.StateBusy as error:
            assert "another loop has the prefix" in str(error), error
        same = memstow_state.open("other", persist_prefix="my/loop", directory=folder)
        same.close()
    """, folder)
home = folder / "my loop.state"
assert stat.S_IMODE(home.stat().st_mode) == 0o700
for path in home.iterdir():
    assert stat.S_IMODE(path.stat().st_mode) == 0o600, path
resumed = """
    store = memstow_state.open("another name", persist_prefix="my loop", directory=folder)
    assert store.generation == 29 and store.get("../x") == b"x" * 29, store.info()
    assert store.get("ä" * 100) == {"step": 29}, store.info()
    assert store.get(".") == [29, None] and {row["where"] for row in store.info()} == {"file"}
    try:
        store.begin(); store.put("model", __import__("threading").Lock())
        raise AssertionError("a lock was kept below a prefix")
    except memstow_state.StateError as error:
        assert "'model' cannot be kept in a prefix" in str(error), error
    """
_state.python(resumed + "store.close(keep=True)", folder)

# --- While a process has the prefix, no other process can open it. After the process was killed, another process can
# open the prefix, even if a child that the killed process forked lives on.
holder = _state.start(support.PYTHON, "-c", f"""if True:
    import memstow_state, os, sys, time
    store = memstow_state.open("holder", persist_prefix="my loop", directory={str(folder)!r})
    child = os.fork()
    if child:
        print(os.getpid(), child, flush=True)
    time.sleep(100)
    """, folder=folder)
pid, child = map(int, holder.stdout.readline().split())
busy = _state.python("""
    try:
        memstow_state.open("x", persist_prefix="my loop", directory=folder)
    except memstow_state.StateBusy as error:
        print(error)
    """, folder).stdout
assert "another loop has the prefix, here or in another process" in busy, busy
os.kill(pid, 9)
holder.stdout.close()
try:
    support.wait_for(lambda: support.is_gone(pid), what="the end of the holder")
    _state.python(resumed + "store.close(keep=True)", folder)
finally:
    os.kill(child, 9)
    holder.wait(60)

# --- what is refused; nothing is changed then
good = support.HERE / "good"
shutil.copytree(home, good / "my loop.state")


def refused(number, words, prefix="my loop", change=None):
    """Makes one change to the folder. After that, opening the loop must fail with this reason, and change nothing."""
    shutil.rmtree(folder)
    shutil.copytree(good, folder, symlinks=True)
    if change:
        change(folder / "my loop.state")
    before = _state.listing(folder), _state.listing(outside)
    said = _state.python(f"""
        try:
            memstow_state.open("loop", persist_prefix={prefix!r}, directory=folder)
        except memstow_state.StateError as error:
            assert error.errno == errno.{number}, error
            print(error)
        """, folder).stdout
    assert words in said and "\n" not in said.strip(), (prefix, said)
    after = _state.listing(folder), _state.listing(outside)
    for one, other in zip(before, after):
        one.pop("my loop.state/lock", None)
        other.pop("my loop.state/lock", None)
        assert one == other, (prefix, set(one) ^ set(other))


for prefix in ("../outside/x", "/etc/x", "a//b", "a/../../x", "..", ".", "a/.", "x/", "../my loop"):
    refused("EINVAL", "leads out of the directory", prefix)
refused("EINVAL", "prefix", "x" * 255)


def link_folder(home):
    home.rename(home.with_name("away"))
    home.symlink_to(outside)


refused("ELOOP", "contains a link", change=link_folder)
refused("ELOOP", "contains a link", "link/x", lambda home: (home.parent / "link").symlink_to(outside))
value = next(path.name for path in good.rglob("*.value"))
for name in (value, "manifest", "lock"):
    def link(home, name=name):
        (home / name).unlink(missing_ok=True)
        (home / name).symlink_to(outside / "there")
    refused("ELOOP", "contains a link", change=link)
refused("EPERM", "other users can write", change=lambda home: home.chmod(0o777))
for name in (value, "manifest"):
    refused("EPERM", "other users can write", change=lambda home, name=name: (home / name).chmod(0o666))
refused("EUCLEAN", "damaged", change=lambda home: (home / value).unlink())
if os.geteuid() == 0: # only root can give files away
    for name in (".", value, "manifest"):
        refused("EPERM", "other users can write", change=lambda home, name=name: os.chown(home / name, 65534, 65534))

# --- close without keep removes all files
shutil.rmtree(folder)
shutil.copytree(good, folder)
_state.python("""
    memstow_state.open("loop", persist_prefix="my loop", directory=folder).close()
    assert not os.listdir(folder), os.listdir(folder)
    """, folder)

# --- close without keep also removes the prefix's folders, if they are empty and the store made them
(folder / "mine").mkdir(mode=0o755)
(folder / "link").symlink_to(outside)
_state.python("""
    import multiprocessing, threading
    os.mkdir(folder / "a", 0o700)  # an earlier process made it
    one, two = (memstow_state.open(f"{n}", persist_prefix=f"a/b/{n}", directory=folder) for n in (1, 2))
    one.close()
    assert (folder / "a/b/2.state").is_dir() and not (folder / "a/b/1.state").exists()
    two.close()
    assert sorted(os.listdir(folder)) == ["link", "mine"], os.listdir(folder)
    memstow_state.open("3", persist_prefix="mine/b/3", directory=folder).close()
    assert os.listdir(folder / "mine") == [], "a folder of the user's stays"
    kept = memstow_state.open("4", persist_prefix="c/4", directory=folder)
    kept.begin(); kept.put("x", 1); kept.commit(); kept.close(keep=True)
    assert (folder / "c/4.state/manifest").exists()
    memstow_state.open("4", persist_prefix="c/4", directory=folder).close()
    swapped = memstow_state.open("5", persist_prefix="d/e/5", directory=folder)
    os.rename(folder / "d", folder / "away"); os.symlink(folder / "away", folder / "d")
    swapped.close()
    assert (folder / "away/e").is_dir(), "nothing is removed over a link"
    os.unlink(folder / "d"); os.rmdir(folder / "away/e"); os.rmdir(folder / "away")
    deep = "/".join("x" * 1000)
    memstow_state.open("6", persist_prefix=deep, directory=folder).close()
    assert sorted(os.listdir(folder)) == ["link", "mine"], os.listdir(folder)

    def turns(number):  # one closes while the other opens
        for _ in range(300):
            store = memstow_state.open(f"turns {number}", persist_prefix=f"shared/by/{number}", directory=folder)
            store.begin(); store.put("x", number); store.commit()
            assert store.get("x") == number
            store.close()
    others = [multiprocessing.get_context("fork").Process(target=turns, args=(number,)) for number in (1, 2)]
    for other in others: other.start()
    for other in others: other.join()
    assert [other.exitcode for other in others] == [0, 0], others
    assert sorted(os.listdir(folder)) == ["link", "mine"], os.listdir(folder)
    """, folder)
assert [path.name for path in outside.iterdir()] == ["there"]
shutil.rmtree(folder)
