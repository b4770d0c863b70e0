/* library.c — see library.h. Three libraries are tried in order. First, the CUPTI that is mapped already, because the
 * program or its libraries use it. Second, the CUPTI beside the mapped CUDA runtime, where toolkits and NVIDIA's Python
 * packages install it. Third, if no CUDA runtime is mapped, the CUPTI that the loader finds. */
#include "cupti/library.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <string.h>

struct runtime {
    int generation;
    char folder[4000]; /* "": it was not found */
};

static int is_runtime(struct dl_phdr_info *info, size_t size, void *context) {
    struct runtime *runtime = context;
    const char *name = strstr(info->dlpi_name, "/libcudart.so.");
    (void)size;
    if (!name || sscanf(name, "/libcudart.so.%d", &runtime->generation) != 1) return 0;
    snprintf(runtime->folder, sizeof runtime->folder, "%.*s", (int)(name - info->dlpi_name), info->dlpi_name);
    return 1;
}

enum { WITH_RELEASES = 11, RELEASES = 8 };

/* Opens the CUPTI of CUDA 11, in which each release had a file name of its own. NULL: it is not there. */
static void *open_release(const char *path, int flags) {
    char name[4200];
    void *found = NULL;
    for (int release = RELEASES; !found && release >= 0; release--) {
        snprintf(name, sizeof name, "%s.%d", path, release);
        found = dlopen(name, flags);
    }
    return found;
}

/* Opens the CUPTI in a folder. `folder` ends with a slash; if it is "", the loader searches. NULL: it is not there. */
static void *open_in(const char *folder, int generation, int flags) {
    char path[4150];
    snprintf(path, sizeof path, "%slibcupti.so.%d", folder, generation);
    return generation == WITH_RELEASES ? open_release(path, flags) : dlopen(path, flags);
}

/* Opens the CUPTI that was installed with the CUDA runtime. In a toolkit, CUPTI is in the runtime's folder or below
 * the folder `extras`. The Python packages for CUDA 12 have a folder for each library. */
static void *open_beside(const struct runtime *runtime) {
    static const char *const paths[] = {"", "../extras/CUPTI/lib64/", "../../extras/CUPTI/lib64/",
                                        "../../cuda_cupti/lib/"};
    void *found = NULL;
    char path[4096];
    for (size_t i = 0; !found && *runtime->folder && i < sizeof paths / sizeof *paths; i++) {
        snprintf(path, sizeof path, "%s/%s", runtime->folder, paths[i]);
        found = open_in(path, runtime->generation, RTLD_NOW | RTLD_LOCAL);
    }
    return found;
}

static void *open_found(void) {
    struct runtime runtime = {0};
    void *found = NULL;
    dl_iterate_phdr(is_runtime, &runtime);
    int first = runtime.generation ? runtime.generation : 13;
    int last = runtime.generation ? runtime.generation : WITH_RELEASES;
    for (int generation = first; !found && generation >= last; generation--)
        found = open_in("", generation, RTLD_NOW | RTLD_NOLOAD);
    if (!found) found = open_beside(&runtime);
    for (int generation = first; !found && !*runtime.folder && generation >= last; generation--)
        found = open_in("", generation, RTLD_NOW | RTLD_LOCAL);
    return found;
}

static void *library_function(void *library, const char *name, bool *complete) {
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
#define F(name, parameters) cupti->name = (int(*) parameters)library_function(library, #name, &complete);
    CUPTI_FUNCTIONS
#undef F
#define F(name, parameters) cupti->name = (int(*) parameters)library_function(library, #name, &ignored);
    CUPTI_FUNCTIONS_V2
#undef F
    cupti->cuptiActivityEnableAllocationSource =
        (int (*)(uint8_t))library_function(library, "cuptiActivityEnableAllocationSource", &ignored);
    return complete;
}
