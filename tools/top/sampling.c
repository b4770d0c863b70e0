/* sampling.c — see sampling.h. */
#include "tools/top/sampling.h"
#include "tools/base/duration.h"
#include "tools/base/list.h"
#include "tools/proc/process.h"
#include "tools/reader/last_word.h"
#include "tools/subject/live.h"
#include "tools/top/chunks.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SCAN_TRIES = 4 };

/* --- opening and closing a ledger --- */

static int sampling_open(struct sampling *sampling, char *error, size_t size) {
    static struct live live;
    if (live_open(&live, sampling->pid, error, size) < 0) return -1;
    int result = source_map(&live.source);
    if (result < 0) {
        snprintf(error, size, "process %d: %s", (int)sampling->pid, strerror(-result));
        return -1;
    }
    sampling->source = live.source;
    snprintf(sampling->path, sizeof sampling->path, "%s", live.path);
    sampling->reader = (struct reader){.image = &sampling->image, .source = &sampling->source, .live = true};
    return 0;
}

static void sampling_close(struct sampling *sampling) {
    source_close(&sampling->source);
    free(sampling->reader.sections);
    free(sampling->sites);
    free(sampling->changes);
    chunks_clear(sampling);
    free(sampling->threads);
    free(sampling->threads_began);
    free(sampling->cuda_sites);
    image_clear(&sampling->image);
}

/* Forgets everything about the ledger, but not what is known about the process. */
static void sampling_forget(struct sampling *sampling) {
    struct sampling kept = {.pid = sampling->pid,
                            .looks = sampling->looks,
                            .look_ns = sampling->look_ns,
                            .begin_ns = sampling->begin_ns,
                            .seconds = sampling->seconds,
                            .execs = sampling->execs};
    sampling_close(sampling);
    *sampling = kept;
    sampling->source.fd = -1;
}

void sampling_end(struct sampling *sampling) {
    sampling_close(sampling);
    *sampling = (struct sampling){.source.fd = -1};
}

int sampling_begin(struct sampling *sampling, pid_t pid, char *error, size_t size) {
    *sampling = (struct sampling){.pid = pid, .source.fd = -1, .begin_ns = duration_now()};
    if (sampling_open(sampling, error, size) == 0 && sampling_look(sampling, error, size) == 0) return 0;
    sampling_end(sampling);
    return -1;
}

/* --- reading the sections and tables --- */

/* Makes the source longer, because the ledger has grown. If the ledger is in the memory of a process, opens that memory
 * again. If the ledger is a file, maps the file again. */
static int source_grow(struct sampling *sampling) {
    struct sampling next = {.pid = sampling->pid, .source.fd = -1};
    struct snap_header header;
    char error[256];
    if (sampling->source.kind != SOURCE_PROCESS) return source_refresh(&sampling->source);
    if (sampling_open(&next, error, sizeof error) < 0) return -1;
    if (reader_header(&header, &next.source, error, sizeof error) < 0 ||
        (sampling->looks && header.start_ns != sampling->image.header.start_ns)) {
        source_close(&next.source);
        return -1;
    }
    source_close(&sampling->source);
    sampling->source = next.source;
    return 0;
}

/* Reads the header and the list of sections anew, because the file and the records in use grow. */
static int sampling_scan(struct sampling *sampling) {
    struct reader *reader = &sampling->reader;
    struct snap_header header;
    uint64_t size = 0;
    if (source_read(&sampling->source, offsetof(struct snap_header, size), &size, sizeof size) == 0 &&
        size > sampling->source.size && source_grow(sampling) < 0)
        return reader_damaged(reader, 0, "it could not be mapped again");
    if (reader_header(&header, &sampling->source, sampling->image.error, sizeof sampling->image.error) < 0) return -1;
    sampling->image.header = header;
    reader->section_count = 0;
    reader->wide.count = 0;
    reader->wide.missing = false;
    if (reader_scan(reader) < 0 || counters_find_wide(reader) < 0) return -1;
    uint64_t sites = sampling_records(sampling, SNAP_SITE);
    if (sites > UINT32_MAX || sites > sampling->source.size / sizeof(struct snap_site))
        return reader_damaged(reader, 0, "more sites than the file can hold");
    return 0;
}

uint64_t sampling_records(const struct sampling *sampling, uint32_t type) {
    const struct reader *reader = &sampling->reader;
    uint64_t count = 0;
    for (size_t i = 0; i < reader->section_count; i++) {
        const struct snap_section *head = &reader->sections[i].head;
        if (head->type == type && head->count && head->first + head->count > count) count = head->first + head->count;
    }
    return count;
}

#define TABLE_DROP(table, count) (free(table), (table) = NULL, (count) = 0)

/* Reads a table. Returns 0, or -1: then the table has no records. */
#define TABLE(sampling, type, table, count)                                                                            \
    (TABLE_DROP(table, count),                                                                                         \
     reader_table(&(sampling)->reader, (type), sizeof *(table), (void **)&(table), &(count)) == 0                      \
         ? 0                                                                                                           \
         : (TABLE_DROP(table, count), -1))

/* Reads the tables whose fields change, at each look. */
static int load_owners(struct sampling *sampling) {
    struct image *image = &sampling->image;
    if (TABLE(sampling, SNAP_OWNER, image->owners, image->owner_count) < 0 ||
        TABLE(sampling, SNAP_TAG, image->tags, image->tag_count) < 0 ||
        TABLE(sampling, SNAP_THREAD, image->threads, image->thread_count) < 0)
        return -1;
    image_sort_owners(image);
    image_adopt(image);
    for (size_t i = 0; i < image->thread_count; i++) image->threads[i].name[sizeof image->threads[i].name - 1] = 0;
    return 0;
}

static int load_strings(struct sampling *sampling) {
    struct image *image = &sampling->image;
    if (sampling_records(sampling, SNAP_STRINGS) == image->strings_size && image->strings) return 0;
    return TABLE(sampling, SNAP_STRINGS, image->strings, image->strings_size);
}

static int load_modules(struct sampling *sampling) {
    struct image *image = &sampling->image;
    if (sampling_records(sampling, SNAP_MODULE) == image->module_count && image->modules) return 0;
    return TABLE(sampling, SNAP_MODULE, image->modules, image->module_count);
}

int sampling_load_names(struct sampling *sampling) {
    struct image *image = &sampling->image;
    if (sampling->state != SAMPLING_RUNS && image->frames) return 0;
    if ((sampling_records(sampling, SNAP_FRAME) != image->frame_count || !image->frames) &&
        TABLE(sampling, SNAP_FRAME, image->frames, image->frame_count) < 0)
        return -1;
    if ((sampling_records(sampling, SNAP_CODE) != image->code_count || !image->codes) &&
        TABLE(sampling, SNAP_CODE, image->codes, image->code_count) < 0)
        return -1;
    return 0;
}

/* --- reading sites --- */

static int sites_grow(struct sampling *sampling, size_t count) {
    size_t old = sampling->site_capacity;
    if (count <= old) return 0;
    if (!list_grow(&sampling->sites, sizeof *sampling->sites, old, count - old, &sampling->site_capacity))
        return reader_memory(&sampling->reader);
    memset(sampling->sites + old, 0, (sampling->site_capacity - old) * sizeof *sampling->sites);
    return 0;
}

static int words_read(struct sampling *sampling, const struct section *section, uint64_t from) {
    uint64_t words[512], end = section->head.first + section->head.count;
    for (uint64_t id = from > section->head.first ? from : section->head.first; id < end;) {
        size_t count = end - id < 512 ? (size_t)(end - id) : 512;
        uint64_t offset = section->data + (id - section->head.first) * section->head.record_size;
        if (section->head.record_size != sizeof *words) count = 1;
        if (source_read(&sampling->source, offset, words, count * sizeof *words) < 0)
            return reader_truncated(&sampling->reader, offset);
        for (size_t i = 0; i < count; i++) sampling->sites[id++].word = words[i];
    }
    return 0;
}

static bool section_has(const struct section *section, uint64_t id) {
    return id >= section->head.first && id - section->head.first < section->head.count;
}

/* NULL: no section has the record. */
static const struct section *section_find(const struct sampling *sampling, uint32_t type, uint64_t id) {
    for (size_t i = 0; i < sampling->reader.section_count; i++) {
        const struct section *section = &sampling->reader.sections[i];
        if (section->head.type == type && section_has(section, id)) return section;
    }
    return NULL;
}

/* The offset of a record in the ledger. */
static uint64_t record_at(const struct section *section, uint64_t id) {
    return section->data + (id - section->head.first) * section->head.record_size;
}

static int word_read(struct sampling *sampling, uint32_t id) {
    const struct section *section = section_find(sampling, SNAP_SITE, id);
    if (!section) return 0;
    uint64_t offset = record_at(section, id);
    if (source_read(&sampling->source, offset, &sampling->sites[id].word, sizeof(uint64_t)) == 0) return 0;
    return reader_truncated(&sampling->reader, offset);
}

static bool has_stack(uint64_t word) { return word && word != SNAP_SITE_FREE; }

/* Reads the words of changed sites again if they were 0 or SNAP_SITE_FREE when they were read last. A thread takes the
 * id of a site, then writes the site's word, and then counts at the site. A look between the first two steps reads one
 * of these two values. When a later look finds that the site's counters have changed, the word has been written. */
static int words_renew(struct sampling *sampling) {
    for (size_t i = 0; i < sampling->change_count; i++) {
        uint32_t id = sampling->changes[i].site;
        if (!has_stack(sampling->sites[id].word) && word_read(sampling, id) < 0) return -1;
    }
    return 0;
}

/* Reads the words of new sites. The word of a known site changes in two cases only: in a fold, after which all sites
 * count as new; or if the site had no word yet. */
static int sites_load(struct sampling *sampling) {
    uint64_t count = sampling_records(sampling, SNAP_SITE), from = sampling->site_count;
    if (sites_grow(sampling, (size_t)count) < 0) return -1;
    for (size_t i = 0; i < sampling->reader.section_count; i++) {
        const struct section *section = &sampling->reader.sections[i];
        if (section->head.type == SNAP_SITE && section->head.first + section->head.count > from &&
            words_read(sampling, section, from) < 0)
            return -1;
    }
    sampling->site_count = (size_t)count > from ? (size_t)count : (size_t)from;
    return words_renew(sampling);
}

static uint64_t sampling_above(uint64_t allocated, uint64_t freed) { return allocated > freed ? allocated - freed : 0; }

static int change_note(struct sampling *sampling, uint32_t site, int64_t live, int64_t blocks) {
    if (sampling->anew) return 0;
    if (!LIST_GROW(sampling->changes, sampling->change_count, sampling->change_capacity))
        return reader_memory(&sampling->reader);
    sampling->changes[sampling->change_count++] = (struct sampling_change){site, live, blocks};
    return 0;
}

static int site_take(struct sampling *sampling, uint32_t id, const struct snap_counter *host,
                     const struct snap_counter *mapped) {
    struct sampling_site *site = &sampling->sites[id], now = *site;
    struct sampling_totals *totals = &sampling->totals;
    now.host = sampling_above(host->alloc_bytes, host->free_bytes);
    now.mapped = sampling_above(mapped->alloc_bytes, mapped->free_bytes);
    now.host_blocks = (uint32_t)sampling_above(host->alloc_blocks, host->free_blocks);
    now.mapped_blocks = (uint32_t)sampling_above(mapped->alloc_blocks, mapped->free_blocks);
    int64_t live = (int64_t)(now.host + now.mapped - site->host - site->mapped);
    int64_t blocks = (int64_t)now.host_blocks + now.mapped_blocks - site->host_blocks - site->mapped_blocks;
    if (now.host == site->host && now.mapped == site->mapped && blocks == 0) return 0;
    if (id != SNAP_SITE_INHERITED) {
        totals->host += now.host - site->host;
        totals->mapped += now.mapped - site->mapped;
        totals->blocks += (uint64_t)blocks;
    }
    *site = now;
    return change_note(sampling, id, live, blocks);
}

int sampling_take(struct sampling *sampling, uint32_t index, const struct counters_sites *sites) {
    uint32_t first = index * SNAP_CHUNK_SITES;
    if (sites_grow(sampling, (size_t)first + SNAP_CHUNK_SITES) < 0) return -1;
    for (uint32_t i = 0; i < SNAP_CHUNK_SITES; i++)
        if (site_take(sampling, first + i, &sites->host[i], &sites->mapped[i]) < 0) return -1;
    return 0;
}

/* --- reading totals --- */

static uint64_t resident_of(pid_t pid) {
    char path[64];
    uint64_t pages = 0;
    snprintf(path, sizeof path, "/proc/%d/statm", (int)pid);
    FILE *file = fopen(path, "re");
    if (!file) return 0;
    if (fscanf(file, "%*s %" SCNu64, &pages) != 1) pages = 0;
    fclose(file);
    return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static int load_devices(struct sampling *sampling) {
    struct snap_cuda *head = NULL;
    size_t count = 0;
    TABLE_DROP(sampling->cuda_sites, sampling->cuda_site_count);
    sampling->totals.uses_devices = sampling_records(sampling, SNAP_CUDA) > 0;
    if (!sampling->totals.uses_devices) return 0;
    if (TABLE(sampling, SNAP_CUDA, head, count) < 0) return -1;
    sampling->totals.devices = count && head->live > 0 ? (uint64_t)head->live : 0;
    free(head);
    return TABLE(sampling, SNAP_CUDA_SITE, sampling->cuda_sites, sampling->cuda_site_count);
}

static void load_totals(struct sampling *sampling) {
    const struct snap_header *header = &sampling->image.header;
    struct sampling_totals *totals = &sampling->totals;
    uint64_t live = totals->host + totals->mapped, rss = resident_of(sampling->pid);
    totals->allocated = 0;
    for (size_t i = 0; i < sampling->image.thread_count; i++)
        totals->allocated += sampling_thread(sampling, i).alloc_bytes;
    totals->peak = header->total_peak > live ? header->total_peak : live;
    if (rss) totals->rss = rss;
}

/* --- taking a look --- */

static uint32_t fold_of(const struct sampling *sampling) {
    uint32_t sequence = 0;
    source_read(&sampling->source, offsetof(struct snap_header, fold_sequence), &sequence, sizeof sequence);
    return sequence;
}

/* Prepares for reading everything again, because after a fold the ids of sites may belong to other stacks. `began` and
 * `word` stay, for began_keep. */
static void begin_anew(struct sampling *sampling) {
    sampling->anew = true;
    sampling->site_count = 0;
    chunks_clear(sampling);
    for (size_t i = 0; i < sampling->site_capacity; i++) {
        struct sampling_site *site = &sampling->sites[i];
        *site = (struct sampling_site){.word = site->word, .began = site->began};
    }
    sampling->totals.host = sampling->totals.mapped = sampling->totals.blocks = 0;
}

/* Sets `began` to 0 for sites whose id belongs to another stack now. `words`: the sites' words before the new
 * reading. */
static void began_keep(struct sampling *sampling, const uint64_t *words, size_t count) {
    for (size_t i = 0; i < sampling->site_capacity; i++)
        if (i >= count || words[i] != sampling->sites[i].word) sampling->sites[i].began = 0;
}

/* Reads all counters that changed. If a wide counter lies in a section that was made after the list of sections was
 * read, reads the list and all counters again. */
static int read_counters(struct sampling *sampling) {
    for (int tries = 1;; tries++) {
        if (sampling_scan(sampling) < 0 || chunks_look(sampling) < 0) return -1;
        if (!sampling->reader.wide.missing) return 0;
        if (tries == SCAN_TRIES) return sampling_distrust(sampling), 0;
        chunks_clear(sampling);
    }
}

static int sampling_read_all(struct sampling *sampling) {
    if (read_counters(sampling) < 0) return -1;
    /* A running process registers sites, modules and strings before it counts at them. So the tables are read after the
     * counters. */
    if (sampling_scan(sampling) < 0 || sites_load(sampling) < 0 || load_owners(sampling) < 0 ||
        load_strings(sampling) < 0 || load_modules(sampling) < 0 || load_devices(sampling) < 0)
        return -1;
    load_totals(sampling);
    return 0;
}

static int read_anew(struct sampling *sampling) {
    size_t count = sampling->site_capacity;
    if (sampling_scan(sampling) < 0) return -1; /* done first: if it fails, the figures stay */
    uint64_t *words = malloc((count + 1) * sizeof *words);
    if (!words) return reader_memory(&sampling->reader);
    for (size_t i = 0; i < count; i++) words[i] = sampling->sites[i].word;
    begin_anew(sampling);
    int result = sampling_read_all(sampling);
    if (sampling->looks) began_keep(sampling, words, count);
    free(words);
    return result;
}

static bool is_there(const struct sampling *sampling, const struct snap_header *header) {
    struct process process;
    return process_look(&process, sampling->pid) == 0 && process.start_ticks == header->start_ticks &&
           process_is_alive(process.state, process.threads) && !(process.is_ending && process.threads <= 1);
}

static void tell_end(struct sampling *sampling, const struct snap_header *header) {
    sampling->state = SAMPLING_ENDED;
    if (header->state == SNAP_RUNNING)
        snprintf(sampling->ended, sizeof sampling->ended, "%.150s", last_word_of_untold(header).s);
    else
        snprintf(sampling->ended, sizeof sampling->ended, "has ended%s",
                 header->state == SNAP_ABRUPT_EXIT ? " by _exit" : "");
}

bool sampling_is_next(const struct snap_header *old, const struct snap_header *next) {
    return next->start_ns != old->start_ns && next->state != SNAP_EXECED;
}

/* Watches the program that the process has become, if that program is tracked. False: it is not, or not yet. */
static bool follow_exec(struct sampling *sampling) {
    struct sampling next = {.pid = sampling->pid, .source.fd = -1};
    struct snap_header header;
    char error[256];
    if (sampling_open(&next, error, sizeof error) < 0) return false;
    if (reader_header(&header, &next.source, error, sizeof error) < 0 ||
        !sampling_is_next(&sampling->image.header, &header)) {
        source_close(&next.source);
        return false;
    }
    struct source source = next.source;
    sampling_forget(sampling);
    memcpy(sampling->path, next.path, sizeof sampling->path);
    sampling->source = source;
    sampling->reader = (struct reader){.image = &sampling->image, .source = &sampling->source, .live = true};
    sampling->looks = 0;
    sampling->execs++;
    return true;
}

/* The ledger notes an exec shortly before execve, which may fail. The next program gets its ledger a moment later. So
 * several looks try to follow. */
static void wait_for_exec(struct sampling *sampling) {
    if (follow_exec(sampling))
        sampling->exec_waits = 0;
    else if (++sampling->exec_waits == LIVE_EXEC_LOOKS)
        sampling->state = SAMPLING_REPLACED;
}

/* Finds out whether the process has ended or become another program. The mapping of a ledger outlives its process, so
 * the last figures can be read. But a ledger that is only in the process's memory is gone after execve. */
static void look_at_end(struct sampling *sampling) {
    struct snap_header header = sampling->image.header;
    bool gone = source_read(&sampling->source, 0, &header, sizeof header) < 0;
    if (sampling->looks && !is_there(sampling, &header))
        tell_end(sampling, &header);
    else if (sampling->looks && (gone || header.state == SNAP_EXECED))
        wait_for_exec(sampling);
    else
        sampling->exec_waits = 0;
}

/* Makes fold_sequence odd. It then differs from the ledger's, which is even except during a fold, so the next look
 * reads everything anew. */
void sampling_distrust(struct sampling *sampling) { sampling->fold_sequence |= 1; }

static int look_once(struct sampling *sampling) {
    uint32_t fold = fold_of(sampling);
    sampling->change_count = 0;
    sampling->anew = sampling->stale = false;
    if (fold & 1) return sampling->stale = true, 0;
    bool again = !sampling->looks || fold != sampling->fold_sequence;
    sampling->fold_sequence = fold;
    int result = again ? read_anew(sampling) : sampling_read_all(sampling);
    if (result < 0 || fold_of(sampling) != fold)
        sampling_distrust(sampling); /* failed, or a fold happened during the look */
    return result;
}

static void time_note(struct sampling *sampling) {
    uint64_t now = duration_now();
    sampling->seconds = sampling->look_ns ? (double)(now - sampling->look_ns) / 1e9 : 0;
    sampling->look_ns = now;
}

struct snap_counter sampling_thread(const struct sampling *sampling, size_t slot) {
    struct snap_counter sum =
        slot < sampling->image.thread_count ? sampling->image.threads[slot].total : (struct snap_counter){0};
    if (slot >= sampling->thread_capacity) return sum;
    sum.alloc_bytes += sampling->threads[slot].alloc_bytes;
    sum.alloc_blocks += sampling->threads[slot].alloc_blocks;
    sum.free_bytes += sampling->threads[slot].free_bytes;
    sum.free_blocks += sampling->threads[slot].free_blocks;
    return sum;
}

static void threads_note(struct sampling *sampling) {
    size_t count = sampling->image.thread_count;
    sampling->threads_began = calloc(count + 1, sizeof *sampling->threads_began);
    sampling->threads_began_count = sampling->threads_began ? count : 0;
    for (size_t slot = 0; slot < sampling->threads_began_count; slot++) {
        struct snap_counter sum = sampling_thread(sampling, slot);
        sampling->threads_began[slot] = (int64_t)(sum.alloc_bytes - sum.free_bytes);
    }
}

/* Notes in `began` what each site had at the first look. */
static void began_note(struct sampling *sampling) {
    threads_note(sampling);
    for (size_t i = 0; i < sampling->site_capacity; i++)
        sampling->sites[i].began = sampling->sites[i].host + sampling->sites[i].mapped;
    sampling->began = sampling->totals;
    sampling->begin_ns = sampling->look_ns;
}

int sampling_look(struct sampling *sampling, char *error, size_t size) {
    if (sampling->state != SAMPLING_RUNS) return 0;
    look_at_end(sampling);
    if (look_once(sampling) < 0) {
        /* a ledger in the process's memory is gone with the process: the last figures stay */
        if (sampling->state != SAMPLING_RUNS || sampling->exec_waits) return sampling->stale = true, 0;
        snprintf(error, size, "process %d: %s", (int)sampling->pid, sampling->image.error);
        return -1;
    }
    if (sampling->stale) return 0;
    time_note(sampling);
    if (!sampling->looks++) began_note(sampling);
    return 0;
}

/* --- reading stacks --- */

/* Reads a word of a stack. *section: the section of the word that was read last, where the next word usually is, too;
 * NULL: none was read yet. False: no section has the word. */
static bool run_word(const struct sampling *sampling, const struct section **section, uint64_t id, uint32_t *word) {
    if (!*section || !section_has(*section, id)) *section = section_find(sampling, SNAP_RUN, id);
    return *section && source_read(&sampling->source, record_at(*section, id), word, sizeof *word) == 0;
}

/* Follows the stack from the word at `place` outwards. The caller of a frame is in the word before the frame. Before
 * the first frame of a run of frames there is no such word: the head of the run has the place of that frame's caller. A
 * hostile file may lead in a circle, so the number of steps is limited. */
size_t sampling_stack(const struct sampling *sampling, uint32_t place, uint32_t *frames, size_t most) {
    const struct section *section = NULL;
    size_t count = 0;
    for (size_t steps = 0; place >= SNAP_RUN_HEAD && count < most && steps < 2 * most; steps++) {
        uint32_t word;
        if (!run_word(sampling, &section, place, &word)) break;
        if ((word & SNAP_RUN_FRAME) != SNAP_RUN_FRAME) frames[count++] = word & SNAP_RUN_FRAME;
        uint32_t outside = place - 1;
        if (word & SNAP_RUN_FIRST && !run_word(sampling, &section, place - SNAP_RUN_HEAD + SNAP_RUN_OUTER, &outside))
            break;
        place = outside;
    }
    return count;
}
