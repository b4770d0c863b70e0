/* reader.c — fuzz target: whatever the bytes, the reader, the split of resident memory, the groups and the writer end
 * without harm. */
#include <stdio.h>

#include "groups.h"
#include "reader.h"
#include "resident.h"
#include "writer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void use(struct image *image) {
    struct resident resident;
    if (resident_split(&resident, image) == 0) resident_clear(&resident);
    for (int view = 0; view < VIEWS; view++) {
        struct groups groups;
        groups_begin(&groups, (enum view)view);
        groups_add(&groups, image, 0);
        groups_sort_by_growth(&groups);
        groups_end(&groups);
    }
    FILE *nowhere = fopen("/dev/null", "w");
    if (nowhere) {
        writer_snapshot(image, nowhere);
        fclose(nowhere);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    for (int live = 0; live < 2; live++) {
        struct image image;
        struct source source;
        source_buffer(&source, data, size);
        if (reader_load(&image, &source, live) == 0) use(&image);
        image_clear(&image);
    }
    return 0;
}
