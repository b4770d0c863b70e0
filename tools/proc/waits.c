/* waits.c — see waits.h. */
#include "tools/proc/waits.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* System calls that threads typically wait in, and whether their first argument is a descriptor. */
static const struct {
    int number;
    bool by_fd;
    const char *name;
} calls[] = {
    {SYS_futex, false, "futex"},
    {SYS_read, true, "read"},
    {SYS_write, true, "write"},
    {SYS_readv, true, "readv"},
    {SYS_writev, true, "writev"},
    {SYS_poll, false, "poll"},
    {SYS_ppoll, false, "ppoll"},
    {SYS_select, false, "select"},
    {SYS_pselect6, false, "pselect"},
    {SYS_epoll_wait, true, "epoll_wait"},
    {SYS_epoll_pwait, true, "epoll_pwait"},
    {SYS_accept, true, "accept"},
    {SYS_accept4, true, "accept"},
    {SYS_connect, true, "connect"},
    {SYS_recvfrom, true, "recv"},
    {SYS_recvmsg, true, "recvmsg"},
    {SYS_sendto, true, "send"},
    {SYS_sendmsg, true, "sendmsg"},
    {SYS_wait4, false, "a wait for a child"},
    {SYS_waitid, false, "a wait for a child"},
    {SYS_nanosleep, false, "sleep"},
    {SYS_clock_nanosleep, false, "sleep"},
    {SYS_pause, false, "pause"},
    {SYS_rt_sigtimedwait, false, "a wait for a signal"},
    {SYS_rt_sigsuspend, false, "a wait for a signal"},
    {SYS_flock, true, "flock"},
    {SYS_fcntl, true, "fcntl"},
    {SYS_fsync, true, "fsync"},
    {SYS_fdatasync, true, "fdatasync"},
    {SYS_ioctl, true, "ioctl"},
    {SYS_semop, false, "semop"},
    {SYS_semtimedop, false, "semop"},
    {SYS_msgrcv, false, "msgrcv"},
    {SYS_io_getevents, false, "io_getevents"},
    {SYS_restart_syscall, false, "a call that was restarted"},
};

static void name_call(struct wait *wait, long number, unsigned long first) {
    wait->number = (int)number;
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        if (calls[i].number != number) continue;
        wait->call = calls[i].name;
        if (calls[i].by_fd && first < (1u << 24)) wait->fd = (int)first;
        return;
    }
}

void wait_look(struct wait *wait, pid_t pid, pid_t tid) {
    char path[64], text[256];
    long number;
    unsigned long first = 0;
    *wait = (struct wait){.number = -1, .fd = -1};
    snprintf(path, sizeof path, "/proc/%d/task/%d/syscall", (int)pid, (int)tid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return;
    ssize_t got = read(fd, text, sizeof text - 1);
    close(fd);
    if (got <= 0) return;
    text[got] = 0;
    if (strncmp(text, "running", 7) == 0)
        wait->call = "runs";
    else if (sscanf(text, "%ld %lx", &number, &first) >= 1 && number >= 0)
        name_call(wait, number, first);
}
