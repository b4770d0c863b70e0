#!/usr/bin/env python3
"""A library has its own functions whose names are those of libc's functions, such as open. They get the same arguments
and return the same values as without memstow, whatever their parameters are, even before memstow has begun."""
import support

DECLARED = """
struct pair { long a, b; };
struct big { long words[5]; };
void *dup(void *p);
double creat(double x, int times, double y);
long accept(long a, long b, long c, long d, long e, long f, long g, double h);
struct pair pipe2(long a);
struct big socket(long a);
long double eventfd(long double x);
int open(int count, ...);
void *clone(void *p);
double brk(double x);
void *sbrk(long a, void *p);
"""
OTHERS = DECLARED + r"""
#include <stdlib.h>
void *dup(void *p) { return (char *)p + 1; }
double creat(double x, int times, double y) { return x * times + y; }
long accept(long a, long b, long c, long d, long e, long f, long g, double h) {
    return a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + (long)h;
}
struct pair pipe2(long a) { return (struct pair){a, -a}; }
struct big socket(long a) { return (struct big){{a, a + 1, a + 2, a + 3, a + 4}}; }
long double eventfd(long double x) { return x / 3; }
void *clone(void *p) { return (char *)p + 2; }
double brk(double x) { return x / 4; }
void *sbrk(long a, void *p) { return (char *)p + a; }
#include <stdarg.h>
int open(int count, ...) { /* doubles, of which al says how many there are */
    double sum = 0;
    va_list list;
    va_start(list, count);
    while (count--) sum += va_arg(list, double);
    va_end(list);
    return (int)sum;
}
"""
USE = DECLARED + r"""
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
void use(const char *when);
#define IS(what) if (!(what)) printf("%s: not %s\n", when, #what)
void use(const char *when) {
    char *high = (char *)0x7fffdeadbee0;
    IS(creat(1.5, 3, 0.25) == 4.75);
    IS(dup(high) == high + 1);
    IS(accept(1, 2, 3, 4, 5, 6, 7, 8.5) == 1 + 4 + 9 + 16 + 25 + 36 + 49 + 8);
    IS(pipe2((long)high).a == (long)high && pipe2(7).b == -7);
    IS(socket((long)high).words[4] == (long)high + 4);
    IS(eventfd(1.0L) == 1.0L / 3);
    IS(open(9, 1., 2., 3., 4., 5., 6., 7., 8., 9.) == 45);
    IS(clone(high) == high + 2);
    IS(brk(3.0) == 0.75);
    IS(sbrk(5, high) == high + 5);
    printf("%s: done\n", when);
    fflush(stdout);
}
"""
# A library's constructor makes the first call of each of the functions in FIRST. All arguments must arrive.
EARLY = r"""
#include <stdio.h>
%s
__attribute__((constructor)) static void begin(void) { %s }
void early(void);
void early(void) { use("again"); }
"""
FIRST = {
    "doubles": ("double creat(double, int, double);", "if (creat(1.5, 3, 0.25) != 4.75) puts(\"doubles\");"),
    "words": ("long accept(long, long, long, long, long, long, long, double);",
              "if (accept(1, 2, 3, 4, 5, 6, 7, 8.5) != 148) puts(\"words\");"),
    "many": ("int open(int, ...);", "if (open(3, 1., 2., 4.) != 7) puts(\"many\");"),
    "libc's": ("#include <unistd.h>\nint dup2(int, int);", "if (dup2(1, 57) != 57 || close(57)) puts(\"libc's\");"),
}
PROGRAM = r"""
void use(const char *when);
void early(void);
int main(void) { early(); use("main"); return 0; }
"""


def library(name, text, *linked):
    (support.HERE / f"{name}.c").write_text(text)
    support.run("cc", "-g", "-O1", "-fno-builtin", "-shared", "-fPIC", "-o", f"lib{name}.so", f"{name}.c", *linked,
                "-Wl,-rpath,$ORIGIN")


library("others", OTHERS)
library("use", USE, "./libothers.so")
for first, (declared, called) in FIRST.items():
    # The constructor of this library runs before memstow's: if several libraries ask to be first, the one that is
    # loaded last is first.
    library("early", EARLY % (declared + "\nvoid use(const char *);", called + " use(\"constructor\");"), "./libuse.so",
            "./libothers.so", "-Wl,-z,initfirst")
    (support.HERE / "program.c").write_text(PROGRAM)
    support.run("cc", "-g", "-o", "program", "program.c", "-Wl,--no-as-needed", "./libearly.so", "./libuse.so",
                "./libothers.so", "-Wl,-rpath,$ORIGIN")
    expected = "constructor: done\nagain: done\nmain: done\n"
    assert support.run("./program").stdout == expected
    for options in ((), ("--stacks=none",)):
        said = support.track("./program", options=options).stdout
        assert said == expected, (first, said)
