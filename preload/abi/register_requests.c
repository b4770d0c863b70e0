/* register_requests.c — the entry points of memstow.h for snapshots, and for requests that come through the control
 * socket.
 * In: the program's calls, with any argument. Out: calls of requests.c and spawn.c, with checked arguments. */
#include "include/memstow.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "preload/abi/entry.h"
#include "preload/life/process.h"
#include "preload/control/requests.h"
#include "preload/ledger/spawn.h"

enum { PATH_SIZE = 4096, LEAST = offsetof(struct memstow_request, needed) };

/* Takes the next request of these kinds, and returns what requests_next returns. First checks that all of `out` is
 * writable: otherwise a request could be taken and lost. */
static int32_t next_request(struct memstow_request *out, uint32_t kinds, uint32_t milliseconds) {
    struct memstow_request request = {0};
    if (!process_tracked()) return (int32_t)entry_not_tracked();
    int64_t least = entry_size(out, LEAST, sizeof request);
    if (least < 0) return (int32_t)least;
    uint32_t size = request.size = (uint32_t)least;
    if (!entry_out(out, &request, size)) return (int32_t)entry_fails(-EFAULT, "the request cannot be written there");
    int result = requests_next(&request, kinds, milliseconds);
    if (result < 0) return (int32_t)entry_fails(result, "no request can come: the process is in a sandbox");
    request.size = size;
    if (result > 0) entry_out(out, &request, size);
    return result;
}

EXPORTED int32_t memstow_request_next(struct memstow_request *out, uint32_t milliseconds) {
    return next_request(out, REQUESTS_OLD, milliseconds);
}

EXPORTED int32_t memstow_request_of(struct memstow_request *out, uint32_t kinds, uint32_t milliseconds) {
    if (!kinds || kinds & ~(uint32_t)REQUESTS_ALL)
        return (int32_t)entry_fails(-EINVAL, "there are no such kinds of requests");
    return next_request(out, kinds, milliseconds);
}

EXPORTED int32_t memstow_request_done(uint64_t ticket, int64_t result, const char *text) {
    char copy[256];
    if (!process_tracked()) return (int32_t)entry_not_tracked();
    if (!entry_text(copy, sizeof copy, text)) return (int32_t)entry_fails(-EFAULT, "the text cannot be read");
    int error = requests_done(ticket, result, copy);
    return error ? (int32_t)entry_fails(error, "no request with this ticket waits for an answer") : 0;
}

static const char *why_no_snapshot(int error) {
    switch (error) {
    case -EINVAL:
        return "a snapshot needs a file name";
    case -EEXIST:
        return "a file of that name exists, and is not a snapshot of this user";
    case -ENOENT:
        return "there is no such folder";
    case -EIO:
        return "the snapshot could not be written, or the ledger could not be read";
    case -ECHILD:
        return "the memstow command could not be run";
    }
    return "not enough memory";
}

EXPORTED int32_t memstow_snapshot(const char *path) {
    char copy[PATH_SIZE];
    if (!process_tracked()) return (int32_t)entry_not_tracked();
    if (!entry_text(copy, sizeof copy, path)) return (int32_t)entry_fails(-EFAULT, "the file name cannot be read");
    int error = spawn_snapshot(copy);
    return error ? (int32_t)entry_fails(error, why_no_snapshot(error)) : 0;
}
