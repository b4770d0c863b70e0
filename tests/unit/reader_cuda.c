/* reader_cuda.c — CUDA memory in a file: its sums by kind and its shares of owners are read, and are the same after
 * they were written to a snapshot and read again. No number is trusted. */
#include <criterion/criterion.h>

#include "builder.h"
#include "tools/reader/cuda_image.h"
#include "tools/reader/nvml_image.h"
#include "tools/reader/image_load.h"
#include "tools/subject/writer.h"

enum { SITES = 5 };

static struct snap_cuda_site site(uint8_t kind, uint32_t number, uint32_t tag, uint64_t allocated, uint64_t freed) {
    return (struct snap_cuda_site){.kind = kind, .site = number, .tag = tag, .counter = {allocated, 2, freed, 1}};
}

static struct snap_cuda_block block(uint64_t address, uint64_t size, uint32_t count) {
    return (struct snap_cuda_block){
        .state = SNAP_CUDA_LIVE, .kind = SNAP_CUDA_POOL_MEMORY, .address = address, .size = size, .count = count};
}

static void build(struct builder *builder, struct snap_cuda_site sites[SITES]) {
    struct snap_site host[] = {{0}, {0}, snap_site(0, 0, 2)};
    struct snap_owner owner = {.id = 7, .kind = SNAP_OWNER_MODEL, .state = SNAP_OWNER_LIVE};
    struct snap_tag tags[] = {{0}, {.model = 7}};
    struct snap_cuda head = {.live = 1000, .peak = 5000};
    struct snap_cuda_device device = {.used = 1, .live = 600, .total = 100, .available = 200, .figures_ns = 1};
    struct snap_cuda_block blocks[] = {{0}, block(4096, 100, 2), block(8192, 100, 4000000000u), {.state = 9}};
    struct snap_nvml nvml = {.device = 4000000000u, .state = 99, .flags = UINT32_MAX, .used = 1, .own = UINT64_MAX};
    struct snap_nvml_process process = {.device = 4000000000u, .pid = 1, .bytes = UINT64_MAX};
    memset(process.name, 'z', sizeof process.name);
    memset(device.name, 'x', sizeof device.name);
    memset(head.unknown, 'y', sizeof head.unknown);
    builder_begin(builder, SNAP_LEDGER);
    builder_modules(builder);
    builder_section(builder, SNAP_SITE, sizeof *host, host, 3, 0);
    builder_section(builder, SNAP_OWNER, sizeof owner, &owner, 1, 0);
    builder_section(builder, SNAP_TAG, sizeof *tags, tags, 2, 0);
    builder_counter(builder, 2, 2, (struct snap_counter){50, 1, 0, 0});
    builder_section(builder, SNAP_CUDA, sizeof head, &head, 1, 0);
    builder_section(builder, SNAP_CUDA_DEVICE, sizeof device, &device, 1, 0);
    builder_section(builder, SNAP_CUDA_SITE, sizeof *sites, sites, SITES, 0);
    builder_section(builder, SNAP_CUDA_BLOCK, sizeof *blocks, blocks, 4, 0);
    builder_section(builder, SNAP_NVML, sizeof nvml, &nvml, 1, 0);
    builder_section(builder, SNAP_NVML_PROCESS, sizeof process, &process, 1, 0);
}

static void check(struct image *image) {
    struct image view = cuda_view(image);
    struct cuda_share *shares = cuda_shares(image);
    cr_assert(view.totals && shares);
    cr_expect_eq(image->host.live_bytes, 50);
    cr_expect_eq(image->total_count, 1, "the totals of the host are alone again");
    cr_expect_eq(image->cuda.kinds[SNAP_CUDA_POOL_MEMORY].live_bytes, 300);
    cr_expect_eq(image->cuda.device.live_bytes, 300);
    cr_expect_eq(image->cuda.kinds[SNAP_CUDA_PINNED].live_bytes, 40);
    cr_expect_eq(shares[0].device_bytes, 100);
    cr_expect_eq(shares[1].device_bytes, 200);
    cr_expect_eq(shares[1].pinned_bytes, 40);
    cr_expect_eq(image->cuda.block_count, 2);
    cr_expect_eq(view.total_count, 2);
    cr_expect_eq(view.totals[0].module, 2);
    cr_expect_eq(strlen(image->cuda.devices[0].name), sizeof image->cuda.devices[0].name - 1);
    cr_expect_eq(strlen(image->cuda.head.unknown), sizeof image->cuda.head.unknown - 1);
    cr_expect_not(cuda_gap(&image->cuda.devices[0]).known, "more is free than there is");
    cr_assert_eq(image->nvml.process_count, 1);
    cr_expect_eq(strlen(image->nvml.processes[0].name), sizeof image->nvml.processes[0].name - 1);
    cr_expect_null(nvml_of(image, 0));
    cr_expect(nvml_of(image, 4000000000u) && !image->nvml.now);
    cuda_view_end(&view);
    free(shares);
}

static void load(struct image *image, const uint8_t *bytes, size_t size) {
    struct source source;
    source_buffer(&source, bytes, size);
    cr_assert_eq(image_load(image, &source, false), 0, "%s", image->error);
}

Test(reader_cuda, sums_and_back_through_a_snapshot) {
    struct snap_cuda_site sites[SITES] = {{0},
                                          site(SNAP_CUDA_POOL_MEMORY, 2, 1, 200, 100),
                                          site(SNAP_CUDA_POOL_MEMORY, 2, 0, 250, 50),
                                          site(SNAP_CUDA_PINNED, 4000, 4000, 50, 10),
                                          {.kind = 200, .counter = {7, 7, 0, 0}}};
    struct builder builder;
    struct image image, again;
    char *bytes;
    size_t size;
    build(&builder, sites);
    load(&image, builder.bytes, builder.size);
    check(&image);
    FILE *file = open_memstream(&bytes, &size);
    cr_assert_eq(writer_snapshot(&image, file), 0);
    fclose(file);
    load(&again, (uint8_t *)bytes, size);
    cr_expect_eq(again.header.kind, SNAP_SNAPSHOT);
    check(&again);
    image_clear(&image);
    image_clear(&again);
    free(bytes);
    builder_end(&builder);
}

/* A report has a line for each device, and searches NVML's part for each line. No file makes this take long, because
 * the reader keeps only as many devices and processes as there can be. */
Test(reader_cuda, no_more_devices_than_there_can_be) {
    enum { MANY = 100000, KEPT = 64 * SNAP_CUDA_DEVICES };
    static struct snap_cuda_device devices[MANY];
    static struct snap_nvml nvml[MANY];
    static struct snap_nvml_process processes[MANY];
    struct snap_cuda head = {.live = 1};
    struct builder builder;
    struct image image;
    builder_begin(&builder, SNAP_SNAPSHOT);
    builder_section(&builder, SNAP_CUDA, sizeof head, &head, 1, 0);
    builder_section(&builder, SNAP_CUDA_DEVICE, sizeof *devices, devices, MANY, 0);
    builder_section(&builder, SNAP_NVML, sizeof *nvml, nvml, MANY, 0);
    builder_section(&builder, SNAP_NVML_PROCESS, sizeof *processes, processes, MANY, 0);
    load(&image, builder.bytes, builder.size);
    cr_expect_eq(image.cuda.device_count, SNAP_CUDA_DEVICES);
    cr_expect_eq(image.nvml.device_count, SNAP_CUDA_DEVICES);
    cr_expect_eq(image.nvml.process_count, KEPT);
    image_clear(&image);
    builder_end(&builder);
}

/* An older library writes the name of only one unknown entry, so its record is shorter. */
Test(reader_cuda, names_of_unknown_entries) {
    struct snap_cuda head = {.unknown_entries = 7, .unknown = "cuMemOne", .unknown_more = {"cuMemTwo", "cuMemThree"}};
    const size_t sizes[] = {offsetof(struct snap_cuda, unknown_more), sizeof head};
    for (int newer = 0; newer < 2; newer++) {
        struct builder builder;
        struct image image;
        builder_begin(&builder, SNAP_SNAPSHOT);
        builder_section(&builder, SNAP_CUDA, sizes[newer], &head, 1, 0);
        load(&image, builder.bytes, builder.size);
        cr_expect(image.cuda.used && image.cuda.head.unknown_entries == 7);
        cr_expect_str_eq(image.cuda.head.unknown, "cuMemOne");
        cr_expect_str_eq(image.cuda.head.unknown_more[1], newer ? "cuMemThree" : "");
        image_clear(&image);
        builder_end(&builder);
    }
}

/* If a process was killed, a counter may have counted the free of a block without its allocation. The live bytes
 * that the reader computes are nevertheless not negative. */
Test(reader_cuda, more_freed_than_allocated) {
    struct snap_cuda_site sites[SITES] = {[1] = site(SNAP_CUDA_DEVICE_MEMORY, UINT32_MAX, UINT32_MAX, 10, UINT64_MAX)};
    struct builder builder;
    struct image image;
    build(&builder, sites);
    load(&image, builder.bytes, builder.size);
    cr_expect_eq(image.cuda.device.live_bytes, 0);
    image_clear(&image);
    builder_end(&builder);
}

Test(reader_cuda, without_any) {
    struct builder builder;
    struct image image;
    builder_begin(&builder, SNAP_LEDGER);
    load(&image, builder.bytes, builder.size);
    struct image view = cuda_view(&image);
    struct cuda_share *shares = cuda_shares(&image);
    cr_expect(!image.cuda.used && view.total_count == 0 && shares && shares[0].device_bytes == 0);
    cuda_view_end(&view);
    free(shares);
    image_clear(&image);
    builder_end(&builder);
}
