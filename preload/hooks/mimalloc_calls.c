/* mimalloc_calls.c — see mimalloc_calls.h. These are the calls that go to libc. */
#ifdef MEMSTOW_MIMALLOC
#include "preload/hooks/mimalloc_calls.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>
#include <time.h>
#include <unistd.h>

#include "preload/base/symbol.h"
#include "preload/shared/os.h"

#define TO_LIBC(result, name, parameters, ...)                                                                         \
    extern __typeof__(name) mimalloc_##name;                                                                           \
    result mimalloc_##name parameters { return LIBC(name)(__VA_ARGS__); }

TO_LIBC(int, fputs, (const char *text, FILE *to), text, to)
TO_LIBC(char *, getenv, (const char *name), name)
TO_LIBC(int, getrusage, (int whose, struct rusage *usage), whose, usage)
TO_LIBC(long, pathconf, (const char *path, int name), path, name)
TO_LIBC(int, pthread_key_create, (pthread_key_t * key, void (*end)(void *)), key, end)
TO_LIBC(int, pthread_key_delete, (pthread_key_t key), key)
TO_LIBC(int, pthread_mutex_destroy, (pthread_mutex_t * mutex), mutex)
TO_LIBC(int, pthread_mutex_lock, (pthread_mutex_t * mutex), mutex)
TO_LIBC(int, pthread_mutex_unlock, (pthread_mutex_t * mutex), mutex)
TO_LIBC(int, pthread_setspecific, (pthread_key_t key, const void *value), key, value)
TO_LIBC(char *, realpath, (const char *path, char *to), path, to)
TO_LIBC(unsigned, sleep, (unsigned seconds), seconds)
TO_LIBC(long, strtol, (const char *text, char **end, int base), text, end, base)
TO_LIBC(long, sysconf, (int name), name)
TO_LIBC(int, sysinfo, (struct sysinfo * info), info)
TO_LIBC(clock_t, clock, (void))

extern __typeof__(clock_gettime) mimalloc_clock_gettime;
int mimalloc_clock_gettime(clockid_t clock, struct timespec *now) { return os_read_clock(clock, now); }

__attribute__((noreturn)) extern __typeof__(abort) mimalloc_abort;
void mimalloc_abort(void) {
    LIBC(abort)();
    __builtin_unreachable();
}
#endif
