"""Each installed Python runs this program (python_frames.py). In every way in which Python code can run, it compares
the frames that preload/stacks/python.c sees with those that Python itself reports. argv: the probe library. Prints how
many chains and frames were compared."""
import asyncio, atexit, contextlib, ctypes, functools, gc, itertools, os, re, signal
import sys, threading, time, weakref

probe = ctypes.CDLL(sys.argv[1])  # lets go of the GIL while it looks
with_gil = ctypes.PyDLL(sys.argv[1])
for library in (probe, with_gil):
    library.probe_chain.restype = ctypes.c_long
    library.probe_chain.argtypes = [ctypes.c_char_p, ctypes.c_size_t]
    library.probe_lost.restype = library.probe_ledger_size.restype = ctypes.c_ulong
ROOM = 1 << 20
counts = {"chains": 0, "frames": 0}
local = threading.local()
sys.setrecursionlimit(20000)


def expected(frame):
    chain = []
    while frame:
        code = frame.f_code
        chain.append((code.co_qualname, code.co_filename, code.co_firstlineno, frame.f_lineno or 0, frame.f_lasti))
        frame = frame.f_back
    return chain


def seen(library):
    if not hasattr(local, "buffer"):
        local.buffer = ctypes.create_string_buffer(ROOM)
    return library.probe_chain(local.buffer, ROOM)


def parse(text):
    rows = [line.split("\t") for line in text.decode("utf-8", "surrogateescape").split("\n")[:-1]]
    return [(name, file, int(first), int(line), int(offset)) for name, file, first, line, offset in rows]


def compare(status, text, want, more=False):
    got = parse(text)[1:]  # without the frame of seen()
    assert status == len(got) + 1, (status, len(got), got, want)
    assert len(got) == len(want) or more and len(got) > len(want), f"{len(got)} frames, not {len(want)}:\n{got}\n{want}"
    for level, (a, b) in enumerate(zip(got, want)):
        # Frame 0 is the function that calls both seen() and expected(), in one line. Between these calls its
        # instruction changes, but its line does not.
        assert a[:4] == b[:4] and (a[4] == b[4] or level == 0), f"frame {level}: {a}, not {b}\n{got}\n{want}"
    counts["chains"] += 1
    counts["frames"] += len(got)


def check(*unused):
    for library in (probe, with_gil):
        status, want = seen(library), expected(sys._getframe())
        compare(status, local.buffer.value, want)
    return 1


# ---- ways in which Python code runs

def plain_calls():
    check()
    (lambda: check())()
    functools.partial(check)()
    check(
        1,
        2,
    )


def recursion(n=50):
    return recursion(n - 1) + 1 if n else check()


def deep_recursion():
    recursion(2000)


def through_c(n=30):
    """Each step is another evaluation loop."""
    return functools.reduce(lambda a, b: through_c(n - 1), [1, 2]) if n else check()


def mixed(n=20):
    if not n:
        return check()
    return mixed(n - 1) if n % 3 else max([n], key=lambda _: mixed(n - 1))


def callbacks():
    functools.reduce(check, [1, 2, 3])
    sorted([3, 1, 2], key=check)
    re.sub("a", lambda match: str(check()), "banana")
    list(map(check, [1, 2]))
    list(filter(check, [1, 2]))
    any(check() for _ in range(2))
    min([1, 2], key=lambda x: check())
    sum(map(lambda x: check(), range(2)))
    list(itertools.starmap(check, [(1, 2)]))
    functools.lru_cache(lambda: check())()
    {check(): 1 for _ in range(2)}


def ctypes_callback():
    compare_type = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
    values = (ctypes.c_int * 3)(3, 1, 2)
    qsort = ctypes.CDLL(None).qsort
    qsort(values, 3, ctypes.sizeof(ctypes.c_int), compare_type(lambda a, b: 0 * check()))


def counting(n):
    for i in range(n):
        check()
        yield i


def delegating(n):
    yield from counting(n)
    check()
    return n


def generators():
    list(counting(3))
    for _ in delegating(2):
        check()
    generator = delegating(5)
    next(generator)
    generator.send(None)
    with contextlib.suppress(ValueError):
        generator.throw(ValueError)

    def closing():
        try:
            yield 1
        finally:
            check()
    generator = closing()
    next(generator)
    generator.close()
    generator = closing()
    next(generator)
    del generator
    sum(x for x in counting(3))
    for a, b in zip(counting(3), delegating(3)):
        check(a, b)


async def leaf():
    check()
    await asyncio.sleep(0)
    check()


async def async_counting(n):
    for i in range(n):
        await leaf()
        yield i
        check()


class Manager:
    async def __aenter__(self):
        check()
        await leaf()

    async def __aexit__(self, *error):
        await leaf()


async def coroutines():
    check()
    await asyncio.gather(leaf(), leaf(), leaf())
    async for _ in async_counting(3):
        check()
    async with Manager():
        await leaf()
    [x async for x in async_counting(2)]
    task = asyncio.create_task(leaf())
    await task
    asyncio.get_running_loop().call_soon(check)
    await asyncio.sleep(0)
    await asyncio.get_running_loop().run_in_executor(None, check)


def event_loop():
    asyncio.run(coroutines())


class Meta(type):
    def __new__(meta, name, bases, members):
        check()
        return super().__new__(meta, name, bases, members)

    def __call__(self, *arguments):
        check()
        return super().__call__(*arguments)


def decorated(function):
    check()

    @functools.wraps(function)
    def inner(*arguments):
        check()
        return function(*arguments)
    return inner


def classes():
    class Body(metaclass=Meta):
        check()
        value = [check() for _ in range(2)]

        def __init__(self):
            check()

        @decorated
        def method(self):
            check()

        @property
        def computed(self):
            return check()

        def __getattr__(self, name):
            return check()

        def __getitem__(self, key):
            return check()

        def __add__(self, other):
            return check()

        def __eq__(self, other):
            return bool(check())

        def __hash__(self):
            return check()

        def __len__(self):
            return check()

        def __call__(self):
            return check()

        def __repr__(self):
            return str(check())

    class Quick:
        def __init__(self, x):
            self.x = check()

    for _ in range(40):  # so often that Python specialises: it runs __init__, [] and properties in the caller's loop
        body = Body()
        body.method(), body.computed, body.missing, body[1], body + 1, body == 2
        {body: 1}, len(body), body(), repr(body)
        Quick(1)


def comprehensions():
    [check() for _ in range(2)]
    [[check() for _ in range(2)] for _ in range(2)]
    {check() for _ in range(2)}
    {x: check() for x in range(2)}
    list(check() for _ in range(2))
    [y for x in range(2) for y in [check()] if check()]


def compiled_code():
    space = {"check": check}
    exec("check()\n\n\ncheck()\ndef f():\n  check()\n  return [\n    check(),\n    check(\n)]\nf()", space)
    eval("[check() for _ in range(2)]", space)
    exec(compile("class A:\n  class B:\n    def f(self):\n      check()\nA.B().f()", "файл 日本 𝒳 é.py", "exec"), space)
    exec("def ünïcode_名前_𝒳():\n  check()\nünïcode_名前_𝒳()", space)
    exec(compile("check()", b"not-\xff\xfe-utf8.py".decode("utf-8", "surrogateescape"), "exec"), space)
    exec("\n" * 70000 + "check()", space)
    exec("x = 1; " * 3000 + "check()", space)
    exec("check(\n" + "0,\n" * 3000 + "check())", space)
    exec(compile("check()", "n" * 900 + ".py", "exec"), space)


def dying_code():
    """Code objects are made at the same addresses again and again. Code that was seen before is found again, not
    recorded anew."""
    for i in range(10000):
        space = {"check": check}
        exec("\n" * (i % 7) + f"def f{i % 50}():\n  {'x = 1;' * (i % 3)} check()\nf{i % 50}()", space)
        if i == 5000:
            size, generation = probe.probe_ledger_size(), probe.probe_generation()
    assert probe.probe_ledger_size() == size, (size, probe.probe_ledger_size())
    assert probe.probe_generation() > generation


def exceptions():
    try:
        raise ValueError
    except ValueError:
        check()
    finally:
        check()
    try:
        try:
            1 / 0
        finally:
            check()
    except ZeroDivisionError as error:
        check(error.__traceback__.tb_lineno)

    class Raised(Exception):
        def __init__(self):
            check()
            raise KeyError
    with contextlib.suppress(KeyError):
        raise Raised


class Dying:
    def __del__(self):
        check()


def destructors():
    Dying()

    def at_return():
        value = Dying()
        return 1 if value else 2

    def at_the_loop_end():
        for value in [Dying(), Dying()]:
            pass
    at_return(), at_the_loop_end()
    list(map(lambda x: Dying() and 1, [1, 2]))
    cycle = Dying()
    cycle.self = cycle
    del cycle
    gc.collect()
    target = Dying()
    reference = weakref.ref(target, check)
    del target
    assert reference() is None


def collector():
    def at_collection(phase, info):
        check()
    gc.callbacks.append(at_collection)
    gc.collect()
    gc.callbacks.remove(at_collection)


def tracing():
    def trace(frame, event, argument):
        if frame.f_code.co_name == "traced":
            check()
        return trace

    def traced():
        x = 1
        return [y for y in (x, 2)]
    sys.settrace(trace)
    traced()
    sys.settrace(None)
    sys.setprofile(lambda frame, event, argument: event == "call" and frame.f_code.co_name == "traced" and check())
    traced()
    sys.setprofile(None)
    if hasattr(sys, "monitoring"):
        monitoring = sys.monitoring
        monitoring.use_tool_id(1, "probe")
        monitoring.register_callback(1, monitoring.events.LINE, lambda code, line: code.co_name == "traced" and check())
        monitoring.set_events(1, monitoring.events.LINE)
        traced()
        check()
        monitoring.set_events(1, 0)
        monitoring.free_tool_id(1)


def signals():
    signal.signal(signal.SIGUSR1, check)
    signal.raise_signal(signal.SIGUSR1)
    list(map(lambda x: signal.raise_signal(signal.SIGUSR1), range(3)))


def threads():
    failed = []

    def work():
        try:
            for _ in range(5):
                recursion(20), through_c(5), list(counting(2)), callbacks()
        except BaseException as error:
            failed.append(error)
    workers = [threading.Thread(target=work) for _ in range(6)]
    [w.start() for w in workers], work(), [w.join() for w in workers]
    assert not failed, failed[0]


def threads_from_c():
    """Python runs on a thread that Python did not make, so there are no outer Python frames."""
    failed = []

    @ctypes.CFUNCTYPE(ctypes.c_void_p)
    def work():
        try:
            check(), recursion(10), through_c(5)
        except BaseException as error:
            failed.append(error)
    for _ in range(5):
        probe.probe_thread(work)
    assert not failed, failed[0]


def subinterpreters():
    """Frames of the subinterpreter are seen. Those of the interpreter that called it are seen only in 3.11."""
    names = {(3, 11): "_xxsubinterpreters", (3, 12): "_xxsubinterpreters"}
    module = __import__(names.get(sys.version_info[:2], "_interpreters"))
    interpreter = module.create(isolated=False) if sys.version_info < (3, 13) else module.create("legacy")
    run = getattr(module, "run_string", None) or module.exec
    script = (f"import sys; sys.argv = ['', {sys.argv[1]!r}, 'sub']\nexec(compile(open({__file__!r}).read(), "
              f"{__file__!r}, 'exec'))")
    result = run(interpreter, script)
    assert result is None, result
    module.destroy(interpreter)
    check()


def forked():
    pid = os.fork()
    if not pid:
        status = 1
        try:
            probe.probe_child_begins()
            check(), through_c(), threads(), compiled_code()
            status = 0
        finally:
            os._exit(status)
    assert os.waitpid(pid, 0)[1] == 0


def in_the_subinterpreter():
    """In 3.11 the thread state of a subinterpreter is found only while the thread has the GIL."""
    libraries = (with_gil,) if sys.version_info < (3, 12) else (probe, with_gil)

    class Local:
        def method(self):
            for library in libraries:
                status, want = seen(library), expected(sys._getframe())
                compare(status, local.buffer.value, want, more=True)
    Local().method()
    list(map(lambda _: Local().method(), range(3)))
    assert sys.version_info < (3, 12) or probe.probe_lost() > 0  # frames of the calling interpreter


if __name__ == "__main__" and sys.argv[2:] == ["sub"]:
    in_the_subinterpreter()
elif __name__ == "__main__":
    start = time.monotonic()
    for test in (plain_calls, recursion, deep_recursion, through_c, mixed, callbacks, ctypes_callback, generators,
                 event_loop, classes, comprehensions, compiled_code, exceptions, destructors, collector, tracing,
                 signals, threads, threads_from_c, forked, dying_code):
        test()
    assert probe.probe_lost() == 0, probe.probe_lost()
    subinterpreters()
    atexit.register(check)
    print(f"{sys.version.split()[0]}: {counts['chains']} chains, {counts['frames']} frames, "
          f"{time.monotonic() - start:.1f} s")
