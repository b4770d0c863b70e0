"""A ledger with hostile names: markup, scripts, formulas, control characters, marks of direction, bytes that are no
UTF-8, and a name of a megabyte."""
from _ledger import Ledger

SCRIPT = "<script>window.hit=1</script>"
NAMES = [SCRIPT, "</script>" + SCRIPT, "<!--" + SCRIPT, "]]>" + SCRIPT, "</title>" + SCRIPT, "</style>" + SCRIPT,
         '"><img src=x onerror="window.hit=2">', "<img src=http://127.0.0.1:9/x.png>", "javascript:window.hit=3",
         "<svg/onload=window.hit=4>", "<iframe srcdoc='<script>parent.hit=5</script>'>", "{{7*7}}${7*7}#{7*7}",
         "a\nb\tc\rd\x1b[2J\x07\x7f", "right \u202e to \u202c left \u2066 and \u200b nothing",
         "\udcff\udcfe no UTF-8 \udce0\udc80", "\\u003cscript\\u003e", "__proto__", "constructor", "x" * (1 << 20),
         "", " ", "=cmd|' /C calc'!A0", "+1+1", "-2+3", "@SUM(A1)", " =1", 'a,"b";c 17', "n0: 5 (0x1) a.c:1", "#",
         "&lt;b&gt;&amp;"]


def save(path, times=1, gone=False, curve=False, **header):
    """Writes the file. Returns {name: bytes}. times: a factor of all these bytes. gone: six runs have ended, and the
    owners are retired, but still have their memory. curve: there is memory over time. header: fields of the header."""
    ledger = Ledger(name="<b>\x1b[2J</b>", stacks=2, end_ns=(60 if gone else 3) * 10**9, **header)
    ledger.fact(2, "run </script>" + SCRIPT + " \x9b31m\n#")
    ledger.fact(4, "<img src=x onerror=window.hit=6>")
    outer = ledger.python("outer", "/src/" + SCRIPT, 1)
    owners = [ledger.owner(1, name, name, retired=gone, end_ns=gone * 10**9) for name in NAMES]
    for number in range(6 * gone):
        ledger.owner(3, NAMES[number], retired=1, begin_ns=(10 + number) * 10**9, end_ns=(11 + number) * 10**9,
                     outcome=1)
    for number in range(8 * curve):
        ledger.point((10 + 2 * number) * 10**8, number)
    sizes = {}
    for number, name in enumerate(NAMES):
        site = ledger.site(stack=ledger.node([outer, ledger.python(name, f"/{name}", number)]),
                           tag=ledger.tag(owners[number]))
        sizes[name] = (number + 1) * 70000 * times
        ledger.count(site, alloc=(sizes[name], 1))
        ledger.block(0x10000 * (number + 1), sizes[name], site)
        ledger.line(kind="SET", owner=owners[number], policy=SCRIPT)
        ledger.line(kind="HELD", owner=owners[number],
                    holders=[name[:200].encode(errors="replace").decode()])
    ledger.line(kind="TRIGGER", trigger=1, reason=SCRIPT, text=SCRIPT, owners=1, before_bytes=1)
    ledger.line(kind="DECISION", trigger=1, owner=owners[0], policy=SCRIPT, action=SCRIPT, why=SCRIPT, bytes=1)
    ledger.save(path)
    return sizes
