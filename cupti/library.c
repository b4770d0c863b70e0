/* library.c — see library.h. The one that is mapped is what the program or its libraries use; otherwise the one that
 * lies where toolkits and NVIDIA's Python packages put it, seen from the runtime that is mapped; otherwise the
 * loader's. */
#include "library.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <string.h>

struct runtime {
    int generation;
    char folder[4000]; /* "": not found */
};

static int is_runtime(struct dl_phdr_info *info, size_t size, void *context) {
    struct runtime *runtime = context;
    const char *name = strstr(info->dlpi_name, "/libcudart.so.");
    (void)size;
    if (!name || sscanf(name, "/libcudart.so.%d", &runtime->generation) != 1) return 0;
    snprintf(runtime->folder, sizeof runtime->folder, "%.*s", (int)(name - info->dlpi_name), info->dlpi_name);
    return 1;
}

static void *open_mapped(int generation) {
    char name[32];
    snprintf(name, sizeof name, "libcupti.so.%d", generation);
    return dlopen(name, RTLD_NOW | RTLD_NOLOAD);
}

/* Toolkits have both in one folder or CUPTI in extras; the packages for CUDA 12 have a folder each. */
static void *open_beside(const struct runtime *runtime) {
    static const char *const places[] = {"", "../extras/CUPTI/lib64/", "../../extras/CUPTI/lib64/",
                                         "../../cuda_cupti/lib/"};
    void *found = NULL;
    char path[4096];
    for (size_t i = 0; !found && *runtime->folder && i < sizeof places / sizeof *places; i++) {
        snprintf(path, sizeof path, "%s/%slibcupti.so.%d", runtime->folder, places[i], runtime->generation);
        found = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    }
    return found;
}

static void *open_found(void) {
    struct runtime runtime = {0};
    void *found = NULL;
    char name[32];
    dl_iterate_phdr(is_runtime, &runtime);
    int first = runtime.generation ? runtime.generation : 13, last = runtime.generation ? runtime.generation : 12;
    for (int generation = first; !found && generation >= last; generation--) found = open_mapped(generation);
    if (!found) found = open_beside(&runtime);
    for (int generation = first; !found && !*runtime.folder && generation >= last; generation--) {
        snprintf(name, sizeof name, "libcupti.so.%d", generation);
        found = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    }
    return found;
}

static void *function(void *library, const char *name, bool *complete) {
    void *found = dlsym(library, name);
    if (!found) *complete = false;
    return found;
}

bool library_open(struct cupti *cupti) {
    struct link_map *map;
    void *library = open_found();
    bool complete = library != NULL, ignored;
    if (!library) return false;
    if (dlinfo(library, RTLD_DI_LINKMAP, &map) == 0) snprintf(cupti->path, sizeof cupti->path, "%s", map->l_name);
#define F(name, parameters) cupti->name = (int(*) parameters)function(library, #name, &complete);
    CUPTI_FUNCTIONS
#undef F
    cupti->cuptiActivityEnableAllocationSource =
        (int (*)(uint8_t))function(library, "cuptiActivityEnableAllocationSource", &ignored);
    return complete;
}
