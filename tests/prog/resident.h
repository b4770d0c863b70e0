/* resident.h — the resident memory of the process, asked of the kernel without using the heap. Needs expect.h. */
#ifndef RESIDENT_H
#define RESIDENT_H

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

/* In bytes. */
static uint64_t resident(void) {
    char text[128] = "";
    unsigned long pages = 0;
    int fd = open("/proc/self/statm", O_RDONLY);
    MUST(read(fd, text, sizeof text - 1) > 0 && sscanf(text, "%*u %lu", &pages) == 1);
    close(fd);
    return pages * 4096;
}

#endif
