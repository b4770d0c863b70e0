/* own.c — see own.h. */
#include "tools/symbols/own.h"
#include "tools/views/stacks.h"
#include "tools/base/text.h"

#include <string.h>
#include <strings.h>

static bool own_begins(const char *text, const char *with) { return strncmp(text, with, strlen(with)) == 0; }

/* Whether the path lies in the node pack: "…/custom_nodes/memstow/runs.py". The folder may have any name that contains
 * memstow, such as ComfyUI-memstow for a cloned repository. */
static bool in_pack(const char *path) {
    static const char nodes[] = "custom_nodes/";
    const char *folder = strstr(path, nodes);
    if (!folder) return false;
    folder += sizeof nodes - 1;
    size_t length = strcspn(folder, "/"), word = strlen("memstow");
    for (size_t i = 0; folder[length] && i + word <= length; i++)
        if (strncasecmp(folder + i, "memstow", word) == 0) return true;
    return false;
}

/* Whether a file is one of memstow's modules, or is in the package memstow_loops or in the node pack. Modules have
 * exact names here, because a user's program may be called memstow_demo.py. */
static bool own_file(const char *path) {
    static const char *const modules[] = {
        "memstow.py",       "memstow_blocks.py",    "memstow_comfy.py",     "memstow_looks.py",    "memstow_packs.py",
        "memstow_pools.py", "memstow_referrers.py", "memstow_serialize.py", "memstow_shutdown.py", "memstow_state.py",
        "memstow_vbars.py", "memstow_viz.py",       "pytest_memstow.py"};
    const char *name = text_base_name(path);
    for (size_t i = 0; i < sizeof modules / sizeof *modules; i++)
        if (strcmp(name, modules[i]) == 0) return true;
    return strstr(path, "/memstow_loops/") || in_pack(path);
}

/* Whether a file is part of Python's own library, which works on behalf of its callers. */
static bool is_library(const char *path) {
    bool third_party = strstr(path, "/site-packages/") || strstr(path, "/dist-packages/");
    return own_begins(path, "<frozen ") || (!third_party && strstr(path, "/lib/python3"));
}

/* Returns 1 if the frame is memstow's code, and 0 if it is other Python code. Returns -1 if it is native or in Python's
 * own library. After -1 the next frame further out decides. */
static int own_verdict(const struct image *image, uint32_t id) {
    const struct snap_frame *frame = stack_frame(image, id);
    const struct snap_code *code = frame ? stack_frame_code(image, frame) : NULL;
    const char *file = code ? image_string(image, code->file) : "";
    return *file && !is_library(file) ? own_file(file) : -1;
}

bool own_stack(const struct image *image, uint32_t node) {
    size_t steps = STACK_FRAMES_MAX;
    for (; node && node < image->node_count; node = image->nodes[node].parent) {
        struct segment segment = stack_segment(image, node);
        for (uint32_t i = segment.count; i--;) {
            if (!steps--) return false;
            int said = own_verdict(image, segment.frames[i]);
            if (said >= 0) return said;
        }
    }
    return false;
}
