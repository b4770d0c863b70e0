/* clients.h — the clients of the control socket, and their answers. In: datagrams from any process of this user's,
 * whatever is in them. Out: requests (requests.h), and answers. It never waits for a client: one that sends nothing or
 * reads nothing is dropped. On the control thread only. */
#ifndef MEMSTOW_CLIENTS_H
#define MEMSTOW_CLIENTS_H

#pragma GCC visibility push(hidden)

enum { CLIENTS_MOST = 8 };

/* `listening` is a socket that does not block. */
void clients_begin(int listening);
/* Waits for at most a second, does what is due, and returns. */
void clients_serve(void);
/* Tells all of them that nothing will be done any more. */
void clients_end(void);

#pragma GCC visibility pop

#endif
