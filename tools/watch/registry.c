/* registry.c — see registry.h. */
#include "tools/watch/registry.h"
#include "preload/shared/digit.h"
#include "preload/shared/jsontext.h"
#include "tools/base/list.h"
#include "tools/base/position.h"
#include "tools/base/text.h"
#include "tools/base/whole_file.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct document {
    struct registry *registry;
    const char *name, *text;
    size_t length;
};

static int document_fault(const struct document *document, const char *at, const char *why) {
    struct position position = position_of(document->text, document->length, (size_t)(at - document->text));
    snprintf(document->registry->error, sizeof document->registry->error, "%.200s:%zu:%zu: %s",
             text_fit_path(document->name, 150).s, position.line, position.column, why);
    return -1;
}

/* The least pid that is allowed in "processes". These are processes that memstow may end, and it never ends process 1.
 * In "parent", the program itself, pid 1 is allowed: in a container the program may be process 1. */
enum { PROCESS_LEAST = 2 };

/* Looks up a member that must be there. */
static int registry_member(const struct document *document, struct jsontext object, const char *name,
                           struct jsontext *value) {
    char why[96];
    if (jsontext_member(object, name, value)) return 0;
    snprintf(why, sizeof why, "\"%s\" is missing in this object", name);
    return document_fault(document, object.at, why);
}

static int registry_take_number(const struct document *document, struct jsontext object, const char *name,
                                uint64_t most, uint64_t *number) {
    struct jsontext value;
    char why[96];
    if (registry_member(document, object, name, &value) < 0) return -1;
    if (jsontext_number(value, number) && *number <= most) return 0;
    snprintf(why, sizeof why, "\"%s\" is not a whole number, or too large", name);
    return document_fault(document, value.at, why);
}

/* Makes the mark of a process (started.h) from its number and from the program that wrote the list. So a list cannot
 * name marks of other programs. */
static int take_mark(const struct document *document, struct jsontext object, struct registered *process) {
    const struct registered *parent = &document->registry->parent;
    struct jsontext value;
    uint64_t number;
    if (!jsontext_member(object, "number", &value)) return 0;
    if (registry_take_number(document, object, "number", UINT64_MAX, &number) < 0) return -1;
    started_mark(process->mark, parent->pid, parent->start_ticks, number);
    return 0;
}

static int take_process(const struct document *document, struct jsontext object, pid_t least,
                        struct registered *process) {
    struct jsontext value;
    uint64_t pid;
    *process = (struct registered){0};
    if (!object.length || *object.at != '{') return document_fault(document, object.at, "a process is an object");
    if (registry_take_number(document, object, "pid", INT32_MAX, &pid) < 0) return -1;
    if ((pid_t)pid < least) return document_fault(document, object.at, "no such process can be ended");
    process->pid = (pid_t)pid;
    if (registry_take_number(document, object, "start_ticks", UINT64_MAX, &process->start_ticks) < 0) return -1;
    if (jsontext_member(object, "name", &value) && !jsontext_string(value, process->name, sizeof process->name))
        return document_fault(document, value.at, "\"name\" is not a string");
    if (!jsontext_member(object, "keep", &value)) return 0;
    process->keep = value.length == 4 && memcmp(value.at, "true", 4) == 0;
    bool is_false = value.length == 5 && memcmp(value.at, "false", 5) == 0;
    return process->keep || is_false ? 0 : document_fault(document, value.at, "\"keep\" is neither true nor false");
}

static int take_processes(const struct document *document, struct jsontext list) {
    struct registry *registry = document->registry;
    struct jsontext element;
    if (*list.at != '[') return document_fault(document, list.at, "\"processes\" is not an array");
    for (size_t next = 0; jsontext_next(list, &next, NULL, &element); registry->count++) {
        if (registry->count == REGISTRY_MOST) return document_fault(document, element.at, "too many processes");
        if (!LIST_GROW(registry->processes, registry->count, registry->capacity))
            return document_fault(document, element.at, "not enough memory");
        struct registered *process = &registry->processes[registry->count];
        if (take_process(document, element, PROCESS_LEAST, process) < 0 || take_mark(document, element, process) < 0)
            return -1;
    }
    return 0;
}

/* Reads the boot id, in the form of /proc/sys/kernel/random/boot_id: with dashes. */
static int take_boot_id(const struct document *document, struct jsontext root) {
    struct jsontext value;
    char text[64];
    size_t digits = 0;
    if (registry_member(document, root, "boot_id", &value) < 0) return -1;
    if (!jsontext_string(value, text, sizeof text))
        return document_fault(document, value.at, "\"boot_id\" is not a string");
    for (const char *c = text; *c; c++) {
        if (*c == '-') continue;
        int digit = digit_value(*c);
        if (digit < 0 || digits == 32)
            return document_fault(document, value.at, "\"boot_id\" is not 32 hexadecimal digits");
        uint8_t *byte = &document->registry->boot_id[digits / 2];
        *byte = (uint8_t)(*byte << 4 | digit);
        digits++;
    }
    return digits == 32 ? 0 : document_fault(document, value.at, "\"boot_id\" is not 32 hexadecimal digits");
}

int registry_parse(struct registry *registry, const char *name, const char *text, size_t length) {
    struct document document = {registry, name, text, length};
    struct jsontext root = {text, length}, value;
    char format[32];
    uint64_t version;
    *registry = (struct registry){0};
    size_t wrong = jsontext_fault(text, length);
    if (wrong != JSONTEXT_FINE) return document_fault(&document, text + wrong, "this is not JSON, or not one object");
    while (root.length && *root.at != '{') root.at++, root.length--;
    if (registry_member(&document, root, "format", &value) < 0) return -1;
    if (!jsontext_string(value, format, sizeof format) || strcmp(format, "memstow-processes") != 0)
        return document_fault(&document, value.at, "the format is not \"memstow-processes\"");
    if (registry_take_number(&document, root, "version", UINT64_MAX, &version) < 0) return -1;
    if (version != 1 && jsontext_member(root, "version", &value))
        return document_fault(&document, value.at, "the version is not 1");
    if (take_boot_id(&document, root) < 0 || registry_member(&document, root, "parent", &value) < 0 ||
        take_process(&document, value, 1, &registry->parent) < 0)
        return -1;
    return registry_member(&document, root, "processes", &value) < 0 ? -1 : take_processes(&document, value);
}

/* The reason why the file is not trusted; NULL: it is trusted. If the file did not belong to this user alone, another
 * user could choose the processes to end. */
static const char *not_trusted(const struct stat *st) {
    if (st->st_uid != geteuid()) return "it belongs to another user";
    return st->st_mode & (S_IWGRP | S_IWOTH) ? "others may write to it" : NULL;
}

int registry_load(struct registry *registry, const char *path) {
    struct whole_file file;
    *registry = (struct registry){0};
    const char *why = whole_file_read(&file, path, REGISTRY_MIB) < 0 ? file.why : not_trusted(&file.st);
    int result = why ? -1 : registry_parse(registry, path, file.text, file.length);
    if (why) snprintf(registry->error, sizeof registry->error, "%.200s: %s", text_fit_path(path, 150).s, why);
    free(file.text);
    return result;
}

bool registry_is_numbered(const char *name) {
    static const char stem[] = "process_registry.";
    if (strncmp(name, stem, sizeof stem - 1) != 0) return false;
    name += sizeof stem - 1;
    size_t length = strspn(name, "0123456789-");
    return length && strcmp(name + length, ".json") == 0;
}

void registry_clear(struct registry *registry) {
    free(registry->processes);
    registry->processes = NULL;
    registry->count = registry->capacity = 0;
}
