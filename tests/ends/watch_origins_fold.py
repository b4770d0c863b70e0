"""watch knows the origin of a descriptor or a thread until the end, even if there were so many new stacks that memstow
has folded stacks without live blocks."""
import os, re, signal, subprocess

from support import MEMSTOW, ROOT, compile, report, start

program = compile(r"""
#include "random_stacks.h"
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>
#define APART __attribute__((noinline))
static void *sleep_long(void *none) { sleep(600); return none; }
APART int opens(const char *name) {
    int fd = open(name, O_CREAT | O_RDWR, 0600);
    __asm__ volatile("" ::: "memory");
    return fd;
}
APART int opens_it(const char *name) { int fd = opens(name); __asm__ volatile("" ::: "memory"); return fd; }
APART void starts(void) {
    pthread_t id;
    pthread_create(&id, NULL, sleep_long, NULL);
    __asm__ volatile("" ::: "memory");
}
APART void starts_it(void) { starts(); __asm__ volatile("" ::: "memory"); }
static void at_the_second_time(int number) { static int times; if (times++) _exit(0); (void)number; }
int main(void) {
    signal(SIGTERM, at_the_second_time);
    uint64_t state = first_state(7);
    opens_it("open.txt");
    starts_it();
    for (int i = 0; i < 300000; i++) free(allocate(&state, 1));
    puts("there");
    fclose(stdout);
    for (;;) pause();
}
""", "program", flags=("-O1", "-g", "-pthread", f"-I{ROOT}/tests/prog"))
process = start(MEMSTOW, "watch", "--quiet", "--grace=1s", "--end", "-o", "out.mst", "--", program,
                stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                env={**os.environ, "MEMSTOW_STACK_MEMORY": "3000000"})
process.stdout.readline()
process.send_signal(signal.SIGTERM)
text = process.communicate(timeout=90)[1]
assert re.search(r"opened \S+ s ago:\n +opens  \S+\n +opens_it  \S+\n +main ", text), text
assert re.search(r"started \S+ s ago:\n +starts  \S+\n +starts_it  \S+\n +main ", text), text
assert report("out.mst")["lost"]["folded"] > 10000
