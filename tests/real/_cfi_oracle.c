/* _cfi_oracle.c — compares cfi_find with elfutils, for every row of the unwind tables of the named ELF files. The rules
 * of the two may have different forms. So their results are compared: both rules are applied to random registers and
 * memory, and must give the same CFA, and the same addresses where the return address and the caller's rbp are saved.
 * cfi_find may refuse a row of unusual form. Prints a line of figures for each file. The exit status is 1 if a row
 * differs or a file cannot be read. */
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "preload/stacks/cfi.h"

enum { BP = 6, SP = 7, RA = 16, SHOWN = 10 };

static const char *const reasons[CFI_WHYS] = {
    [CFI_NO_TABLE] = "no table",
    [CFI_NO_ENTRY] = "no entry",
    [CFI_TOO_LONG] = "too long",
    [CFI_FORMAT] = "format",
    [CFI_REGISTER] = "register",
    [CFI_EXPRESSION] = "expression",
    [CFI_RETURN_ADDRESS] = "return address",
    [CFI_FRAME_POINTER] = "rbp",
    [CFI_OFFSET] = "offset",
    [CFI_ODD_SIGNAL] = "odd signal frame",
    [CFI_MALFORMED] = "malformed",
};

static struct figures {
    uint64_t functions, rows, asked, kinds[CFI_END + 1], whys[CFI_WHYS], different;
    double seconds; /* in cfi_find */
} all, one;

/* --- a machine made up --- */

static uint64_t world; /* different for each row */

static uint64_t mix(uint64_t n) {
    n = (n ^ world) * 0x9e3779b97f4a7c15;
    n = (n ^ n >> 29) * 0xbf58476d1ce4e5b9;
    return n ^ n >> 32;
}

static uint64_t memory(uint64_t address) { return mix(address) & ~(uint64_t)7; }

static uint64_t register_value(uint64_t number, uint64_t pc) { return number == RA ? pc : memory(~number); }

/* --- what elfutils says --- */

/* Computes the result of an expression. *is_value: whether the result is the value itself, and not its address. Returns
 * false if the expression cannot be computed. */
static bool compute(const Dwarf_Op *ops, size_t count, uint64_t pc, uint64_t cfa, uint64_t *out, bool *is_value) {
    uint64_t stack[64], top;
    size_t depth = 0;
    *is_value = false;
    for (size_t i = 0; i < count; i++) {
        const Dwarf_Op *op = &ops[i];
        if (depth > 60) return false;
        top = depth ? stack[depth - 1] : 0;
        uint64_t under = depth > 1 ? stack[depth - 2] : 0;
        switch (op->atom) {
        case DW_OP_call_frame_cfa:
            stack[depth++] = cfa;
            break;
        case DW_OP_bregx:
            stack[depth++] = register_value(op->number, pc) + op->number2;
            break;
        case DW_OP_breg0 ... DW_OP_breg31:
            stack[depth++] = register_value(op->atom - DW_OP_breg0, pc) + op->number;
            break;
        case DW_OP_lit0 ... DW_OP_lit31:
            stack[depth++] = op->atom - DW_OP_lit0;
            break;
        case DW_OP_const1u:
        case DW_OP_const1s:
        case DW_OP_const2u:
        case DW_OP_const2s:
        case DW_OP_const4u:
        case DW_OP_const4s:
        case DW_OP_const8u:
        case DW_OP_const8s:
        case DW_OP_constu:
        case DW_OP_consts:
            stack[depth++] = op->number;
            break;
        case DW_OP_plus_uconst:
            stack[depth - 1] = top + op->number;
            break;
        case DW_OP_deref:
            stack[depth - 1] = memory(top);
            break;
        case DW_OP_and:
            stack[--depth - 1] = under & top;
            break;
        case DW_OP_plus:
            stack[--depth - 1] = under + top;
            break;
        case DW_OP_minus:
            stack[--depth - 1] = under - top;
            break;
        case DW_OP_shl:
            stack[--depth - 1] = under << (top & 63);
            break;
        case DW_OP_ge:
            stack[--depth - 1] = (int64_t)under >= (int64_t)top;
            break;
        case DW_OP_stack_value:
            *is_value = true;
            break;
        default:
            return false;
        }
        if (depth == 0) return false;
    }
    if (depth == 0) return false;
    *out = stack[depth - 1];
    return true;
}

enum state { PLACED, SAME, UNDEFINED, OTHERWISE };

struct answer {
    bool cfa_known, signal;
    bool usual; /* the usual forms of compilers: CFA is register + offset, and saved registers are at CFA + offset */
    uint64_t cfa, ra_at, bp_at;
    enum state ra, bp;
};

/* Finds where the caller's value of a register is saved. `usual` stays true if this address is CFA + offset. */
static enum state ask_register(Dwarf_Frame *frame, int number, uint64_t pc, uint64_t cfa, uint64_t *at, bool *usual) {
    Dwarf_Op room[3], *ops;
    size_t count;
    bool is_value;
    if (dwarf_frame_register(frame, number, room, &ops, &count)) return OTHERWISE;
    if (count == 0) return ops ? UNDEFINED : SAME;
    *usual &= ops[0].atom == DW_OP_call_frame_cfa && (count == 1 || (count == 2 && ops[1].atom == DW_OP_plus_uconst));
    return compute(ops, count, pc, cfa, at, &is_value) && !is_value ? PLACED : OTHERWISE;
}

static struct answer answer_of(Dwarf_Frame *frame, uint64_t pc) {
    struct answer answer = {.usual = true};
    Dwarf_Op *ops;
    size_t count;
    bool is_value;
    dwarf_frame_info(frame, NULL, NULL, &answer.signal);
    if (dwarf_frame_cfa(frame, &ops, &count) == 0 && compute(ops, count, pc, 0, &answer.cfa, &is_value))
        answer.cfa_known = true;
    answer.usual = answer.cfa_known && !answer.signal && count == 1 && ops[0].atom == DW_OP_bregx &&
                   (ops[0].number == BP || ops[0].number == SP);
    answer.ra = ask_register(frame, RA, pc, answer.cfa, &answer.ra_at, &answer.usual);
    answer.bp = ask_register(frame, BP, pc, answer.cfa, &answer.bp_at, &answer.usual);
    answer.usual &= answer.ra == PLACED && answer.ra_at == answer.cfa - 8 && answer.bp != OTHERWISE &&
                    (ops[0].number2 - (answer.bp == PLACED ? answer.cfa - answer.bp_at : 0)) % 8 == 0;
    Dwarf_Op room[3];
    if (dwarf_frame_register(frame, SP, room, &ops, &count) || count != 2 || ops[1].atom != DW_OP_stack_value)
        answer.usual = false; /* the caller's rsp is not the CFA */
    return answer;
}

/* --- what cfi_find says, in numbers --- */

static bool agrees(struct cfi_rule rule, const struct answer *answer, uint64_t pc) {
    uint64_t sp = register_value(SP, pc), bp = register_value(BP, pc), cfa;
    switch (rule.kind) {
    case CFI_END:
        return answer->ra == UNDEFINED;
    case CFI_SIGNAL:
        return answer->signal && answer->cfa == memory(sp + CFI_SIGNAL_SP) && answer->bp_at == sp + CFI_SIGNAL_BP &&
               answer->ra_at == sp + CFI_SIGNAL_PC;
    case CFI_SP:
        cfa = sp + (uint64_t)(int64_t)rule.cfa;
        break;
    case CFI_BP:
        cfa = bp + (uint64_t)(int64_t)rule.cfa;
        break;
    case CFI_BP_DEREF:
        cfa = memory(bp + (uint64_t)(int64_t)rule.cfa);
        break;
    default:
        return !answer->usual; /* refused: allowed for unusual rows only */
    }
    if (answer->signal || !answer->cfa_known || cfa != answer->cfa || answer->ra != PLACED || answer->ra_at != cfa - 8)
        return false;
    if (rule.bp == CFI_SAME) return answer->bp == SAME || answer->bp == UNDEFINED;
    return answer->bp == PLACED && answer->bp_at == (rule.bp_at_bp ? bp : cfa) + (uint64_t)(int64_t)rule.bp;
}

static void compare(const char *name, const struct cfi_object *object, uintptr_t base, Dwarf_Frame *frame,
                    uint64_t address) {
    world++;
    uintptr_t pc = base + address;
    struct cfi_rule rule = cfi_find(object, pc);
    struct answer answer = answer_of(frame, pc); /* rip is pc for both sides, so that PLT rows can be compared */
    one.asked++;
    one.kinds[rule.kind]++;
    one.whys[rule.why]++;
    if (!agrees(rule, &answer, pc) && one.different++ < SHOWN)
        printf("%s: %#lx: kind %d why %d cfa %d bp %d%s differs: ra %d bp %d\n", name, (unsigned long)address,
               rule.kind, rule.why, rule.cfa, rule.bp, rule.bp_at_bp ? " at rbp" : "", answer.ra, answer.bp);
}

/* --- one file --- */

struct file {
    Elf *elf;
    uintptr_t base;
    struct cfi_object object;
    const char *name;
};

/* Maps the segments as the loader does. */
static bool map(struct file *file, int fd) {
    size_t count, span = 0;
    GElf_Phdr segment;
    if (elf_getphdrnum(file->elf, &count)) return false;
    for (size_t i = 0; i < count; i++)
        if (gelf_getphdr(file->elf, (int)i, &segment) && segment.p_type == PT_LOAD)
            span = segment.p_vaddr + segment.p_memsz;
    uint8_t *base = mmap(NULL, span + 8192, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED) return false;
    file->base = (uintptr_t)base;
    uintptr_t header = 0;
    for (size_t i = 0; i < count; i++)
        if (gelf_getphdr(file->elf, (int)i, &segment) && segment.p_type == PT_GNU_EH_FRAME) header = segment.p_vaddr;
    for (size_t i = 0; i < count; i++) {
        gelf_getphdr(file->elf, (int)i, &segment);
        uint64_t slack = segment.p_vaddr % 4096;
        if (segment.p_type != PT_LOAD || header - segment.p_vaddr >= segment.p_filesz) continue;
        if (mmap(base + segment.p_vaddr - slack, segment.p_filesz + slack, PROT_READ, MAP_PRIVATE | MAP_FIXED, fd,
                 (off_t)(segment.p_offset - slack)) == MAP_FAILED)
            return false;
        uintptr_t start = (uintptr_t)base + segment.p_vaddr;
        file->object = (struct cfi_object){(uintptr_t)base + header, start, start + segment.p_filesz};
    }
    return header && file->object.header;
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Compares the rows from `address` on, to the end of its function. */
static void compare_function(const struct file *file, Dwarf_CFI *cfi, uint64_t address, uint64_t next) {
    one.functions++;
    while (address < next) {
        Dwarf_Frame *frame;
        Dwarf_Addr start, end;
        if (dwarf_cfi_addrframe(cfi, address, &frame)) break; /* the function ends before the next one begins */
        dwarf_frame_info(frame, &start, &end, NULL);
        one.rows++;
        compare(file->name, &file->object, file->base, frame, address);
        if (end - 1 != address && end <= next) compare(file->name, &file->object, file->base, frame, end - 1);
        free(frame);
        if (end <= address) break;
        address = end;
    }
}

static void time_reader(const struct file *file, const int32_t *index, uint32_t count) {
    double begin = now();
    for (uint32_t i = 0; i < count; i++)
        cfi_find(&file->object, file->object.header + (uintptr_t)(intptr_t)index[2 * i] + 8);
    one.seconds = (now() - begin) / count;
}

static void print(const char *name) {
    printf("%s: %lu functions, %lu rows, %lu addresses: %lu by rsp, %lu by rbp, %lu realigned, %lu signal, %lu end, "
           "%lu unknown",
           name, one.functions, one.rows, one.asked, one.kinds[CFI_SP], one.kinds[CFI_BP], one.kinds[CFI_BP_DEREF],
           one.kinds[CFI_SIGNAL], one.kinds[CFI_END], one.kinds[CFI_UNKNOWN]);
    const char *separator = " (";
    for (int why = 1; why < CFI_WHYS; why++)
        if (one.whys[why]) {
            printf("%s%lu %s", separator, one.whys[why], reasons[why]);
            separator = ", ";
        }
    printf("%s; %lu different; %.0f ns a rule\n", separator[0] == ',' ? ")" : "", one.different, one.seconds * 1e9);
    fflush(stdout);
}

static void compare_file(const char *path) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    const char *slash = strrchr(path, '/');
    struct file file = {.elf = elf_begin(fd, ELF_C_READ_MMAP, NULL), .name = slash ? slash + 1 : path};
    memset(&one, 0, sizeof one);
    bool has_table = file.elf && map(&file, fd);
    Dwarf_CFI *cfi = has_table ? dwarf_getcfi_elf(file.elf) : NULL;
    if (file.elf && !has_table) {
        printf("%s: no unwind table\n", file.name);
        return;
    }
    if (!cfi) {
        printf("%s: cannot be read: %s\n", file.name, dwarf_errmsg(-1));
        all.different++;
        return;
    }
    const uint8_t *header = (const uint8_t *)file.object.header;
    uint32_t count;
    memcpy(&count, header + 8, 4);
    if (header[2] != 3 || header[3] != 0x3b) count = 0;
    const int32_t *index = (const int32_t *)(const void *)(header + 12);
    uint64_t from = file.object.header - file.base;
    for (uint32_t i = 0; i < count; i++)
        compare_function(&file, cfi, from + (uint64_t)(int64_t)index[2 * i],
                         i + 1 < count ? from + (uint64_t)(int64_t)index[2 * i + 2] : UINT64_MAX);
    time_reader(&file, index, count);
    print(file.name);
    all.different += one.different;
    all.functions += one.functions;
    dwarf_cfi_end(cfi);
    elf_end(file.elf);
    close(fd);
}

int main(int argc, char **argv) {
    elf_version(EV_CURRENT);
    for (int i = 1; i < argc; i++) compare_file(argv[i]);
    printf("all: %lu functions, %lu different\n", all.functions, all.different);
    return all.different || !all.functions;
}
