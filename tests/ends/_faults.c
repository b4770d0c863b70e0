/* The faults that the tests of endings plant, one for each word on the command line. If the first word is "here", the
 * faults are in the program itself. Otherwise they are in a process that outlives the program: an orphan in a session
 * of its own. In this case, the program ends soon, unless one of the words is "stay": it then runs until it is asked to
 * end. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile unsigned long turns;
void *kept[100000]; /* not static: the compiler would drop memory that nobody reads */

static void *endless(void *context) {
    pthread_setname_np(pthread_self(), "endless");
    for (;;) turns++;
    return context;
}

static void *stuck(void *context) {
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_setname_np(pthread_self(), "stuck");
    pthread_mutex_lock(&mutex);
    pthread_mutex_lock(&mutex);
    return context;
}

static void thread(void *(*run)(void *)) {
    pthread_t id;
    pthread_create(&id, NULL, run, NULL);
}

/* stay_on() calls this ten times a second: 150 KB a second. */
__attribute__((noinline)) static void leak_some(int turn) { memset(kept[turn] = malloc(15000), 1, 15000); }

static void listen_on_socket(void) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    bind(fd, (struct sockaddr *)&address, sizeof address);
    listen(fd, 1);
}

static void named_socket(void) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "/tmp/memstow-ends-%d.socket", (int)getpid());
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    bind(fd, (struct sockaddr *)&address, sizeof address);
    listen(fd, 1);
}

static void shared_memory(void) {
    char name[64];
    snprintf(name, sizeof name, "/memstow-ends-%d", (int)getpid());
    int fd = shm_open(name, O_CREAT | O_RDWR, 0600);
    if (ftruncate(fd, 1 << 20) == 0) mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
}

static void system_v(void) { shmat(shmget(IPC_PRIVATE, 1 << 16, IPC_CREAT | 0600), NULL, 0); }

static void temporary_file(void) {
    char path[] = "/tmp/memstow-ends-XXXXXX";
    int fd = mkstemp(path);
    if (write(fd, path, sizeof path) < 0) perror("write");
}

static int open_handle(const char *path) { return open(path, O_CREAT | O_RDWR, 0600); }

static int seconds = 60;
static const char *until; /* the fault ends as soon as this file exists */

static void plant(const char *word) {
    if (!strcmp(word, "endless"))
        thread(endless);
    else if (!strcmp(word, "stuck"))
        thread(stuck);
    else if (!strcmp(word, "socket"))
        listen_on_socket();
    else if (!strcmp(word, "named-socket"))
        named_socket();
    else if (!strcmp(word, "shared"))
        shared_memory();
    else if (!strcmp(word, "system-v"))
        system_v();
    else if (!strcmp(word, "temporary"))
        temporary_file();
    else if (!strcmp(word, "handle"))
        open_handle("held.txt");
    else if (!strcmp(word, "planted")) /* as the last word it tells the test that all faults are planted */
        close(open_handle("planted"));
    else if (!strcmp(word, "ignore"))
        signal(SIGTERM, SIG_IGN);
    else if (!strncmp(word, "seconds=", 8))
        seconds = atoi(word + 8);
    else if (!strncmp(word, "until=", 6))
        until = word + 6;
}

static int leak, first_ends;
static void *large[200]; /* stay_on() frees one in each turn */

/* There is always one process, and it is never the same for long. */
static void hop(void) {
    time_t end = time(NULL) + seconds;
    while (time(NULL) < end) {
        if (fork() > 0) _exit(0);
        usleep(1000);
    }
    _exit(0);
}

static void *stay_on(void *context) {
    for (int turn = 0; turn < seconds * 10 && (!until || access(until, F_OK)); turn++) {
        if (leak) leak_some(turn);
        if (turn < 200) free(large[turn]);
        usleep(100000);
    }
    _exit(0);
    return context;
}

static void linger(char **words) {
    for (; *words; words++) {
        plant(*words);
        leak |= !strcmp(*words, "leak");
        first_ends |= !strcmp(*words, "first-ends");
        if (!strcmp(*words, "stopped")) raise(SIGSTOP);
        if (!strcmp(*words, "hop")) hop();
        for (int i = 0; i < 200 && !strcmp(*words, "shrink"); i++) large[i] = malloc(1 << 20);
    }
    if (!first_ends) stay_on(NULL);
    thread(stay_on);
    pthread_exit(NULL);
}

/* Forks twice, so that the last process is an orphan. The words "here", "stay" and "exit=STATUS" are for the first
 * process. */
int main(int argc, char **argv) {
    int status = 0, stay = 0;
    if (argc > 1 && !strcmp(argv[1], "here")) linger(argv + 2);
    for (int i = 1; i < argc; i++) {
        if (!strncmp(argv[i], "exit=", 5)) status = atoi(argv[i] + 5);
        if (!strcmp(argv[i], "stay")) stay = 1;
    }
    pid_t child = fork();
    if (child == 0) {
        setsid();
        if (fork() == 0) linger(argv + 1);
        _exit(0);
    }
    waitpid(child, NULL, 0);
    usleep(1500000); /* time to be looked at */
    while (stay) pause();
    return status;
}
