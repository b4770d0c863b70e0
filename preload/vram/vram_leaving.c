/* vram_leaving.c — see vram_leaving.h. A block is copied in parts. Each lane of the ring (vram_ring.h) copies one part
 * at a time. If the backup is in ordinary memory, a part is as large as the lane's buffer. If the backup is pinned, a
 * part is as large as the driver can copy in one call. */
#include "preload/vram/vram_leaving.h"

#include "preload/copies/vram_stock.h"

static struct vram_leaving_block *block_at(struct vram_leaving *self, uint64_t number) {
    return &self->blocks[number % VRAM_LEAVING];
}

static void vram_leaving_fail(struct vram_leaving_block *of, int error) {
    if (of->why) return;
    of->why = VRAM_REFUSAL_DRIVER;
    of->error = error;
}

/* After an error of the driver: waits until no copy goes on. If that wait fails (`unsettled`), all parts whose copies
 * were begun have failed. */
static void settle(struct vram_leaving *self, int error) {
    vram_ring_fail(self->driver, self->ring, error);
    for (int i = 0; self->ring->unsettled && i < VRAM_SLOTS; i++) {
        struct vram_leaving_part *part = &self->parts[i];
        if (part->of) vram_leaving_fail(part->of, error), part->of->parts--;
        part->of = NULL;
    }
}

static bool vram_leaving_goes_on(const struct vram_leaving *self) {
    for (int i = 0; i < VRAM_SLOTS; i++)
        if (self->parts[i].of) return true;
    return false;
}

/* Waits for the copy of the part in this lane. If the content is in the lane's buffer, copies it to the backup. */
static void arrive(struct vram_leaving *self, uint32_t lane) {
    struct vram_leaving_part *part = &self->parts[lane];
    struct vram_leaving_block *of = part->of;
    if (!of) return;
    int error = vram_ring_await(self->driver, self->ring, lane);
    if (error) {
        vram_leaving_fail(of, error);
        settle(self, error);
    } else if (part->to) {
        vram_ring_take(self->ring, lane, part->to, part->bytes);
    }
    if (part->of) of->parts--;
    part->of = NULL;
    if (!error && !vram_leaving_goes_on(self)) self->ring->unsettled = false;
}

static void end_first(struct vram_leaving *self) {
    const struct vram_leaving_block of = *block_at(self, self->first++);
    self->over(self->context, of.block, of.why, of.error);
}

static void end_what_is_over(struct vram_leaving *self, uint64_t before) {
    while (self->first < before && !block_at(self, self->first)->parts) end_first(self);
}

struct vram_leaving_block *vram_leaving_wait(struct vram_leaving *self) {
    for (uint64_t i = 0; i < VRAM_SLOTS; i++) arrive(self, (self->turn + i) % VRAM_SLOTS);
    return block_at(self, self->next - 1);
}

void vram_leaving_end(struct vram_leaving *self) {
    vram_leaving_wait(self);
    end_what_is_over(self, self->next);
}

/* Adds a block to the list. If the list is full, first waits for all copies, and hands all blocks in the list to
 * `over`. The list can fill up although copies are over, because a block stays in it until all blocks before it have
 * left it. */
static struct vram_leaving_block *vram_leaving_new(struct vram_leaving *self, struct vram_block *block) {
    end_what_is_over(self, self->next);
    if (self->next - self->first == VRAM_LEAVING) vram_leaving_end(self);
    struct vram_leaving_block *of = block_at(self, self->next++);
    *of = (struct vram_leaving_block){.block = block};
    return of;
}

void vram_leaving_add_copied(struct vram_leaving *self, struct vram_block *block, enum vram_refusal why, int error) {
    struct vram_leaving_block *of = vram_leaving_new(self, block);
    of->why = why;
    of->error = error;
}

/* Begins to copy the next part. Returns its length in bytes; 0: an error. */
static uint64_t ask(struct vram_leaving *self, struct vram_leaving_block *of, uint64_t done) {
    const struct vram_block *block = of->block;
    uint32_t lane = self->turn % VRAM_SLOTS;
    uint64_t rest = block->size - done, bytes = rest < self->ring->slot_bytes ? rest : self->ring->slot_bytes;
    bool pinned = block->backup_kind == VRAM_PINNED;
    char *to = block->backup + done;
    arrive(self, lane);
    end_what_is_over(self, self->next - 1);
    if (of->why) return 0;
    if (pinned) bytes = vram_stock_whole(to, rest);
    int error = vram_ring_ask(self->driver, self->ring, lane, pinned ? to : NULL, block->at + done, bytes);
    if (error) {
        vram_leaving_fail(of, error);
        settle(self, error);
        return 0;
    }
    self->parts[lane] = (struct vram_leaving_part){of, pinned ? NULL : to, bytes};
    self->turn++;
    of->parts++;
    return bytes;
}

void vram_leaving_add(struct vram_leaving *self, struct vram_block *block) {
    struct vram_leaving_block *of = vram_leaving_new(self, block);
    int error = vram_leaving_goes_on(self) ? 0 : vram_ring_settle(self->driver, self->ring);
    if (error) vram_leaving_fail(of, error);
    for (uint64_t done = 0, bytes = 1; done < block->size && bytes && !error; done += bytes)
        bytes = ask(self, of, done);
}
