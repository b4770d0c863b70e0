/* clients.h — the clients of the control socket, and the answers that they get.
 * In: datagrams from any process of this user, with any content. Out: requests (requests.h), and answers. It never
 * waits for a client: a client that asks nothing for a second is dropped, and reports of progress that a client does
 * not read are lost. Only the control thread calls it. */
#ifndef MEMSTOW_CLIENTS_H
#define MEMSTOW_CLIENTS_H

#pragma GCC visibility push(hidden)

enum { CLIENTS_MOST = 8 };

/* Begins to serve clients. `fd` is a listening, non-blocking socket. */
void clients_begin(int fd);
/* Waits at most a second for messages. Then handles them, sends answers and progress, and drops silent clients. */
void clients_serve(void);
/* Tells all clients that no answers will come any more, and closes all sockets. */
void clients_end(void);

#pragma GCC visibility pop

#endif
