/* clients.c — see clients.h. */
#include "preload/control/clients.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>

#include "preload/owners/moving.h"
#include "preload/owners/mover.h"
#include "preload/shared/os.h"
#include "preload/control/requests.h"
#include "preload/shared/wire.h"

static const uint64_t MILLISECOND = 1000000;
/* IDLE_MS: the longest wait for messages while no client waits for an answer. LOOK_MS: the time between two looks for
 * the answer to a request. The control thread must look, because the thread that answers cannot write to the control
 * thread's descriptors. SILENT_MS: a client that has asked nothing for so long is dropped. TELL_MS: the time between
 * two reports of progress. */
enum { IDLE_MS = 1000, LOOK_MS = 20, SILENT_MS = 1000, TELL_MS = 250 };

struct client {
    int fd;                 /* 0: the entry is free */
    uint64_t since, told;   /* the times when the client connected, and when it was last sent a message */
    uint64_t ticket;        /* the client's request; 0: none yet */
    uint64_t move;          /* the number of the move that this client has told to end; 0: none */
    uint64_t moved, wanted; /* progress of that move, in bytes */
    uint32_t told_type;     /* the type of the newest message to the client */
};

static int listening;
static struct client clients[CLIENTS_MOST];

static bool is_asking(const struct client *client) { return client->fd && (client->ticket || client->move); }

static bool is_silent(const struct client *client) { return client->fd && !is_asking(client); }

static void clients_drop(struct client *client) {
    if (client->ticket) requests_leave(client->ticket);
    os_close(client->fd);
    *client = (struct client){0};
}

/* Sends a message to the client. False: the client does not read, or is gone. */
static bool clients_tell(struct client *client, uint32_t type, int64_t number, const char *text) {
    uint8_t bytes[WIRE_MOST];
    struct wire_message message = {.type = type, .ticket = client->ticket, .number = number};
    os_copy(message.text, sizeof message.text, text);
    size_t length = wire_put(bytes, &message);
    client->told = os_now();
    client->told_type = type;
    return os_call(SYS_sendto, client->fd, bytes, length, MSG_DONTWAIT | MSG_NOSIGNAL, 0, 0) == (long)length;
}

static void tell_last(struct client *client, int64_t number, const char *text) {
    clients_tell(client, WIRE_DONE, number, text);
    clients_drop(client);
}

/* --- new clients --- */

static bool is_same_user(int fd) {
    struct ucred peer;
    socklen_t length = sizeof peer;
    return os_call(SYS_getsockopt, fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 && length == sizeof peer &&
           peer.uid == (uint32_t)os_call(SYS_geteuid);
}

/* Returns a free entry. If there is none, drops the client that has been silent longest and returns its entry, so that
 * silent clients do not keep others out. NULL: all clients have asked for something. */
static struct client *slot_for_one(void) {
    struct client *slot = NULL;
    for (int i = 0; i < CLIENTS_MOST; i++) {
        if (!clients[i].fd) return &clients[i];
        if (is_silent(&clients[i]) && (!slot || clients[i].since < slot->since)) slot = &clients[i];
    }
    if (slot) clients_drop(slot);
    return slot;
}

/* Accepts a client. If there is no free descriptor for the client, the client stays in the kernel's queue, and we wait
 * a little. Otherwise we would try again without end. */
static void let_one_in(void) {
    const struct timespec pause = {.tv_nsec = 20 * (long)1000000};
    int fd = (int)os_call(SYS_accept4, listening, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) {
        if (fd != -EAGAIN && fd != -ECONNABORTED) os_call(SYS_nanosleep, &pause, 0);
        return;
    }
    struct client *slot = is_same_user(fd) ? slot_for_one() : NULL;
    if (slot)
        *slot = (struct client){.fd = fd, .since = os_now()};
    else
        os_close(fd);
}

/* --- messages from clients --- */

static const char *why_not_taken(int64_t error) {
    if (error == -EBUSY) return "too many requests are unanswered";
    return error == -ENOTSUP ? "the program does not take such requests" : "";
}

static void take_request(struct client *client, const struct wire_message *message) {
    int64_t ticket = is_asking(client) ? -EALREADY : requests_add(message->type, message->owner, message->text);
    if (ticket < 0) {
        tell_last(client, ticket, why_not_taken(ticket));
        return;
    }
    client->ticket = (uint64_t)ticket;
    if (!clients_tell(client, WIRE_WAITING, 0, "")) clients_drop(client);
}

/* If nobody has taken the client's request yet, withdraws the request and answers ECANCELED. If memstow's worker or the
 * program has taken it, only tells them to stop; the answer follows when they have stopped. */
static void take_cancel(struct client *client) {
    if (!client->ticket || requests_take_back(client->ticket))
        tell_last(client, -ECANCELED, "");
    else
        requests_cancel(client->ticket);
}

/* Ends the move of memory that is in progress, if it has the direction and the owner that the message names. It may be
 * a move of the program (for itself or for a request) or of memstow's worker. */
static void take_end(struct client *client, const struct wire_message *message) {
    int64_t move = is_asking(client) ? -EALREADY : mover_end(message->owner, message->number == WIRE_STOW);
    if (move < 0)
        tell_last(client, move, "");
    else
        client->move = (uint64_t)move;
}

static void clients_hear(struct client *client) {
    uint8_t bytes[WIRE_MOST + 1]; /* one byte more, to notice messages that are too long */
    struct wire_message message;
    long length = os_call(SYS_recvfrom, client->fd, bytes, sizeof bytes, MSG_DONTWAIT, 0, 0);
    if (length == -EAGAIN || length == -EINTR) return;
    if (length <= 0) {
        clients_drop(client);
        return;
    }
    int error = wire_get_request(&message, bytes, (size_t)length);
    if (error)
        tell_last(client, error, error == -EPROTONOSUPPORT ? "the process speaks version 1" : "not a request");
    else if (message.type == WIRE_CANCEL)
        take_cancel(client);
    else if (message.type == WIRE_END)
        take_end(client, &message);
    else
        take_request(client, &message);
}

/* --- messages to clients --- */

static void clients_follow(struct client *client, uint64_t now) {
    int64_t result = -ECANCELED;
    char text[256] = "";
    enum request_state state = requests_look(client->ticket, &result, text);
    if (state == REQUEST_DONE || state == REQUEST_NONE) {
        tell_last(client, result, text);
        return;
    }
    uint32_t type = state == REQUEST_TAKEN ? WIRE_WORKING : WIRE_WAITING;
    if (type == client->told_type && now - client->told < TELL_MS * MILLISECOND) return;
    uint64_t wanted, moved = moving_progress(&wanted);
    if (type == WIRE_WORKING && wanted) os_decimal(text, wanted);
    /* A lost message does no harm: the next one follows soon. */
    clients_tell(client, type, type == WIRE_WORKING ? (int64_t)moved : 0, text);
}

/* The client has told a move to end. Reports the progress of that move until the move has ended, which it does after
 * its present chunk. */
static void follow_end(struct client *client, uint64_t now) {
    bool is_on = mover_is_on(client->move, &client->moved, &client->wanted);
    if (is_on && now - client->told < TELL_MS * MILLISECOND) return;
    char text[256] = "";
    if (client->wanted) os_decimal(text, client->wanted);
    if (is_on)
        clients_tell(client, WIRE_WORKING, (int64_t)client->moved, text);
    else
        tell_last(client, (int64_t)client->moved, text);
}

static void look_after(struct client *client, uint64_t now) {
    if (client->move)
        follow_end(client, now);
    else if (is_asking(client))
        clients_follow(client, now);
    else if (is_silent(client) && now - client->since > SILENT_MS * MILLISECOND)
        clients_drop(client);
}

/* --- how the control thread waits for messages --- */

static int clients_patience(void) {
    int least = IDLE_MS;
    for (int i = 0; i < CLIENTS_MOST; i++)
        if (is_asking(&clients[i])) least = LOOK_MS;
    return least;
}

static bool has_slot(void) {
    for (int i = 0; i < CLIENTS_MOST; i++)
        if (!is_asking(&clients[i])) return true;
    return false;
}

void clients_begin(int fd) {
    memset(clients, 0, sizeof clients); /* after a fork the entries are the parent's */
    listening = fd;
}

/* ppoll refuses more entries than the program may have descriptors, so it gets only as many as are needed. If it
 * refuses even these, we wait without listening. Otherwise we would call it again without end. */
void clients_serve(void) {
    struct pollfd polled[1 + CLIENTS_MOST] = {{.fd = has_slot() ? listening : -1, .events = POLLIN}};
    unsigned count = 1;
    int ms = clients_patience();
    const struct timespec time = {ms / 1000, ms % 1000 * (long)MILLISECOND};
    for (unsigned i = 0; i < CLIENTS_MOST; i++) {
        polled[1 + i] = (struct pollfd){.fd = clients[i].fd ? clients[i].fd : -1, .events = POLLIN};
        if (clients[i].fd) count = 1 + i + 1;
    }
    long ready = os_call(SYS_ppoll, polled, count, &time, 0, 0);
    if (ready < 0 && ready != -EINTR) os_call(SYS_nanosleep, &time, 0);
    for (unsigned i = 0; ready > 0 && i < CLIENTS_MOST; i++)
        if (polled[1 + i].revents) clients_hear(&clients[i]);
    if (ready > 0 && polled[0].revents) let_one_in();
    uint64_t now = os_now();
    for (int i = 0; i < CLIENTS_MOST; i++) look_after(&clients[i], now);
}

void clients_end(void) {
    for (int i = 0; i < CLIENTS_MOST; i++)
        if (clients[i].fd) tell_last(&clients[i], -ESHUTDOWN, "");
    os_close(listening);
}
