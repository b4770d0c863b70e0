/* owners.c — a program that says who owns its memory. Build it in the repository as below; where memstow is installed,
 * leave out -Iinclude. Run it with and without memstow:
 *
 *     cc examples/owners.c -Iinclude -o owners -ldl
 *     memstow run -o owners.mst -- ./owners
 *     memstow report --by=model owners.mst */
#include <memstow.h>

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Without memstow the functions are not there, and the program does without them. */
#define FIND(name) __typeof__(name) *name##_ = (__typeof__(name) *)dlsym(RTLD_DEFAULT, #name)

static void *load(size_t size) {
    void *weights = malloc(size);
    if (weights) memset(weights, 1, size);
    return weights;
}

int main(void) {
    FIND(memstow_owner_open);
    FIND(memstow_scope_enter);
    FIND(memstow_scope_leave);
    FIND(memstow_assign);
    FIND(memstow_owner_figures);
    if (!memstow_owner_open_) {
        puts("not under memstow");
        free(load(1 << 20));
        return 0;
    }
    int64_t unet = memstow_owner_open_(MEMSTOW_MODEL, "unet", "unet.safetensors", 1, 0);
    int64_t vae = memstow_owner_open_(MEMSTOW_MODEL, "vae", "vae.safetensors", 2, 0);
    void *before = load(3 << 20); /* allocated first, assigned later */
    memstow_scope_enter_((uint32_t)unet);
    void *weights = load(8 << 20);
    memstow_scope_leave_((uint32_t)unet);
    memstow_assign_((uint32_t)vae, before, 3 << 20);
    const int64_t owners[] = {unet, vae};
    for (int i = 0; i < 2; i++) {
        struct memstow_figures figures = {.size = sizeof figures};
        if (memstow_owner_figures_((uint32_t)owners[i], &figures) == 0)
            printf("%s: %llu bytes in %llu blocks\n", i ? "vae" : "unet", (unsigned long long)figures.live_bytes,
                   (unsigned long long)figures.live_blocks);
    }
    free(weights);
    free(before);
    return 0;
}
