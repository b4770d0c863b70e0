// _stacks_large_tables.c — executes the commands in its arguments, one after the other. They concern a library of many
// functions. Each function allocates once when it is called.
//   load PATH, close  loads the library, unloads it
//   call FIRST COUNT  calls COUNT functions of the library, from number FIRST on
//   here              allocates in a function of the program
//   wait              waits a second
//   rename FROM TO    renames a file
//   fork              forks. The child executes the commands that follow, and the parent only waits for it
//   seal              installs a system call filter that allows everything
//   tell              prints how many mappings of the library's file were not made by the loader, and how many KiB of
//                     these mappings are resident
#include <assert.h>
#include <dlfcn.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *library = "";
static void *handle;

static void allocate(int number) { assert(malloc((size_t)number + 1)); }

static void call(int first, int count) {
    void (*const *functions)(void (*)(int), int) = dlsym(handle, "functions");
    assert(functions);
    for (int i = first; i < first + count; i++) functions[i](allocate, i);
}

__attribute__((noinline)) static void here(void) { allocate(0); }

static void tell(void) {
    char line[4096], access[8], path[3000];
    unsigned long start, end, rss = 0, size;
    int apart = 0;
    bool counts = false;
    FILE *maps = fopen("/proc/self/smaps", "r");
    assert(maps);
    while (fgets(line, sizeof line, maps)) {
        path[0] = 0;
        if (sscanf(line, "%lx-%lx %7s %*s %*s %*s %2999s", &start, &end, access, path) >= 3) {
            Dl_info info;
            counts = strcmp(path, library) == 0 && strcmp(access, "r--p") == 0 && !dladdr((void *)start, &info);
            apart += counts;
        }
        if (counts && sscanf(line, "Rss: %lu", &size) == 1) rss += size;
    }
    fclose(maps);
    printf("%d %lu\n", apart, rss);
    fflush(stdout);
}

static void seal(void) {
    struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog filter = {1, &allow};
    assert(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    assert(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0);
}

int main(int argc, char **argv) {
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "load") == 0) {
            library = argv[++i];
            handle = dlopen(library, RTLD_NOW);
            assert(handle);
        } else if (strcmp(argv[i], "close") == 0) {
            assert(dlclose(handle) == 0);
        } else if (strcmp(argv[i], "call") == 0) {
            call(atoi(argv[i + 1]), atoi(argv[i + 2]));
            i += 2;
        } else if (strcmp(argv[i], "wait") == 0) {
            sleep(1);
        } else if (strcmp(argv[i], "here") == 0) {
            here();
        } else if (strcmp(argv[i], "rename") == 0) {
            assert(rename(argv[i + 1], argv[i + 2]) == 0);
            i += 2;
        } else if (strcmp(argv[i], "fork") == 0) {
            pid_t child = fork();
            assert(child >= 0);
            if (child) return waitpid(child, NULL, 0) != child;
        } else if (strcmp(argv[i], "seal") == 0) {
            seal();
        } else {
            assert(strcmp(argv[i], "tell") == 0);
            tell();
        }
    }
    return 0;
}
