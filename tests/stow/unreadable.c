/* unreadable.c — memory that has moved to a disk that stops answering. Prints "moved", and waits for a line before each
 * of two tries to bring it back. The first try must fail. */
#include "moving.h"

int main(void) {
    enum { LENGTH = 16 * MIB };
    char line[16];
    uint32_t why;
    find_engine();
    char *p = map_memory(LENGTH);
    fill(p, LENGTH, 1);
    MUST_BE(out(p, LENGTH, has_userfaultfd() ? NULL : &(struct stow_options){.idle = true}, &why), LENGTH);
    for (int idle = 0; idle < 2; idle++) {
        struct stow_options options = {.idle = idle};
        struct stow_piece piece = {.start = (uint64_t)p, .length = LENGTH};
        puts("moved"), fflush(stdout);
        MUST(fgets(line, sizeof line, stdin));
        if (!idle && !has_userfaultfd()) continue;
        int64_t back = stow_in_(&piece, 1, &options);
        printf("%lld %s\n", (long long)back, stow_text_(piece.refusal)), fflush(stdout);
        MUST(back == -EIO || (back > 0 && back < LENGTH));
        MUST_BE(piece.refusal, STOW_DISK_ERROR);
        MUST_BE(stow_bytes_(0), LENGTH - (back > 0 ? back : 0));
        MUST(is_stowed_(p + LENGTH - PAGE));
    }
    puts("moved"), fflush(stdout);
    MUST(fgets(line, sizeof line, stdin));
    MUST(in(p, LENGTH, &(struct stow_options){.idle = true}) > 0);
    MUST(holds(p, LENGTH, 1) && !is_file_backed(p + LENGTH - PAGE));
    puts("back");
    return 0;
}
