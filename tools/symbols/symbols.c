/* symbols.c — see symbols.h. */
#include "tools/base/complain.h"
#include "tools/base/progress.h"
#include "tools/symbols/frameprint.h"
#include "tools/symbols/perfmap.h"
#include "tools/views/stacks.h"
#include "tools/symbols/symbols.h"
#include "tools/symbols/symreader.h"
#include "tools/base/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <uthash.h>

struct interned {
    UT_hash_handle hh;
    /* for symbols_alike: the first line with this key. line.frame is 1 + the id of its frame; 0: there is no line */
    struct symbol_line line;
    char text[];
};

/* MODULE_BAD: the module's file cannot be used. MODULE_SAID: a message about the file was printed. */
enum { MODULE_BAD = 1, MODULE_SAID = 2 };

/* A text stays in memory when no name uses it any more. Names of JIT-compiled code, for example, may change at each
 * look. To bound this memory, symbols_follow fails once there are more than 2 * strings_first + STRINGS_LEAST texts.
 * The caller then begins with new symbols. */
enum { STRINGS_LEAST = 10000 };

struct symbols {
    const struct image *image;
    struct symreader reader;
    size_t frame_capacity, module_capacity; /* how many frames and modules the arrays below can hold */
    struct named_frame **frames;            /* by frame id; NULL: not looked up yet */
    uint8_t *bad;                           /* by module: MODULE_BAD, MODULE_SAID, both or none */
    uint8_t *names_only;                    /* by module: the module's file has no debug information */
    struct interned *strings;
    struct perfmap *made_code; /* names of JIT-compiled code; NULL: not looked for yet, or not there */
    bool made_code_sought, lack_said;
    struct frameprint print; /* of the last image, while symbols rest */
    size_t strings_first;    /* how many texts there were when symbols rested for the first time */
    union {
        struct symreader_answer head;
        char bytes[SYMREADER_ANSWER_MAX];
    } answer;
};

/* The frame that is returned if the image lacks the id, or if there is no memory. It has one unknown symbol. */
static union {
    struct named_frame frame;
    char space[sizeof(struct named_frame) + sizeof(struct symbol)];
} nothing = {{.count = 1}};
static struct named_frame *const nameless = &nothing.frame;

struct symbols *symbols_begin(const struct image *image, pid_t pid) {
    struct symbols *symbols = calloc(1, sizeof *symbols);
    if (!symbols) return NULL;
    symbols->image = image;
    symbols->reader = (struct symreader){.image = image, .target = pid};
    symbols->frame_capacity = image->frame_count;
    symbols->module_capacity = image->module_count;
    symbols->frames = calloc(image->frame_count + 1, sizeof *symbols->frames);
    symbols->bad = calloc(image->module_count + 1, 1);
    symbols->names_only = calloc(image->module_count + 1, 1);
    if (symbols->frames && symbols->bad && symbols->names_only) return symbols;
    symbols_end(symbols);
    return NULL;
}

void symbols_end(struct symbols *symbols) {
    struct interned *string, *next;
    if (!symbols) return;
    symreader_end(&symbols->reader);
    HASH_ITER(hh, symbols->strings, string, next) {
        HASH_DEL(symbols->strings, string);
        free(string);
    }
    for (size_t i = 0; symbols->frames && i < symbols->frame_capacity; i++)
        if (symbols->frames[i] != nameless) free(symbols->frames[i]);
    free(symbols->frames);
    free(symbols->bad);
    free(symbols->names_only);
    perfmap_close(symbols->made_code);
    free(symbols);
}

/* Makes space for `more` items behind the `count` + 1 items of an array, and zeroes them. Returns NULL if there is no
 * memory; then the old array stays valid. */
static void *array_grow(void *array, size_t size, size_t count, size_t more) {
    uint8_t *grown = reallocarray(array, count + more + 1, size);
    if (grown) memset(grown + (count + 1) * size, 0, more * size);
    return grown;
}

static bool frames_grow(struct symbols *symbols) {
    if (symbols->image->frame_count <= symbols->frame_capacity) return true;
    size_t more = symbols->image->frame_count - symbols->frame_capacity;
    void *grown = array_grow(symbols->frames, sizeof *symbols->frames, symbols->frame_capacity, more);
    if (!grown) return false;
    symbols->frames = grown;
    symbols->frame_capacity += more;
    return true;
}

bool symbols_grow(struct symbols *symbols) {
    if (!frames_grow(symbols)) return false;
    if (symbols->image->module_count <= symbols->module_capacity) return true;
    size_t more = symbols->image->module_count - symbols->module_capacity;
    symreader_end(&symbols->reader); /* the reader is a fork, which has the modules of the time when it was started */
    uint8_t *bad = array_grow(symbols->bad, 1, symbols->module_capacity, more);
    if (bad) symbols->bad = bad;
    uint8_t *names_only = array_grow(symbols->names_only, 1, symbols->module_capacity, more);
    if (names_only) symbols->names_only = names_only;
    if (!bad || !names_only) return false;
    symbols->module_capacity += more;
    return true;
}

void symbols_rest(struct symbols *symbols) {
    symreader_end(&symbols->reader);
    symbols->print = frameprint_of(symbols->image);
    if (!symbols->strings_first) symbols->strings_first = HASH_COUNT(symbols->strings);
    symbols->image = symbols->reader.image = NULL;
}

/* Whether the name may be different at the next look, because the code is in no file and may change, or because a file
 * that could not be read can perhaps be read later. */
static bool symbols_name_passes(const struct symbols *symbols, size_t id) {
    const struct named_frame *named = symbols->frames[id];
    if (named == nameless) return true; /* there was no memory for it */
    if (!named || named->python) return false;
    const struct snap_module *module = stack_frame_module(symbols->image, &symbols->image->frames[id]);
    size_t index = module ? (size_t)(module - symbols->image->modules) : SIZE_MAX;
    if (index >= symbols->print.modules) return true;
    return symbols->bad[index] & MODULE_BAD && !named->symbols[0].function;
}

static void symbols_forget_passing(struct symbols *symbols) {
    for (size_t i = 0; i < symbols->print.frames && i < symbols->frame_capacity; i++) {
        if (!symbols_name_passes(symbols, i)) continue;
        if (symbols->frames[i] != nameless) free(symbols->frames[i]);
        symbols->frames[i] = NULL;
    }
    for (size_t i = 0; i < symbols->module_capacity; i++) symbols->bad[i] &= (uint8_t)~MODULE_BAD;
    perfmap_close(symbols->made_code);
    symbols->made_code = NULL;
    symbols->made_code_sought = false;
}

bool symbols_follow(struct symbols *symbols, const struct image *image) {
    if (!frameprint_fits(&symbols->print, image)) return false;
    if (HASH_COUNT(symbols->strings) > 2 * symbols->strings_first + STRINGS_LEAST) return false;
    symbols->image = symbols->reader.image = image;
    if (!symbols_grow(symbols)) return false;
    symbols_forget_passing(symbols);
    return true;
}

const char *symbols_short_path(const char *path) {
    const char *name = text_base_name(path), *parent = name;
    if (strncmp(name, "__", 2) != 0 || name < path + 2) return name;
    for (parent--; parent > path && parent[-1] != '/';) parent--;
    return parent;
}

/* Returns the entry of a text. Adds the entry if the text is new. Returns NULL if there is no memory. */
static struct interned *intern_text(struct symbols *symbols, const char *text) {
    struct interned *string;
    size_t length = strlen(text);
    HASH_FIND(hh, symbols->strings, text, length, string);
    if (string) return string;
    string = malloc(sizeof *string + length + 1);
    if (!string) return NULL;
    memcpy(string->text, text, length + 1);
    string->line = (struct symbol_line){0};
    HASH_ADD(hh, symbols->strings, text, length, string);
    return string;
}

/* Returns the interned copy of a text. Equal texts have the same copy. Returns NULL if the text is "", or if there is
 * no memory. */
static const char *symbols_intern(struct symbols *symbols, const char *text) {
    struct interned *string = *text ? intern_text(symbols, text) : NULL;
    return string ? string->text : NULL;
}

static struct named_frame *new_frame(size_t count) {
    struct named_frame *named = calloc(1, sizeof *named + count * sizeof named->symbols[0]);
    if (named) named->count = (uint32_t)count;
    return named;
}

static struct named_frame *name_python(struct symbols *symbols, const struct snap_frame *frame,
                                       const struct snap_code *code) {
    struct named_frame *named = new_frame(1);
    if (!named) return NULL;
    named->python = true;
    named->symbols[0].function = symbols_intern(symbols, image_string(symbols->image, code->name));
    named->symbols[0].file = symbols_intern(symbols, image_string(symbols->image, code->file));
    named->symbols[0].line = frame->line;
    return named;
}

static void symbols_say(struct symbols *symbols, uint32_t module, enum symfile_state state) {
    static const char *const words[] = {
        [SYMFILE_MISSING] = "cannot be opened",
        [SYMFILE_OTHER_BUILD] = "is not the build that the process ran",
        [SYMFILE_DAMAGED] = "cannot be read as a program or library",
    };
    const char *path = image_string(symbols->image, symbols->image->modules[module].path);
    if (!(symbols->bad[module] & MODULE_SAID))
        complain("%s %s: its functions are not named", TEXT_SAFE(path), words[state]);
    symbols->bad[module] = MODULE_BAD | MODULE_SAID;
}

/* Says once what this command lacks, and blames no file. */
static void say_lack(struct symbols *symbols, int error) {
    if (!symbols->lack_said)
        complain("some functions are not named, because memstow itself failed: %s", strerror(error));
    symbols->lack_said = true;
}

/* Says why the reader process (symreader.h) has ended: the module's file is damaged, or this command lacks memory or
 * descriptors. The command counts as short of memory if it cannot get READER_MORE bytes more than the size of the file:
 * the reader has other files open, too, and debug information takes more memory than its file. */
static void say_crash(struct symbols *symbols, uint32_t module) {
    enum { READER_MORE = 64 << 20 };
    struct stat st = {0};
    const char *path = image_string(symbols->image, symbols->image->modules[module].path);
    int error = symfile_lack(READER_MORE + (stat(path, &st) == 0 ? (size_t)st.st_size : 0));
    if (error) {
        symbols->bad[module] |= MODULE_BAD;
        say_lack(symbols, error);
    } else {
        symbols_say(symbols, module, SYMFILE_DAMAGED);
    }
}

/* Asks the reader process for the functions at an address of a module. Returns the number of names in its answer. */
static size_t symbols_look_up(struct symbols *symbols, uint32_t module, uint64_t address) {
    const char *path = image_string(symbols->image, symbols->image->modules[module].path);
    if (symbols->bad[module] & MODULE_BAD || path[0] != '/') return 0;
    progress_say("looking up functions in %s", text_base_name(path));
    if (!symreader_ask(&symbols->reader, module, address, &symbols->answer.head)) {
        say_crash(symbols, module);
        return 0;
    }
    enum symfile_state state = symbols->answer.head.state;
    if (state == SYMFILE_MISSING || state == SYMFILE_OTHER_BUILD || state == SYMFILE_DAMAGED)
        symbols_say(symbols, module, state);
    if (state == SYMFILE_NO_MEANS) {
        symbols->bad[module] |= MODULE_BAD;
        say_lack(symbols, symbols->answer.head.error);
    }
    symbols->names_only[module] = state == SYMFILE_NAMES_ONLY;
    return symbols->answer.head.count <= SYMFILE_NAMES_MAX ? symbols->answer.head.count : 0;
}

/* The next string of an answer; "" past its end. */
static const char *next_string(const struct symbols *symbols, size_t *at) {
    size_t left = symbols->answer.head.size - *at;
    const char *string = symbols->answer.bytes + *at, *end = memchr(string, 0, left);
    if (!end) return "";
    *at += (size_t)(end - string) + 1;
    return string;
}

static void take_answer(struct symbols *symbols, struct named_frame *named) {
    size_t at = sizeof symbols->answer.head;
    for (uint32_t i = 0; i < named->count; i++) {
        struct symbol *symbol = &named->symbols[i];
        if (symbols->answer.head.size - at < sizeof symbol->line) return;
        memcpy(&symbol->line, symbols->answer.bytes + at, sizeof symbol->line);
        at += sizeof symbol->line;
        symbol->function = symbols_intern(symbols, next_string(symbols, &at));
        symbol->file = symbols_intern(symbols, next_string(symbols, &at));
    }
}

/* The name of code that is in no file, such as JIT-compiled code. */
static const char *name_made_code(struct symbols *symbols, uint64_t address) {
    if (!symbols->made_code_sought) symbols->made_code = perfmap_open(&symbols->image->header, symbols->reader.target);
    symbols->made_code_sought = true;
    const char *name = symbols->made_code ? perfmap_name(symbols->made_code, address) : NULL;
    return name ? symbols_intern(symbols, name) : NULL;
}

/* Looks up the call before a return address, because the address itself may already belong to the next line or
 * function. */
static struct named_frame *name_native(struct symbols *symbols, const struct snap_frame *frame) {
    const struct snap_module *module = stack_frame_module(symbols->image, frame);
    uint64_t address = frame->address - (module ? module->bias : 0);
    uint64_t call = address - !(frame->code & SNAP_FRAME_INTERRUPTED);
    size_t count = module ? symbols_look_up(symbols, (uint32_t)(module - symbols->image->modules), call) : 0;
    struct named_frame *named = new_frame(count ? count : 1);
    if (!named) return NULL;
    if (count) take_answer(symbols, named);
    if (!module) named->symbols[0].function = name_made_code(symbols, call);
    const char *path = module ? image_module(symbols->image, frame->module) : NULL;
    named->module = path ? symbols_intern(symbols, path) : NULL; /* the image may grow, and its strings move */
    named->offset = address;
    return named;
}

const struct named_frame *symbols_frame(struct symbols *symbols, uint32_t id) {
    const struct snap_frame *frame = stack_frame(symbols->image, id);
    if (!frame) return nameless;
    if (!symbols->frames[id]) {
        const struct snap_code *code = stack_frame_code(symbols->image, frame);
        struct named_frame *named = code ? name_python(symbols, frame, code) : name_native(symbols, frame);
        symbols->frames[id] = named ? named : nameless;
    }
    return symbols->frames[id];
}

struct symbol_line symbols_alike(struct symbols *symbols, struct symbol_line line) {
    const struct named_frame *named = symbols_frame(symbols, line.frame);
    const struct symbol *symbol = &named->symbols[line.symbol < named->count ? line.symbol : 0];
    char words[80]; /* names are interned: equal texts have equal pointers */
    snprintf(words, sizeof words, "%p %p %p %u", (const void *)named->module, (const void *)symbol->function,
             (const void *)symbol->file, symbol->line);
    struct interned *same = symbol->function ? intern_text(symbols, words) : NULL;
    if (!same) return line;
    if (!same->line.frame) same->line = (struct symbol_line){line.frame + 1, line.symbol};
    return (struct symbol_line){same->line.frame - 1, same->line.symbol};
}

size_t symbols_without_lines(const struct symbols *symbols, const char **names, size_t most) {
    size_t count = 0;
    for (size_t i = 0; i < symbols->image->module_count; i++) {
        if (!symbols->names_only[i]) continue;
        const char *path = image_string(symbols->image, symbols->image->modules[i].path);
        if (count < most) names[count] = symbols_short_path(path);
        count++;
    }
    return count;
}

static bool name_has(const char *name, const char *text, bool any_case) {
    return name && (any_case ? strcasestr(name, text) : strstr(name, text));
}

static bool symbol_has(const struct symbol *symbol, const char *text, bool any_case) {
    return name_has(symbol->function, text, any_case) || name_has(symbol->file, text, any_case);
}

uint8_t *symbols_match(struct symbols *symbols, const char *text, bool any_case) {
    uint8_t *marks = calloc(symbols->image->frame_count + 1, 1);
    for (size_t i = 0; marks && i < symbols->image->frame_count; i++) {
        const struct named_frame *named = symbols_frame(symbols, (uint32_t)i);
        marks[i] = name_has(named->module, text, any_case);
        for (uint32_t k = 0; k < named->count && !marks[i]; k++)
            marks[i] = symbol_has(&named->symbols[k], text, any_case);
    }
    return marks;
}

static const char *module_name(const struct named_frame *frame) {
    return frame->module ? symbols_short_path(frame->module) : frame->python ? "(no file)" : "(no module)";
}

const char *symbol_nameless(const struct named_frame *frame, char name[SYMBOL_NAMELESS]) {
    if (frame->python)
        snprintf(name, SYMBOL_NAMELESS, "(unknown)");
    else
        snprintf(name, SYMBOL_NAMELESS, "%.280s+0x%llx", module_name(frame), (unsigned long long)frame->offset);
    return name;
}

static bool absolute;

void symbol_text_absolute(void) { absolute = true; }
bool symbol_text_is_absolute(void) { return absolute; }

/* A path as it is shown: whole, or its last names. */
static const char *shown_path(const char *path) { return absolute ? path : symbols_short_path(path); }

static void symbols_describe(const struct named_frame *frame, const struct symbol *symbol, char *name, char *where,
                             size_t size) {
    char offset[SYMBOL_NAMELESS];
    snprintf(name, size, "%s", symbol->function ? symbol->function : symbol_nameless(frame, offset));
    if (symbol->file && symbol->line)
        snprintf(where, size, "%s:%u", shown_path(symbol->file), symbol->line);
    else if (symbol->file)
        snprintf(where, size, "%s", shown_path(symbol->file));
    else
        snprintf(where, size, "%s", symbol->function ? module_name(frame) : "");
}

struct text_line symbol_text(const struct named_frame *frame, const struct symbol *symbol, int width) {
    char name[800], where[800];
    struct text_line line;
    symbols_describe(frame, symbol, name, where, sizeof name);
    if (absolute) width = sizeof line.s;
    int rest = width - 2 - text_columns(name); /* columns that a short name leaves free */
    struct text_line right = text_fit(where, rest > width / 2 ? rest : width / 2);
    int taken = *where ? text_columns(right.s) + 2 : 0;
    snprintf(line.s, sizeof line.s, "%.300s%s%.700s", text_fit(name, width - taken).s, *where ? "  " : "", right.s);
    return line;
}
