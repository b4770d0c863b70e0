/* cmd_version.c — memstow --version: prints the commit that this command was built from, the versions of its interface
 * and files, and the parts that it was built with. */
#include "include/memstow.h"
#include "preload/shared/snapshot.h"
#include "tools/base/complain.h"
#include "tools/cmd/commands.h"
#include "tools/top/screen.h"

#include <elfutils/libdwfl.h>
#include <memstow_commit.h>
#include <protobuf-c/protobuf-c.h>
#include <stdio.h>
#include <zlib.h>

/* The version of ncurses: "ncurses 6.4.20221231". Without ncurses, a note that there is no `memstow top`. */
static const char *terminal_library(void) {
#ifdef MEMSTOW_NCURSES
    return screen_version();
#else
    return "no ncurses (no top)";
#endif
}

/* Whether the library has probes (preload/count/probe.h). The library and this command are built together, so either
 * both find <sys/sdt.h> or neither does. */
#if __has_include(<sys/sdt.h>)
#define PROBES "otel_memory"
#else
#define PROBES "none"
#endif

int cmd_version(int argc, char **argv) {
    (void)argc, (void)argv;
    puts("memstow " MEMSTOW_VERSION_TEXT);
    puts("commit     " MEMSTOW_COMMIT);
    printf("ABI        %u.%u\n", MEMSTOW_ABI_VERSION >> 16, MEMSTOW_ABI_VERSION & 0xFFFF);
    printf("files      %d.%d\n", SNAP_MAJOR, SNAP_MINOR);
    puts("allocators " MEMSTOW_ALLOCATORS);
    puts("probes     " PROBES);
    printf("libraries  elfutils %s, protobuf-c %s, zlib %s, %s\n", dwfl_version(NULL), protobuf_c_version(),
           zlibVersion(), terminal_library());
    return complain_finish(EXIT_FINE);
}
