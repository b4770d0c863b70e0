/* handle_kind.c — see handle_kind.h. */
#include "preload/shared/handle_kind.h"

#include <string.h>

#define DELETED " (deleted)"

static bool handle_kind_begins(const char *text, const char *with) { return strncmp(text, with, strlen(with)) == 0; }

static bool is_deleted(const char *path) {
    size_t length = strlen(path), tail = sizeof DELETED - 1;
    return length > tail && strcmp(path + length - tail, DELETED) == 0;
}

const char *handle_kind_word(enum handle_kind kind, bool many) {
    static const char *const words[HANDLE_KINDS][2] = {
        {"open file", "open files"},
        {"file without a name", "files without a name"},
        {"socket", "sockets"},
        {"pipe", "pipes"},
        {"piece of shared memory", "pieces of shared memory"},
        {"GPU context", "GPU contexts"},
        {"device", "devices"},
        {"other descriptor", "other descriptors"},
    };
    return words[kind][many];
}

bool handle_kind_is_shared(const char *path) {
    return handle_kind_begins(path, "/dev/shm/") || handle_kind_begins(path, "/memfd:");
}

enum handle_kind handle_kind_of(const char *target) {
    if (handle_kind_begins(target, "socket:")) return HANDLE_SOCKET;
    if (handle_kind_begins(target, "pipe:")) return HANDLE_PIPE;
    if (handle_kind_begins(target, "/dev/nvidia") || handle_kind_begins(target, "/dev/dri/")) return HANDLE_GPU;
    if (handle_kind_is_shared(target)) return HANDLE_SHARED;
    if (target[0] != '/') return HANDLE_OTHER;
    if (handle_kind_begins(target, "/dev/")) return HANDLE_DEVICE;
    return is_deleted(target) ? HANDLE_TEMPORARY : HANDLE_FILE;
}
