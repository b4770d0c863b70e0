"""Two settings may be as long as the kernel allows: the list for --follow, and the template of the ledger's path in the
environment. If the path is too long, no ledger is written. A ledger never gets a shortened name."""
import os, pathlib, shutil, subprocess
from support import HERE, LIBRARY, MEMSTOW, memstow, report

PATH_MOST = 4095

# --- --follow: the last of many names counts, and a part of a name does not
for name in ("last", "lastly"):
    shutil.copy("/bin/true", name)
others = ",".join(f"program{number}" for number in range(300))
names = others[:1018].rpartition(",")[0]
names += "," + "x" * (1018 - len(names) - 1) # a list that is cut after 1,023 characters ends in "last"
for listed, found in ((f"{others},last", "last"), (f"{names},lastly", "lastly")):
    memstow("run", "--quiet", "-o", "followed.%n.mst", f"--follow={listed}", "--", "sh", "-c", "./last; ./lastly")
    assert set(HERE.glob("followed.*")) == {HERE / f"followed.{name}.mst" for name in ("sh", found)}, os.listdir()
    for file in HERE.glob("followed.*"):
        file.unlink()

# --- --follow: a long name of a program is compared whole
for name in ("a" * 80, "a" * 63):
    shutil.copy("/bin/true", name)
memstow("run", "--quiet", "-o", "long.%p.mst", f"--follow={'a' * 80}", "--", "sh", "-c", f"./{'a' * 80}; ./{'a' * 63}")
programs = sorted(report(file)["process"]["exe"].rpartition("/")[2] for file in HERE.glob("long.*"))
assert len(programs) == 2 and programs[0] == "a" * 80, programs

# --- the ledger's path
folder = pathlib.Path("ledgers").absolute()
folder.mkdir()


def write(name, length):
    """Runs a program whose ledger has this name, in a path of this length. Returns the files that were written."""
    path = f"{folder}/{name}"
    path = "/" * (length - len(path)) + path
    subprocess.run(["true"], env={"PATH": os.environ["PATH"], "LD_PRELOAD": str(LIBRARY), "MEMSTOW_OUT": path},
                   check=True)
    written = os.listdir(folder)
    for file in written:
        assert report(folder / file)["process"]["name"] == "true"
        (folder / file).unlink()
    return written


assert write("whole.mst", PATH_MOST) == ["whole.mst"]
assert write("%n%%.mst", PATH_MOST - 1) == ["true%.mst"]
assert write("%%%%.mst", PATH_MOST + 2) == ["%%.mst"] # it is short enough without the doubled signs
for over in (1, 2, 3, 1000, 100_000):
    assert write("part.mst", PATH_MOST + over) == [], over
refused = subprocess.run([MEMSTOW, "run", "-o", "/" * PATH_MOST + "x.mst", "true"], capture_output=True, text=True)
assert refused.returncode == 2 and "the name is too long" in refused.stderr, refused

# A ledger's name is refused if it leaves no bytes for the suffixes of the children's ledgers. Otherwise the children's
# ledgers would be lost without a message.
NAME_MOST = 255 - len(".4194304.x99999")
tree = ["sh", "-c", "(exec sh -c 'exec sh -c :'); exec sh -c 'exec sh -c :'"]
name = "n" * NAME_MOST
subprocess.run([MEMSTOW, "run", "--quiet", "-o", name, *tree], check=True)
files = [file for file in os.listdir() if file.startswith(name)]
written = {file.removeprefix(name): report(file)["process"]["pid"] for file in files}
child, = {pid for suffix, pid in written.items() if pid != written[""]}
assert {"", ".x0", ".x1", f".{child}", f".{child}.x0"} <= set(written), written
refused = subprocess.run([MEMSTOW, "run", "-o", name + "n", *tree], capture_output=True, text=True)
assert refused.returncode == 2 and "too long: it must leave 15 bytes for children" in refused.stderr, refused
assert not os.path.exists(name + "n")
subprocess.run([MEMSTOW, "run", "--quiet", "-o", "n" * 240 + "%p", "true"], check=True)
