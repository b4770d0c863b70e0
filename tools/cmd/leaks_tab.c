/* leaks_tab.c — see leaks_tab.h. */
#include "tools/cmd/leaks_tab.h"

#include "tools/leaks/leaks.h"
#include "tools/leaks/series.h"
#include "tools/symbols/symbols.h"

#include <stdlib.h>
#include <string.h>

static bool has_ended_runs(const struct image *image) {
    for (size_t i = 0; i < image->owner_count; i++)
        if (image->owners[i].kind == SNAP_OWNER_RUN && image->owners[i].state == SNAP_OWNER_RETIRED) return true;
    return false;
}

int leaks_tab_read(struct leaks_tab *self, const struct image *image, bool several) {
    if (!several && !image->series_size && !has_ended_runs(image)) return 0;
    if (!self->begun) leak_sites_begin(&self->sites);
    self->begun = true;
    if (leak_sites_read(&self->sites, image) < 0) return -1;
    return several ? leak_sites_point(&self->sites, image) : 0;
}

/* Returns -2 if the image is a damaged series. */
static int complete_sites(struct leak_sites *sites, const struct image *image) {
    if (!sites->point_count) return series_unpack(sites, image);
    return leak_entries_sort(&sites->moved, sites->count, sites->point_count);
}

static int write_document(struct leaks_tab *self, const struct leaks *leaks, struct symbols *symbols) {
    struct leaks_view view = {.top = SIZE_MAX, .symbols = symbols};
    FILE *to = open_memstream(&self->text, &self->tab.length);
    if (!to) return -1;
    leaks_json(leaks, &view, to);
    return fclose(to) == 0 ? 0 : -1;
}

static int find_leaks(struct leaks_tab *self, const struct subject *subject) {
    static struct leaks leaks;
    struct symbols *symbols = symbols_begin(&subject->image, subject->pid);
    int result = leaks_find(&leaks, &self->sites, &subject->image, LEAKS_FLOOR);
    if (result == 0) result = leaks_group(&leaks, symbols);
    if (result == 0) result = write_document(self, &leaks, symbols);
    leaks_clear(&leaks);
    symbols_end(symbols);
    return result;
}

int leaks_tab_write(struct leaks_tab *self, const struct subject *subject, const struct report_tab **tab) {
    *tab = NULL;
    if (!self->begun) return 0;
    int result = complete_sites(&self->sites, &subject->image);
    if (result < 0) return result == -1 ? -1 : 0; /* the page says that the series is damaged */
    if (!self->sites.run_count && !self->sites.point_count) return 0;
    if (find_leaks(self, subject) < 0) return -1;
    self->tab.name = "leaks";
    self->tab.text = self->text;
    *tab = &self->tab;
    return 0;
}

void leaks_tab_end(struct leaks_tab *self) {
    if (self->begun) leak_sites_end(&self->sites);
    free(self->text);
    *self = (struct leaks_tab){.begun = false};
}
