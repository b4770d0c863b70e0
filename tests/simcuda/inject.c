/* inject.c — errors that tests inject at the n-th call. In: the name of each entry that is called. Out: the error that
 * the call must return. Errors are looked up under the driver's lock. */
#include "sim.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct rule {
    char name[64];
    uint64_t after, times; /* calls that still pass, and then calls that fail */
    CUresult error;
} rules[32];
static int count;

static void add(const char *name, uint64_t nth, CUresult error, uint64_t times) {
    if (count == (int)(sizeof rules / sizeof *rules) || strlen(name) >= sizeof rules->name || !nth) return;
    struct rule *rule = &rules[count++];
    strcpy(rule->name, name);
    rule->after = nth - 1;
    rule->times = times;
    rule->error = error;
}

CUresult inject_error(const char *name) {
    CUresult error = CUDA_SUCCESS;
    for (struct rule *rule = rules; rule < rules + count; rule++) {
        if (strcmp(rule->name, "*") && strcmp(rule->name, name)) continue;
        if (rule->after) {
            rule->after--;
        } else if (rule->times && !error) {
            rule->times--;
            error = rule->error;
        }
    }
    return error;
}

/* Adds rules from text (SIMCUDA_FAIL): NAME:N:ERROR[:TIMES],… */
void inject_parse(const char *list) {
    char *text = strdup(list), *rest = text, *item;
    while (text && (item = strsep(&rest, ","))) {
        char *name = strsep(&item, ":"), *nth = strsep(&item, ":"), *error = strsep(&item, ":"), *times = item;
        if (nth && error) add(name, strtoull(nth, NULL, 10), atoi(error), times ? strtoull(times, NULL, 10) : 1);
    }
    free(text);
}

static const char *slow;
static uint64_t slow_us;

__attribute__((visibility("default"))) void sim_slow(const char *name, uint64_t us) {
    __atomic_store_n(&slow_us, us, __ATOMIC_RELAXED);
    __atomic_store_n(&slow, name, __ATOMIC_RELEASE);
}

static const char *told;
static void (*teller)(void);

__attribute__((visibility("default"))) void sim_tell(const char *name, void (*function)(void)) {
    teller = function;
    __atomic_store_n(&told, name, __ATOMIC_RELEASE);
}

void inject_delay(const char *name) {
    static const char *const vmm[] = {"cuMemCreate", "cuMemMap", "cuMemSetAccess", "cuMemUnmap", "cuMemRelease"};
    for (size_t i = 0; sim_config.vmm_us && i < sizeof vmm / sizeof *vmm; i++)
        if (!strcmp(name, vmm[i])) usleep((useconds_t)sim_config.vmm_us);
    const char *tells = __atomic_load_n(&told, __ATOMIC_ACQUIRE);
    if (tells && !strcmp(tells, name)) teller();
    const char *which = __atomic_load_n(&slow, __ATOMIC_ACQUIRE);
    if (which && !strcmp(which, name)) usleep((useconds_t)__atomic_load_n(&slow_us, __ATOMIC_RELAXED));
}

__attribute__((visibility("default"))) void sim_fail(const char *name, uint64_t nth, int error, uint64_t times) {
    pthread_mutex_lock(&sim_lock);
    if (name)
        add(name, nth, error, times);
    else
        count = 0;
    pthread_mutex_unlock(&sim_lock);
}
