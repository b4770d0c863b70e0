/* misuse_halves.c HOW — frees a block twice from a library. A second library is loaded at addresses whose lower halves
 * are the same as those of the first library's addresses. If HOW is "large", the block has a mapping of its own.
 * Otherwise, the block is small. Ends with status 99 if the second library did not get such addresses. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>

struct library {
    void *handle;
    void *(*make)(size_t size);
    void (*drop)(void *p), (*drop_again)(void *p);
    uintptr_t start, end; /* whole pages */
};

static uintptr_t end_of(uintptr_t start) {
    const Elf64_Ehdr *elf = (const void *)start;
    const Elf64_Phdr *segments = (const void *)(start + elf->e_phoff);
    uintptr_t end = 0;
    for (int i = 0; i < elf->e_phnum; i++)
        if (segments[i].p_type == PT_LOAD) end = start + segments[i].p_vaddr + segments[i].p_memsz;
    return (end + 4095) & ~4095ul;
}

static struct library load(const char *path) {
    struct library self = {0};
    Dl_info info;
    void *handle = self.handle = dlopen(realpath(path, NULL), RTLD_NOW);
    if (!handle) exit(98);
    *(void **)&self.make = dlsym(handle, "make");
    *(void **)&self.drop = dlsym(handle, "drop");
    *(void **)&self.drop_again = dlsym(handle, "drop_again");
    if (!dladdr((void *)self.make, &info)) exit(98);
    self.start = (uintptr_t)info.dli_fbase;
    self.end = end_of(self.start);
    return self;
}

/* Maps all free places between `end` and the loader. The kernel gives a new mapping the highest free place, so the next
 * library that is loaded lies below `end`. */
static void take_all_above(uintptr_t end) {
    static char maps[1 << 20];
    uintptr_t before = end, start, stop, highest = getauxval(AT_BASE);
    FILE *file = fopen("/proc/self/maps", "r");
    size_t length = file ? fread(maps, 1, sizeof maps - 1, file) : 0;
    if (!length) exit(98);
    fclose(file);
    for (char *line = maps; line < maps + length && before < highest; line = strchr(line, '\n') + 1) {
        if (sscanf(line, "%lx-%lx", &start, &stop) != 2) exit(98);
        if (start > before && start <= highest)
            mmap((void *)before, start - before, PROT_NONE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
        if (stop > before) before = stop;
    }
}

int main(int count, char *arguments[]) {
    struct library one = load("libone.so");
    struct library other = load("libother.so");
    size_t length = other.end - other.start;
    dlclose(other.handle);
    take_all_above(one.start - (1ul << 32) + length);
    other = load("libother.so");
    if (one.start == other.start || (uint32_t)one.start != (uint32_t)other.start) {
        printf("%#lx %#lx\n", one.start, other.start);
        return 99;
    }
    free(other.make(100)); /* now memstow knows both libraries */
    void *p = one.make(count > 1 && !strcmp(arguments[1], "large") ? 300000 : 5000);
    one.drop(p);
    one.drop_again(p);
    return 0;
}
