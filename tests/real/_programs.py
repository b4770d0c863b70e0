"""The table of real/broad: real programs, how to install them, and a task for each that takes memory and has the same
output each time."""
import dataclasses, pathlib

MIMALLOC = "build/deps/cmeel-mimalloc/cmeel.prefix/lib/mimalloc-3.4/libmimalloc.a"


@dataclasses.dataclass
class Program:
    name: str
    needs: list             # deb:PACKAGE, pip:SPEC, cargo:NAME, path:COMMAND (a command in the PATH of the caller)
    # bash runs this script in an empty folder. The script may use $MADE, $HOME, $TMPDIR, $PORT (free, on 127.0.0.1),
    # $ROOT and $PYTHON
    script: str
    prepare: str = ""       # for bash -e, once, in the folder $MADE, without memstow
    names: tuple = ()       # processes whose ledgers must say that they allocated; by default: the first word of `name`
    unseen: str = ""        # the reason why the processes in `names` have allocated nothing, or have no ledger
    frames: str = ""        # the reason why call stacks end early
    killed: tuple = ()      # processes that normally end by a signal, or by a raw system call that is not seen (Go's)
    differs: tuple = ()     # (pattern, replacement, reason) of text that differs between two runs without memstow
    exit: int = 0
    as_nobody: bool = False # it refuses to run as root
    timeout: int = 300      # seconds for each run, on a machine that does other things, too

    def __post_init__(self):
        self.names = self.names or (self.name.split()[0],)


# The order in which _exerciser.c's threads run decides what the program holds at its end.
EXERCISER = ((r"^\d+ \d+$", "bytes blocks", "its threads free each other's blocks, in an order by chance"),)

# Shell functions for all scripts. `await COMMAND…` runs the command until it succeeds, for about a minute. `answers
# PORT` succeeds if a server listens at the port.
SHARED = r"""
await() { for _ in $(seq 600); do "$@" >/dev/null 2>&1 && return; sleep 0.1; done; echo "no success: $*"; return 1; }
answers() { (exec 3<>/dev/tcp/127.0.0.1/"$1"); }
"""

JIT = "code that it makes as it runs has no unwind information"

PAGE = r"""cat >page.html <<'END'
<html><body><script>
let words = {};
for (let i = 0; i < 200000; i++) words['word' + i % 5000] = (words['word' + i % 5000] || 0) + i;
for (let i = 0; i < 300; i++)
    document.body.appendChild(document.createElement('p')).textContent = 'line ' + words['word' + i];
</script></body></html>
END
"""

BROWSERS = [
    Program("chromium", ["deb:chromium"], r"""
        chromium --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --log-level=3 --user-data-dir=profile \
            --virtual-time-budget=5000 --dump-dom "file://$MADE/page.html" 2>/dev/null
        """, prepare=PAGE, killed=("chromium",)), # it ends its helpers by SIGTERM
    Program("chromium in its sandbox", ["deb:chromium"], r"""
        chromium --headless --disable-gpu --disable-dev-shm-usage --log-level=3 --user-data-dir=profile \
            --virtual-time-budget=5000 --dump-dom "file://$MADE/page.html" 2>/dev/null""",
            prepare=PAGE, as_nobody=True, killed=("chromium",)),
    Program("firefox", ["deb:firefox-esr"], r"""
        MOZ_HEADLESS=1 timeout 250 firefox-esr --no-remote --profile "$TMPDIR" --window-size=600,400 \
            --screenshot "$PWD/shot.png" "file://$MADE/page.html" 2>/dev/null
        file -b shot.png
        """, prepare=r"""
        {
            echo '<html><body>'
            for i in $(seq 500); do echo "<p style='color:#$((100 + i))'>line $i</p>"; done
        } >page.html
        """, names=("firefox-esr",), killed=("firefox-esr",)), # Firefox ends its helpers so, too
]

RUST = r"""cat >main.rs <<'END'
use std::collections::{BTreeMap, HashMap};
use std::thread;
fn main() {
    let parts: Vec<_> = (0..4u64).map(|n| thread::spawn(move || {
        let mut words: HashMap<String, Vec<u64>> = HashMap::new();
        for i in 0..50_000 { words.entry(format!("word{}", (i * n) % 997)).or_default().push(i); }
        words.into_iter().map(|(k, v)| (k, v.iter().sum::<u64>())).collect::<BTreeMap<_, _>>()
    })).collect();
    for part in parts { println!("{:?}", part.join().unwrap().iter().take(5).collect::<Vec<_>>()); }
}
END
"""

CARGO_TIME = ((r"finished in [\d.]+s", "finished", "it measures time"),)

LANGUAGES = [
    Program("rustc", ["deb:rustc"], r"""
        rustc -O "$MADE/main.rs" -o main && ./main""", names=("rustc", "main"), prepare=RUST),
    Program("rustc of rustup", ["path:rustup"], r"""
        "$(cat "$MADE/rustc")" -O "$MADE/main.rs" -o main && ./main""", names=("rustc", "main"), prepare=RUST + r"""
        HOME=$CALLERS_HOME PATH=$CALLERS_PATH rustup which rustc >rustc"""),
    Program("rust with jemalloc", ["deb:rustc", "deb:libjemalloc-dev"], '"$MADE/main"', names=("main",),
            prepare=RUST + "rustc -O main.rs -C link-args='-rdynamic -l:libjemalloc.a -lstdc++ -lm'"),
    Program("cargo", ["deb:cargo"], r"""
        cp -r "$MADE/it" . && cd it && cargo test --offline --quiet 2>&1 && cargo run --offline --quiet""",
            names=("cargo", "rustc", "it"),
            prepare="mkdir it && cd it && cargo init --quiet --vcs none --name it", differs=CARGO_TIME),
    Program("cargo of rustup", ["path:rustup"], r"""
        export PATH=$(dirname "$(cat "$MADE/cargo")"):$PATH
        cp -r "$MADE/it" . && cd it && cargo test --offline --quiet 2>&1 && cargo run --offline --quiet""",
            names=("cargo", "rustc", "it"),
            prepare=r"""HOME=$CALLERS_HOME PATH=$CALLERS_PATH rustup which cargo >cargo
        mkdir it && cd it && "$(cat ../cargo)" init --quiet --vcs none --name it""", differs=CARGO_TIME),
    Program("node", ["deb:nodejs"], r"""
        /usr/bin/node -e '
        const zlib = require("zlib"), {Worker} = require("worker_threads");
        const all = [];
        for (let i = 0; i < 200000; i++) all.push({i, text: "text" + i});
        console.log(all.reduce((sum, x) => sum + x.text.length, 0), zlib.gzipSync(JSON.stringify(all)).length);
        new Worker("const {parentPort} = require(\"worker_threads\");" +
                   "parentPort.postMessage(Buffer.alloc(5000000, 7).length)", {eval: true})
            .on("message", n => console.log(n)).on("exit", code => console.log("exit", code));'""", frames=JIT),
    Program("java", ["deb:default-jdk-headless"], r"""
        javac -d . "$MADE/Hello.java" && java -Xmx200m -cp . Hello""", names=("java", "javac"), prepare=r"""
cat >Hello.java <<'END'
import java.util.*;
import java.util.stream.*;
public class Hello {
    public static void main(String[] arguments) throws Exception {
        Map<Integer, List<String>> groups = IntStream.range(0, 200000).boxed().collect(
            Collectors.groupingBy(i -> i % 100, TreeMap::new, Collectors.mapping(i -> "s" + i, Collectors.toList())));
        System.out.println(groups.get(7).size() + " " + groups.get(9).get(3));
        java.nio.ByteBuffer direct = java.nio.ByteBuffer.allocateDirect(8 << 20);
        Thread[] threads = new Thread[8];
        for (int t = 0; t < 8; t++) {
            threads[t] = new Thread(() -> { long s = 0; for (int i = 0; i < 1000000; i++) s += i; });
            threads[t].start();
        }
        for (Thread t : threads) t.join();
        System.out.println(direct.capacity());
        System.exit(3);
    }
}
END
""", exit=3, frames=JIT),
    Program(
        "go without cgo", ["deb:golang-go"], r"""CGO_ENABLED=0 go build -o plain "$MADE/main.go" && ./plain""",
        names=("plain", ), unseen="a static executable, which no library can be loaded into", killed=("go", ),
        prepare=(GO := r"""
cat >main.go <<'END'
package main
import ("fmt"; "os"; "sort"; "sync")
func main() {
    var wait sync.WaitGroup
    sums := make([]int, 8)
    for n := range sums {
        wait.Add(1)
        go func(n int) {
            defer wait.Done()
            words := map[string]int{}
            for i := 0; i < 100000; i++ { words[fmt.Sprint("word", i%5000)] += i * n }
            for _, v := range words { sums[n] += v }
        }(n)
    }
    wait.Wait()
    sort.Ints(sums)
    fmt.Println(sums)
    os.Exit(4)
}
END
"""), exit=4),
    Program("go with cgo", ["deb:golang-go"], r"""CGO_ENABLED=1 go build -o withc "$MADE/main.go" && ./withc""",
            names=("withc", "go"), killed=("withc", "go"), prepare=r"""
cat >main.go <<'END'
package main
// #include <stdlib.h>
// #include <string.h>
// static char *make(size_t size) { return memset(malloc(size), 'x', size); }
import "C"
import ("fmt"; "sync"; "unsafe")
func main() {
    var wait sync.WaitGroup
    lengths := make([]int, 16)
    for n := range lengths {
        wait.Add(1)
        go func(n int) {
            defer wait.Done()
            for i := 1; i < 2000; i++ {
                p := C.make(C.size_t(i * (n + 1)))
                lengths[n] += len(C.GoStringN(p, C.int(i)))
                C.free(unsafe.Pointer(p))
            }
        }(n)
    }
    wait.Wait()
    fmt.Println(lengths)
}
END
"""),
    Program("python3", ["deb:python3", "deb:libpython3.11-testsuite"], r"""
        /usr/bin/python3 -m test -q test_json test_heapq test_zlib test_re 2>&1""", names=("python3",), differs=(
            (r"(?m)^.*(Total duration|load avg|tests in [\d.]+|== ).*\n", "", "it measures time and load"),
            (r"\b[\d.]+ (sec|ms)", "time", "it measures time"))),
    Program("perl", ["deb:perl"], r"""
        perl -e 'my %w; $w{"word" . $_ % 5000} .= $_ for 1 .. 300000;
                 my $s = 0; $s += length for values %w; print "$s\n";
                 die "end\n" unless fork // die; wait; exit 5'""", exit=5),
    Program("ruby", ["deb:ruby"], r"""
        ruby -rjson -rset -e 'a = (1..100000).map { |i| {"i" => i, "t" => "text#{i}"} }
            puts JSON.parse(a.to_json).sum { |x| x["t"].size }
            puts (1..4).map { |n| Thread.new { ("x" * 1000000 * n).size } }.sum(&:value)'"""),
    Program("php", ["deb:php-cli"], r"""
        php -r '$a = []; for ($i = 0; $i < 300000; $i++) $a["k" . $i % 7000][] = str_repeat("x", $i % 50);
            echo count($a), " ", strlen(serialize($a)), " ", md5(json_encode($a)), "\n";'"""),
    Program("lua", ["deb:lua5.4"], r"""
        lua5.4 -e 'local t = {} for i = 1, 300000 do t[i] = {i, "s" .. i % 1000} end local s = 0
            for _, v in ipairs(t) do s = s + #v[2] end print(s, #table.concat({("x"):rep(1000000)}))'""",
            names=("lua5.4",)),
    Program("tcl", ["deb:tcl"], r"""
        echo 'for {set i 0} {$i < 200000} {incr i} {dict lappend d [expr {$i % 1000}] $i}; puts [string length $d]' |
            tclsh""",
            names=("tclsh",)),
    Program("guile", ["deb:guile-3.0"], r"""
        guile --no-auto-compile -c '(let loop ((i 0) (l (list))) (if (< i 300000)
            (loop (+ i 1) (cons (number->string i) l))
            (begin (display (apply + (map string-length l))) (newline))))'"""),
    Program("ocaml", ["deb:ocaml-nox"], r"""cp "$MADE/a.ml" . && ocamlopt -o a a.ml && ./a && ocaml a.ml""",
            names=("a", "ocamlopt", "ocamlrun"), prepare=r"""
        echo 'let () = let h = Hashtbl.create 10 in
              for i = 1 to 200000 do Hashtbl.replace h (string_of_int i) (Array.make 10 i) done;
              Printf.printf "%d\n" (Hashtbl.fold (fun _ a s -> s + a.(3)) h 0)' >a.ml"""),
    Program("ghc", ["deb:ghc"], r"""
        cp "$MADE/Main.hs" . && ghc -O0 -v0 Main.hs && ./Main""", names=("ghc", "Main"), prepare=r"""
        printf '%s\n' 'import qualified Data.Map as M' \
            'main = print $ M.foldr (+) 0 $ M.fromListWith (+) [(i `mod` 1000, i) | i <- [1..200000]]' >Main.hs
        """),
    Program("sbcl", ["deb:sbcl"], r"""
        sbcl --noinform --no-userinit --non-interactive --eval '(let ((h (make-hash-table)))
            (dotimes (i 200000) (setf (gethash i h) (make-array 5)))
            (print (hash-table-count h)) (terpri))'"""),
    Program("swipl", ["deb:swi-prolog-nox"], r"""
        swipl -g 'numlist(1, 200000, L), foldl([X, S, T]>>(T is S + X), L, 0, R), print(R), nl' -t halt"""),
    Program("erl", ["deb:erlang-base"], r"""
        erl -noshell -eval 'L = [{I, integer_to_list(I)} || I <- lists:seq(1, 200000)], M = maps:from_list(L),
            io:format("~p ~p~n", [maps:size(M), lists:sum([length(T) || {_, T} <- L])]), halt(0).'""",
            names=("beam.smp",), killed=("inet_gethost",)),
    Program("R", ["deb:r-base-core"], r"""
        Rscript --vanilla -e 'set.seed(1); x <- matrix(rnorm(250000), 500);
            print(round(sum(solve(crossprod(x) + diag(500))), 6));
            print(head(sort(table(sample(letters, 1e5, TRUE)))))'"""),
    Program("octave", ["deb:octave"], r"""
        octave-cli --norc --eval 'a = magic(300); printf("%.6f %d\n", norm(a), rank(a));
            c = num2cell(1:50000); disp(numel(c))'""",
            names=("octave-cli",)),
]

COMPILERS = [
    Program("gcc", ["deb:gcc", "deb:g++"], r"""
        gcc -O2 -g -pthread -fno-builtin "$ROOT/tests/real/_exerciser.c" -o c && g++ -O1 "$MADE/a.cc" -o cc && ./c &&
            ./cc
        printf 'int main(void) { return undeclared; }' | gcc -x c -; echo $?""",
            names=("cc1", "cc1plus", "gcc", "as", "ld", "c", "cc"),
            differs=EXERCISER, prepare=(CC := r"""
cat >a.cc <<'END'
#include <algorithm>
#include <iostream>
#include <map>
#include <regex>
#include <string>
#include <thread>
#include <vector>
int main() {
    std::map<std::string, std::vector<int>> words;
    for (int i = 0; i < 100000; i++) words["word" + std::to_string(i % 3000)].push_back(i);
    size_t matched = 0;
    for (auto &[word, numbers] : words) matched += std::regex_match(word, std::regex("word[0-9]*7"));
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; t++) threads.emplace_back([] { std::vector<std::string> v(10000, std::string(100, 'x')); });
    for (auto &thread : threads) thread.join();
    std::cout << words.size() << " words, " << matched << '\n';
    try { words.at("none"); } catch (const std::exception &error) { std::cout << error.what() << '\n'; }
}
END
""")),
    Program("clang", ["deb:clang"], r"""
        clang -O2 -g -pthread -fno-builtin -w "$ROOT/tests/real/_exerciser.c" -o c &&
            clang++ -O1 "$MADE/a.cc" -o cc && ./c && ./cc
        printf 'int main(void) { return undeclared; }' | clang -x c -; echo $?""",
            names=("clang", "c"), differs=EXERCISER, prepare=CC),
    Program("make", ["deb:make", "deb:gcc"], r"""
        for i in $(seq 20); do echo "int f$i(void) { return $i; }" >f$i.c; done
        printf 'all: $(patsubst %%.c,%%.o,$(sort $(wildcard *.c)))\n\t@echo $^\n%%.o: %%.c\n\t@$(CC) -c $<\n' >Makefile
        make -j2 && make -q; echo $?"""),
    Program("cmake", ["deb:cmake", "deb:ninja-build", "deb:gcc"], r"""
        cp "$MADE"/* . && cmake -G Ninja -S . -B b -DCMAKE_BUILD_TYPE=Release && ninja -C b -j2 && b/it""", prepare=r"""
        echo 'int main(void) { return 0; }' >it.c
        printf 'cmake_minimum_required(VERSION 3.20)\nproject(it C)\nadd_executable(it it.c)\n' >CMakeLists.txt""",
            names=("cmake", "ninja"),
            differs=((r"done \([\d.]+s\)", "done", "it measures time"),)),
    Program("nasm", ["deb:nasm"], r"""
        {
            echo 'section .data'
            for i in $(seq 20000); do echo "l$i: dq l$i, $i"; done
        } >a.asm && nasm -f elf64 a.asm && cksum a.o"""),
    Program("binutils", ["deb:binutils"], r"""
        objdump -d /usr/bin/perl | tail -n 5; nm -D /usr/lib/x86_64-linux-gnu/libc.so.6 | wc -l
        readelf -aW /usr/bin/perl | cksum""",
            names=("objdump", "nm", "readelf")),
]

SERVERS = [
    Program("postgres", ["deb:postgresql-15"], r"""
        PATH=/usr/lib/postgresql/15/bin:$PATH
        initdb -A trust -D data --no-sync >initdb.log || { cat initdb.log; exit 1; }
        echo 'select count(*), sum(length(md5(i::text))) from generate_series(1, 50000) i' |
            postgres --single -c log_checkpoints=off -D data postgres | grep -o '"[0-9]*"'
        pg_ctl -D data -o "-k $TMPDIR -c listen_addresses= -c autovacuum=off -c fsync=off" -l log -w start >started ||
            { cat log; exit 1; }
        psql -h "$TMPDIR" -U nobody -At postgres \
            -c 'create table t as select i, md5(i::text) m from generate_series(1, 30000) i' \
            -c 'create index on t (m)' -c 'select count(distinct substr(m, 1, 2)), max(m) from t'
        pg_ctl -D data -m fast -w stop""", names=("postgres", "initdb", "psql"), as_nobody=True),
    Program("mariadb", ["deb:mariadb-server-core", "deb:mariadb-client-core"], r"""
        me=$(id -un)
        mariadbd --no-defaults --bootstrap --user="$me" --datadir="$PWD" </dev/null 2>boot || { cat boot; exit 1; }
        mariadbd --no-defaults --user="$me" --datadir="$PWD" --skip-networking --skip-grant-tables \
            --socket="$TMPDIR/s" 2>log & pid=$!
        await mariadb --no-defaults -S "$TMPDIR/s" -e 'create database d'
        mariadb --no-defaults -S "$TMPDIR/s" d -e 'create table t (i int primary key, s varchar(100));
            insert into t select seq, md5(seq) from seq_1_to_20000; select count(*), max(s) from t where s like "%77%"'
        kill $pid; wait $pid; echo $?""", names=("mariadbd", "mariadb")),
    Program("nginx", ["deb:nginx-light", "deb:curl"], r"""
        seq 100000 >index.html; mkdir logs
        cat >conf <<END
worker_processes 2; pid $PWD/pid; error_log $PWD/error; user $(id -un);
events {}
http { access_log off; gzip on; gzip_types *; client_body_temp_path $PWD/b; proxy_temp_path $PWD/p;
       fastcgi_temp_path $PWD/f; uwsgi_temp_path $PWD/u; scgi_temp_path $PWD/s;
       server { listen 127.0.0.1:$PORT; root $PWD; } }
END
        chmod 755 . ..
        nginx -t -c "$PWD/conf" && nginx -c "$PWD/conf" && await answers $PORT
        for i in 1 2 3; do curl -s --compressed http://127.0.0.1:$PORT/ | cksum; done
        curl -s -o /dev/null -w '%{http_code}\n' http://127.0.0.1:$PORT/none
        nginx -c "$PWD/conf" -s quit; while [ -e pid ]; do sleep 0.1; done""", names=("nginx", "curl"),
            differs=((r"^\S+ \S+ \[notice\] \d+#\d+:", "[notice]", "the time and a process id"),)),
    Program("redis", ["deb:redis-server", "deb:redis-tools"], r"""
        redis-server --unixsocket "$TMPDIR/s" --port 0 --save '' >log &
        await redis-cli -s "$TMPDIR/s" ping
        redis-benchmark -s "$TMPDIR/s" -q -n 20000 -r 1000 -t set,get,lpush,zadd >benchmark; echo $?
        x=$(printf '%0500d' 0); for i in $(seq 500); do echo "set k$i $i$x"
        done | redis-cli -s "$TMPDIR/s" | sort | uniq -c
        redis-cli -s "$TMPDIR/s" --raw eval '
            local s = 0 for i = 1, 500 do s = s + #redis.call("get", "k" .. i) end return s' 0
        redis-cli -s "$TMPDIR/s" shutdown nosave; wait""", names=("redis-server", "redis-cli", "redis-benchmark")),
    Program("memcached", ["deb:memcached"], r"""
        memcached -u "$(id -un)" -s "$TMPDIR/s" -t 2 & pid=$!
        while [ ! -S "$TMPDIR/s" ]; do sleep 0.1; done
        $PYTHON - <<'END'
import os, socket
s = socket.socket(socket.AF_UNIX); s.connect(os.environ["TMPDIR"] + "/s"); f = s.makefile("rb")
for i in range(5000):
    s.sendall(b"set k%d 0 0 500\r\n%0500d\r\n" % (i, i)); assert f.readline() == b"STORED\r\n"
s.sendall(b"get k4321\r\n"); print(f.readline(), int(f.readline()))
END
        kill $pid; wait $pid""", names=("memcached",)),
    Program("haproxy", ["deb:haproxy", "deb:curl", "deb:python3"], r"""
        seq 50000 >page; $PYTHON -m http.server --bind 127.0.0.1 --directory . "$PORT" >server 2>&1 & server=$!
        printf '%s\n' global ' maxconn 100' ' nbthread 2' defaults ' mode http' ' timeout connect 9s' \
            ' timeout client 9s' ' timeout server 9s' \
            'listen l' " bind unix@$TMPDIR/s" " server s 127.0.0.1:$PORT" >conf
        await answers $PORT; haproxy -c -f conf; haproxy -f conf 2>log & pid=$!
        await curl -s --unix-socket "$TMPDIR/s" http://x/page
        curl -s --unix-socket "$TMPDIR/s" http://x/page | cksum; kill $pid; wait $pid; echo $?; kill $server
        wait $server; echo $?""",
            killed=("haproxy", "python", "python3")),
    Program("dnsmasq", ["deb:dnsmasq-base"], r"""
        for i in $(seq 3000); do echo "10.0.$((i / 250)).$((i % 250)) host$i.test"; done >hosts
        dnsmasq --test -C /dev/null
        dnsmasq -k -C /dev/null -u "$(id -un)" -p "$PORT" --listen-address=127.0.0.1 --bind-interfaces \
            -h -H "$PWD/hosts" -R -x "" & pid=$!
        $PYTHON - <<'END'
import os, socket, time
query = b"\0\7\1\0\0\1\0\0\0\0\0\0" + b"\7host777\4test\0" + b"\0\1\0\1"
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(0.5)
for _ in range(100):
    try:
        s.sendto(query, ("127.0.0.1", int(os.environ["PORT"]))); print(socket.inet_ntoa(s.recv(500)[-4:])); break
    except OSError: time.sleep(0.1)
END
        kill $pid; wait $pid; echo $?"""),
]

TOOLS = [
    Program("gdb", ["deb:gdb", "deb:gcc"], r"""
        gdb -nx --batch -ex 'set debuginfod enabled off' -ex 'break last' -ex run -ex backtrace -ex 'print sum' \
            -ex continue "$MADE/it" 2>&1""",
            names=("gdb", "it"), prepare=(DEBUGGED := r"""
cat >it.c <<'END'
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
__attribute__((noinline)) long last(long sum) { return sum + 1; }
int main(void) {
    long sum = 0;
    for (int i = 1; i < 2000; i++) {
        char *p = memset(malloc(i), 1, i);
        sum += p[i / 2];
        free(p);
    }
    printf("%ld\n", last(sum));
    return 7;
}
END
gcc -g -O0 -fno-builtin it.c -o it"""), differs=((r"\(process \d+\)|process \d+", "process", "a process id"),)),
    Program("lldb", ["deb:lldb", "deb:gcc"], r"""
        lldb --no-lldbinit --batch -o 'break set -n last' -o run -o 'print sum' -o continue "$MADE/it" 2>&1""",
            names=("lldb", "it"), killed=("lldb-server-14.0.6", "lldb-server"),
            prepare=DEBUGGED, differs=((r"Process \d+", "process", "a process id"),)),
    Program("valgrind", ["deb:valgrind", "deb:gcc"], r"""
        valgrind -q --error-exitcode=9 --leak-check=full "$MADE/it"; echo $?
        valgrind -q --tool=helgrind --error-exitcode=9 "$MADE/it"; echo $?""",
            names=("it",), prepare=DEBUGGED, unseen="Valgrind serves the heap, and the program maps nothing"),
    Program("strace", ["deb:strace", "deb:gcc"], r"""
        strace -f -o trace sh -c "$MADE/it; ls / >list"; echo $?; grep -c 'execve.* = 0$' trace
        strace -c -o count "$MADE/it"; echo $?""",
            names=("strace", "it"), prepare=DEBUGGED),
    Program("ltrace", ["deb:ltrace", "deb:gcc"], r"""ltrace -o trace -e malloc "$MADE/it"; echo $?
        grep -c malloc trace""",
            names=("it",), prepare=DEBUGGED),
    Program("bwrap", ["deb:bubblewrap"], r"""
        bwrap --ro-bind / / --dev /dev --proc /proc --tmpfs /mnt --bind "$PWD/.." "$PWD/.." \
            --unshare-all --die-with-parent perl -e 'my @a = map { "x" x $_ } 1 .. 3000;
                     print scalar(@a), " $$\n"; exit 6'; echo $?""",
            # The sandbox's first process ends by itself, or is killed when the outer process ends (--die-with-parent).
            names=("bwrap", "perl"), killed=("bwrap",)),
    Program("unshare", ["deb:util-linux"], r"""
        unshare --user --map-root-user --pid --fork --mount-proc \
            perl -e 'print "$$ $<\n"; my @a = map { "x" x $_ } 1 .. 3000'""",
            names=("perl",)),
    Program("seccomp", ["deb:seccomp", "deb:libseccomp-dev", "deb:gcc"], r"""scmp_sys_resolver openat; "$MADE/it"
        file -b "$MADE/it" | cut -d, -f1""",
            names=("it", "file"), prepare=r"""cat >it.c <<'END'
#include <errno.h>
#include <seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
int main(void) {
    printf("%u %d\n", seccomp_api_get(), seccomp_syscall_resolve_name("mmap"));
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
    seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(openat), 0);
    free(malloc(5000000));
    printf("%d\n", seccomp_load(filter));
    seccomp_release(filter);
    printf("%d\n", fopen("/etc/passwd", "r") == NULL);
    for (int i = 0; i < 100; i++) free(malloc(100000 * i));
    return 0;
}
END
gcc -O1 -fno-builtin it.c -o it -lseccomp"""),
    Program("systemd-analyze", ["deb:systemd"], r"""
        systemd-analyze calendar --iterations=1 --base-time='2030-01-01 UTC' 'Mon *-*-* 10:00' 2>&1
        systemd-analyze syscall-filter @io-event; systemd-id128 new | wc -c; systemd-detect-virt >virt""",
            differs=((r"(?m)^ *From now: .*$", "From now", "it is told from the present time"),)),
    Program("git", ["deb:git"], r"""
        git init -q -b main . && git config user.email a@b && git config user.name a
        export GIT_AUTHOR_DATE='2020-01-01T00:00:00Z' GIT_COMMITTER_DATE='2020-01-01T00:00:00Z'
        for i in $(seq 10); do seq $((i * 1000)) >f$i; git add . && git commit -q -m "number $i"; done
        git log --oneline --stat | cksum; git gc -q; git fsck --no-progress; git blame f3 | cksum
        git rev-parse HEAD; git clone -q . other; ls other"""),
    Program("sqlite3", ["deb:sqlite3"], r"""
        sqlite3 db 'create table t (i integer primary key, s text);
            with recursive c(x) as (select 1 union all select x + 1 from c where x < 50000)
            insert into t select x, hex(x * 7) from c; create index ts on t (s);
            select count(*), max(s) from t;
            select substr(s, 1, 2) p, count(*) from t group by p order by 2 desc limit 5; pragma integrity_check'"""),
    Program("curl", ["deb:curl", "deb:python3"], r"""
        seq 100000 >page; $PYTHON -m http.server --bind 127.0.0.1 "$PORT" >server 2>&1 & server=$!
        await answers $PORT; curl -s "http://127.0.0.1:$PORT/page" "file://$PWD/page" | cksum
        curl -sS "http://127.0.0.1:1/"; echo $?; kill $server; wait $server; echo $?""",
            killed=("python", "python3")),
    Program("openssl", ["deb:openssl"], r"""
        openssl req -x509 -newkey rsa:2048 -nodes -subj /CN=x -keyout key -out cert -days 3 2>/dev/null
        openssl verify -CAfile cert cert
        seq 200000 | openssl enc -aes-256-cbc -pbkdf2 -k x -S 0102030405060708 | openssl dgst -sha256
        openssl s_server -accept "127.0.0.1:$PORT" -key key -cert cert -www -quiet >server 2>&1 & server=$!
        await answers $PORT
        printf 'GET / HTTP/1.0\n\n' | openssl s_client -quiet -connect "127.0.0.1:$PORT" 2>/dev/null | grep -c Cipher
        kill $server; wait $server; echo $?""", killed=("openssl",)),
    Program("tar", ["deb:tar", "deb:xz-utils", "deb:zstd", "deb:bzip2", "deb:gzip"], r"""
        mkdir d; seq 500000 | split -l 10000 - d/f
        for how in -z -j -J --zstd; do
            tar -c $how -f a --mtime=@0 --owner=0 --group=0 --sort=name d
            tar -x $how -O -f a | cksum
        done
        tar -c d | xz -9 -T2 | xz -d | zstd -19 -T2 -q | zstd -d | tar -t | wc -l""",
            names=("tar", "xz", "zstd", "bzip2")),
    Program("7z", ["deb:p7zip-full", "deb:brotli", "deb:lz4"], r"""
        seq 300000 >f; 7z a -bd -mmt2 a.7z f >log && 7z x -so a.7z | cksum; brotli -q 9 -c f | brotli -d | cksum
        lz4 -9 -c f | lz4 -d | cksum""",
            names=("7z", "brotli", "lz4")),
    Program("rsync", ["deb:rsync"], r"""
        mkdir a; seq 500000 | split -a 1 -l 30000 - a/f
        rsync -a a/ b/ && seq 99 >a/fc && rsync -a --out-format=%n --checksum a/ b/; diff -r a b; echo $?"""),
    Program("jq", ["deb:jq"], r"""
        jq -nc '[range(50000) | {i: ., s: "text\(.)"}] | group_by(.i % 7) |
            map({n: length, l: (map(.s | length) | add)})'"""),
    Program("bc", ["deb:bc", "deb:gawk"], r"""
        echo 'scale=500; 4*a(1)' | bc -l
        gawk 'BEGIN { for (i = 0; i < 200000; i++) a[i % 1000] = a[i % 1000] i
                      for (k in a) n += length(a[k]); print n }'""",
            names=("bc", "gawk")),
    Program("rg", ["deb:ripgrep"], r"""rg --no-config --sort path -c 'the [a-z]+ing' /usr/share/common-licenses
        rg -j2 -uu malloc /usr/include | wc -l"""),
    Program("coreutils", ["deb:coreutils", "deb:findutils", "deb:grep", "deb:sed"], r"""
        seq 300000 | sort -S 20M --parallel=2 -R --random-source=/usr/bin/perl | sort -n | uniq -c | tail -n 1
        find /usr/include -name '*.h' | sort | xargs grep -l malloc | wc -l
        seq 100000 | shuf --random-source=/usr/bin/perl | sed -E 's/([0-9])/<\1>/g' | cksum
        split -n 7 /usr/bin/perl x; cat x* | cmp - /usr/bin/perl; echo $?""",
            names=("sort", "find", "grep", "sed", "shuf")),
    Program("bash", ["deb:bash", "deb:dash"], r"""
        declare -A a; for i in {1..20000}; do a[k$((i % 500))]+=$i; done; n=0; for k in "${!a[@]}"; do
            ((n += ${#a[$k]}))
        done
        echo $n
        sh -c 'kill -TERM $$'; echo $?; (ulimit -v 4000000; perl -e 'print "x" x 5, "\n"'); exit 9""",
            exit=9, killed=("sh", "dash")),
    Program("zsh", ["deb:zsh"], r"""
        zsh -fc 'typeset -A a; for i in {1..20000}; do a[k$((i % 500))]+=$i; done; print ${#${(j::)a}}
            print -l /usr/include/*.h(.N) | wc -l; exit 3'""",
            exit=3),
    Program("fish", ["deb:fish"], r"""
        fish -N -c 'for i in (seq 2000); set -a l x$i; end; count $l; string join "" $l | string length; exit 2'""",
            exit=2),
    Program("vim", ["deb:vim"], r"""seq 20000 >f
        vim -u NONE -es -c '%s/\d\+/<&>/g' -c 'g/7/d' -c 'sort!' -c wq f </dev/null; echo $?; cksum f""",
            names=("vim",)),
    Program("emacs", ["deb:emacs-nox"], r"""
        emacs -Q --batch --eval '(let ((h (make-hash-table :test (quote equal))))
            (dotimes (i 100000) (puthash (format "k%d" i) (make-vector 5 i) h))
            (princ (hash-table-count h))
            (with-temp-buffer (insert-file-contents "/usr/include/stdio.h") (c-mode)
                (princ (count-lines 1 (point-max)))) (terpri))'"""),
    Program("busybox", ["deb:busybox"], r"""busybox seq 50000 | busybox sort -n |
            busybox awk '{ a[$1 % 100] = a[$1 % 100] $1 } END { for (k in a) n += length(a[k]); print n }'"""),
    Program("qemu", ["deb:qemu-user", "deb:busybox"], r"""qemu-x86_64 /usr/bin/busybox seq 100000 | cksum
        qemu-x86_64 /usr/bin/perl -e 'print 6 * 7, "\n"; exit 8'; echo $?""",
            names=("qemu-x86_64",)),
    Program("ffmpeg", ["deb:ffmpeg"], r"""
        ffmpeg -v error -f lavfi -i testsrc2=duration=1:size=320x240:rate=25 -f lavfi -i sine=duration=1 \
            -c:v mpeg4 -c:a aac -bitexact -threads 2 a.mp4
        ffmpeg -v error -i a.mp4 -bitexact -f framemd5 - | cksum
        ffprobe -v error -show_entries stream=codec_name,nb_frames a.mp4""", names=("ffmpeg", "ffprobe")),
    Program("imagemagick", ["deb:imagemagick"], r"""
        convert-im6.q16 -size 600x400 plasma:red-blue -seed 1 -blur 0x3 -resize 50% a.png
        identify-im6.q16 a.png | cut -d' ' -f2-4
        convert-im6.q16 -size 300x200 gradient:red-blue -rotate 30 -quality 90 b.jpg
        identify-im6.q16 -format '%#\n' b.jpg""",
            names=("convert-im6.q16", "identify-im6.q16")),
    Program("gs", ["deb:ghostscript", "deb:poppler-utils"], r"""
        echo '%!PS
/Helvetica findfont 30 scalefont setfont 1 1 20
{ dup 30 mul 50 exch moveto (page line ) show =string cvs show } for showpage' >a.ps
        gs -q -dNOPAUSE -dBATCH -dSAFER -sDEVICE=pdfwrite -sOutputFile=a.pdf a.ps; pdftotext a.pdf - | cksum
        gs -q -dNOPAUSE -dBATCH -sDEVICE=png16m -r50 -sOutputFile=a.png a.pdf; cksum a.png""",
            names=("gs", "pdftotext")),
    Program("pandoc", ["deb:pandoc"], r"""for i in $(seq 300)
        do printf '# Head %d\n\nText *of* [it](x).\n\n- a\n- b\n\n' $i; done | pandoc -f markdown -t html | cksum"""),
    Program("dot", ["deb:graphviz"], r"""{ echo 'digraph {'; for i in $(seq 300)
        do echo "n$i -> n$((i * 7 % 301));"; done; echo '}'; } | dot -Tsvg | cksum"""),
    Program("gnuplot", ["deb:gnuplot-nox"], r"""
        gnuplot -e 'set terminal svg; set samples 20000; plot sin(x)/x, cos(x)' | cksum"""),
    Program("socat", ["deb:socat"], r"""
        socat -u "UNIX-LISTEN:$TMPDIR/s" - >got & while [ ! -S "$TMPDIR/s" ]; do sleep 0.1; done
        seq 100000 | socat -u - "UNIX-CONNECT:$TMPDIR/s"; wait; cksum got"""),
    Program("dpkg", ["deb:dpkg", "deb:apt"], r"""dpkg-query -W -f '${Package}\n' | sort | cksum
        apt-cache show bash | grep -c ^Package; dpkg -L bash | cksum""",
            names=("dpkg-query", "apt-cache")),
]

PYPI = [
    Program("ruff", ["pip:ruff"], r"""cp "$ROOT"/tests/*.py .
        "$(dirname "$PYTHON")/ruff" check --no-cache --isolated --select E,F,W --exit-zero --quiet \
            --output-format concise . | sort | cksum"""),
    Program("numpy", ["pip:numpy"], r"""
        "$PYTHON" -c 'import numpy as n; a = n.random.default_rng(1).random((700, 700))
print(round(float(n.linalg.svd(a)[1].sum()), 6), n.fft.fft(a).shape)'""",
            names=("python",)),
    Program("pyarrow", ["pip:pyarrow"], r"""
        "$PYTHON" -c 'import pyarrow as p, pyarrow.compute as c, pyarrow.parquet as q
for pool in p.supported_memory_backends():
    pools = {"jemalloc": p.jemalloc_memory_pool, "mimalloc": p.mimalloc_memory_pool, "system": p.system_memory_pool}
    p.set_memory_pool(pools[pool]())
    t = p.table({"a": list(range(200000)), "s": [str(i % 999) for i in range(200000)]})
    q.write_table(t, "f")
    print(pool, c.sum(q.read_table("f")["a"]), t.group_by("s").aggregate([("a", "sum")]).num_rows)'""",
            names=("python",)),
    Program("duckdb", ["pip:duckdb"], r"""
        "$PYTHON" -c 'import duckdb
print(duckdb.sql("select i % 100 k, sum(i), count(distinct i::varchar) from range(300000) t(i) "
                 "group by k order by k limit 5").fetchall())'""",
            names=("python",)),
    Program("polars", ["pip:polars"], r"""
        "$PYTHON" -c 'import polars as p; f = p.DataFrame({"a": range(300000)})
print(f.with_columns(k=p.col("a") % 7).group_by("k").agg(p.col("a").sum()).sort("k").rows())'""",
            names=("python",)),
]

CARGO = [
    Program("hexyl", ["cargo:hexyl"], r"""seq 20000 | hexyl --color=never | cksum"""),
    Program("fd", ["cargo:fd-find"], r"""fd --no-ignore -j2 'h$' /usr/include | sort | wc -l"""),
]


def sanitized(name, flags, env="", needs=()):
    """A program that runs twice: without a fault, so that the sanitizer finds nothing, and with a fault that the
    sanitizer finds."""
    compiler, sanitizer = name.split()[:2]
    return Program(name, [f"deb:{compiler}", *needs], rf"""
        {env}
        "$MADE/it" none; echo $?; "$MADE/it" {sanitizer} 2>errors; echo $?
        faults='heap-buffer-overflow|data race|use-of-uninit[a-z-]*|detected memory leaks|integer overflow'
        grep -o -m 1 -E "$faults" errors""",
        names=("it", ), killed=("it", ),  # most sanitizers end a program by a raw system call
        prepare=SANITIZED + f"{compiler} -g -O1 -w -fno-builtin -pthread -fsanitize={sanitizer} {flags} it.c -o it")


SANITIZED = r"""
cat >it.c <<'END'
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
static int shared;
static void *volatile kept;
static void *work(void *race) {
    for (int i = 1; i < 3000; i++) free(memset(malloc(i * 7), 1, i * 7));
    if (race) shared++;
    return NULL;
}
int main(int count, char **arguments) {
    char fault = arguments[1][0];
    pthread_t threads[4];
    munmap(mmap(NULL, 1 << 20, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), 1 << 20);
    for (int i = 0; i < 4; i++) pthread_create(&threads[i], NULL, work, fault == 't' ? &shared : NULL);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
    char *p = malloc(100);
    volatile int large = 2147483647;
    if (fault == 'a') p[100] = 1;
    if (fault == 'l') { for (int i = 0; i < 100; i++) kept = malloc(77); kept = NULL; }
    if (fault == 'u') large += count;
    if (fault == 'm' && p[count]) puts("it is");
    free(p);
    puts("end");
    return 0;
}
END
"""
CLANG = ["deb:libclang-rt-14-dev"]
BEHIND = "export ASAN_OPTIONS=verify_asan_link_order=0" # otherwise the library refuses to come behind another
SANITIZERS = [
    sanitized("gcc address static", "-static-libasan"),
    sanitized("gcc address", "", BEHIND),
    sanitized("gcc leak", ""),
    sanitized("gcc thread static", "-static-libtsan"),
    sanitized("gcc thread", ""),
    sanitized("gcc undefined", "-fno-sanitize-recover=all"),
    sanitized("clang address", "", "", CLANG),
    sanitized("clang address shared", "-shared-libsan",
              BEHIND + " LD_LIBRARY_PATH=$(dirname $(clang -print-file-name=libclang_rt.asan-x86_64.so))", CLANG),
    sanitized("clang leak", "", "", CLANG),
    sanitized("clang thread", "", "", CLANG),
    sanitized("clang memory", "", "", CLANG),
    sanitized("clang undefined", "-fno-sanitize-recover=all", "", CLANG),
]


def on_allocators():
    """Programs that run _exerciser.c on each allocator, which is linked as a library, preloaded, or linked
    statically."""
    libraries = {"jemalloc": ("libjemalloc2", "libjemalloc.so.2", ["deb:libjemalloc-dev"],
                              "-l:libjemalloc.a -lm -lstdc++"),
                 "tcmalloc": ("libtcmalloc-minimal4", "libtcmalloc_minimal.so.4", ["deb:libgoogle-perftools-dev"],
                              "-l:libtcmalloc_minimal.a -lstdc++ -lm"),
                 "mimalloc": ("libmimalloc2.0", "libmimalloc.so.2", [], f'"$ROOT"/{MIMALLOC}')}
    build = 'gcc -O1 -g -pthread -fno-builtin -w "$ROOT"/tests/real/_exerciser.c -o it '
    for name, (package, library, development, archive) in libraries.items():
        needs = ["deb:gcc", f"deb:{package}"]
        preload = 'LD_PRELOAD="${LD_PRELOAD:+$LD_PRELOAD:}' + library + '" "$MADE/it"'
        yield Program(f"{name} linked", needs, '"$MADE/it"', build + f"-Wl,--no-as-needed -l:{library}", ("it",),
                      differs=EXERCISER)
        yield Program(f"{name} preloaded", needs, preload, build, ("it",), differs=EXERCISER)
        yield Program(f"{name} static", ["deb:gcc", *development], '"$MADE/it"', build + archive, ("it",),
                      differs=EXERCISER, unseen=name == "tcmalloc" and "the executable defines mmap and sbrk, too"
                      or "")


PROGRAMS = [*BROWSERS, *LANGUAGES, *COMPILERS, *SERVERS, *TOOLS, *PYPI, *CARGO, *SANITIZERS, *on_allocators()]
assert len({p.name for p in PROGRAMS}) == len(PROGRAMS)
