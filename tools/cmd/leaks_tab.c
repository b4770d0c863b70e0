/* leaks_tab.c — see leaks_tab.h. */
#include "tools/cmd/leaks_tab.h"

#include "tools/leaks/series.h"
#include "tools/symbols/symbols.h"

#include <stdlib.h>
#include <string.h>

static bool has_ended_runs(const struct image *image) {
    for (size_t i = 0; i < image->owner_count; i++)
        if (leak_run_has_ended(&image->owners[i])) return true;
    return false;
}

int leaks_tab_read(struct leaks_tab *self, const struct image *image, bool several) {
    if (!several && !image->series_size && !has_ended_runs(image)) return 0;
    if (!self->begun) leak_sites_begin(&self->sites);
    self->begun = true;
    if (leak_sites_read(&self->sites, image) < 0) return -1;
    return several ? leak_sites_point(&self->sites, image) : 0;
}

int leaks_tab_make(struct report_tab *tab, const struct leaks *leaks, const struct leaks_view *view) {
    tab->name = "leaks";
    FILE *to = open_memstream(&tab->text, &tab->length);
    if (!to) return -1;
    leaks_json(leaks, view, to);
    return fclose(to) == 0 ? 0 : -1;
}

static int find_leaks(struct leaks_tab *self, const struct subject *subject) {
    static struct leaks leaks;
    struct leaks_view view = {.top = SIZE_MAX, .symbols = symbols_begin(&subject->image, subject->pid)};
    int result = leaks_find(&leaks, &self->sites, &subject->image, LEAKS_FLOOR);
    if (result == 0) result = leaks_group(&leaks, view.symbols);
    if (result == 0) result = leaks_tab_make(&self->tab, &leaks, &view);
    leaks_clear(&leaks);
    symbols_end(view.symbols);
    return result;
}

int leaks_tab_write(struct leaks_tab *self, const struct subject *subject, const struct report_tab **tab) {
    *tab = NULL;
    if (!self->begun) return 0;
    int result = series_complete(&self->sites, &subject->image);
    if (result < 0) return result == -1 ? -1 : 0; /* the page says that the series is damaged */
    if (!self->sites.run_count && !self->sites.point_count) return 0;
    if (find_leaks(self, subject) < 0) return -1;
    *tab = &self->tab;
    return 0;
}

void leaks_tab_end(struct leaks_tab *self) {
    if (self->begun) leak_sites_end(&self->sites);
    free(self->tab.text);
    *self = (struct leaks_tab){.begun = false};
}
