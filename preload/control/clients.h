/* clients.h — the clients of the control socket, and their answers.
 * In: datagrams from any process of this user, with any content. Out: requests (requests.h), and answers. It never
 * waits for a client: a client that sends or reads nothing is dropped. Only the control thread calls it. */
#ifndef MEMSTOW_CLIENTS_H
#define MEMSTOW_CLIENTS_H

#pragma GCC visibility push(hidden)

enum { CLIENTS_MOST = 8 };

/* `fd` is a listening socket, non-blocking. */
void clients_begin(int fd);
/* Waits for a second at most, does what is due, and returns. */
void clients_serve(void);
/* Tells all clients that no answers will come any more, and closes all sockets. */
void clients_end(void);

#pragma GCC visibility pop

#endif
