/* roots.c — see roots.h. */
#include "tools/export/roots.h"
#include "tools/views/roster.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

enum { NAME_MOST = 1024 };

struct root_name {
    UT_hash_handle hh;
    uint32_t root;
    char text[];
};

static bool wants_roots(const struct report *report) {
    return report->view_given && (report->view == BY_MODEL || report->view == BY_NODE || report->view == BY_RUN);
}

static void name_root(const struct report *report, const struct snap_tag *tag, char *name) {
    uint32_t id = report->view == BY_MODEL ? tag->model : report->view == BY_NODE ? tag->node : tag->run;
    const struct snap_owner *owner = image_owner(report->image, id);
    const char *origin = owner ? image_string(report->image, owner->origin) : "";
    if (!owner)
        snprintf(name, NAME_MOST, "(untagged)");
    else
        snprintf(name, NAME_MOST, *origin ? "%s:%s (%s)" : "%s:%s", roster_kind(owner),
                 image_string(report->image, owner->name), origin);
}

/* Finds the root with the name, or makes it. Returns 0, or -1: no memory. */
static int find_root(struct roots *roots, struct root_name **known, const char *name, uint32_t *root) {
    struct root_name *found;
    size_t length = strlen(name);
    HASH_FIND(hh, *known, name, length, found);
    if (found) {
        *root = found->root;
        return 0;
    }
    found = malloc(sizeof *found + length + 1);
    if (!found || !(roots->names[roots->count] = strdup(name))) {
        free(found);
        return -1;
    }
    memcpy(found->text, name, length + 1);
    *root = found->root = (uint32_t)roots->count++;
    HASH_ADD(hh, *known, text, length, found);
    return 0;
}

static int name_roots(struct roots *roots, const struct report *report) {
    struct root_name *known = NULL, *one, *next;
    char name[NAME_MOST];
    int result = 0;
    for (size_t i = 0; i <= roots->tags && result == 0; i++) {
        name_root(report, image_tag(report->image, (uint32_t)i), name);
        result = find_root(roots, &known, name, &roots->of_tag[i]);
    }
    HASH_ITER(hh, known, one, next) {
        HASH_DEL(known, one);
        free(one);
    }
    return result;
}

int roots_make(struct roots *roots, const struct report *report) {
    *roots = (struct roots){.tags = report->image->tag_count};
    roots->names = calloc(roots->tags + 1, sizeof *roots->names);
    roots->of_tag = calloc(roots->tags + 1, sizeof *roots->of_tag);
    if (!roots->names || !roots->of_tag) return -1;
    if (wants_roots(report)) return name_roots(roots, report);
    roots->count = 1;
    return 0;
}

void roots_clear(struct roots *roots) {
    for (size_t i = 0; roots->names && i < roots->count; i++) free(roots->names[i]);
    free(roots->names);
    free(roots->of_tag);
    *roots = (struct roots){0};
}

uint32_t roots_of(const struct roots *roots, uint32_t tag) {
    return roots->of_tag[tag < roots->tags ? tag : roots->tags];
}
