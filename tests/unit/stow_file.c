// The file for moved memory under bad conditions: short writes, a folder where no file can be made without a name, a
// kill before the name is removed, a descriptor number that now belongs to another file, a folder that is gone.
// build: -Wl,--wrap=os_call6 -Wl,--wrap=os_open
#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "preload/shared/os.h"
#include "preload/stow/stow.h"
#include "preload/stow/stow_file.h"

enum { PAGES = 64, LENGTH = PAGES * OS_PAGE };

/* The faults of a case. */
static struct {
    long most_written; /* by one call; 0: all */
    uint32_t writes;
    bool nothing_written, no_nameless, not_direct, killed_at_unlink;
} faults;

long __real_os_call6(long number, long a, long b, long c, long d, long e, long f);
long __wrap_os_call6(long number, long a, long b, long c, long d, long e, long f);
int __real_os_open(const char *path, int flags, int mode);
int __wrap_os_open(const char *path, int flags, int mode);

long __wrap_os_call6(long number, long a, long b, long c, long d, long e, long f) {
    if (number == SYS_unlink && faults.killed_at_unlink) kill(getpid(), SIGKILL);
    if (number != SYS_pwrite64) return __real_os_call6(number, a, b, c, d, e, f);
    faults.writes++;
    if (faults.nothing_written) return 0;
    if (faults.most_written && c > faults.most_written) c = faults.most_written;
    return __real_os_call6(number, a, b, c, d, e, f);
}

int __wrap_os_open(const char *path, int flags, int mode) {
    if (faults.no_nameless && (flags & O_TMPFILE) == O_TMPFILE) return -EOPNOTSUPP;
    return __real_os_open(path, faults.not_direct ? flags & ~O_DIRECT : flags, mode);
}

static char folder[64];

/* Makes a folder for this test, on a disk. */
static void make_folder(void) {
    static const char *const places[] = {"./stow-XXXXXX", "/var/tmp/memstow-test-XXXXXX"};
    struct stow_file file;
    memset(&faults, 0, sizeof faults);
    for (int i = 0; i < 2; i++) {
        strcpy(folder, places[i]);
        if (!mkdtemp(folder)) continue;
        if (stow_file_open(&file, folder, LENGTH) == STOW_DONE) {
            stow_file_close(&file);
            return;
        }
        rmdir(folder);
    }
    cr_skip_test("this folder and /var/tmp are both in memory");
}

static int names_in_folder(void) {
    int count = -2; /* . and .. */
    DIR *all = opendir(folder);
    cr_assert(all);
    while (readdir(all)) count++;
    closedir(all);
    return count;
}

static char *content(void) {
    char *made = aligned_alloc(OS_PAGE, LENGTH);
    for (int i = 0; i < LENGTH; i++) made[i] = (char)(i * 31 + i / OS_PAGE);
    return made;
}

static void goes_out_whole(void) {
    struct stow_file file;
    char *from = content();
    cr_assert_eq(stow_file_open(&file, folder, LENGTH), STOW_DONE);
    cr_assert_eq(names_in_folder(), 0);
    faults.writes = 0;
    cr_assert_eq(stow_file_write(&file, from, LENGTH), STOW_DONE);
    char *back = stow_file_map(&file, LENGTH);
    cr_assert(back && !memcmp(back, from, LENGTH));
    os_unmap(back, LENGTH);
    stow_file_close(&file);
    free(from);
}

Test(stow_file, short_writes) {
    make_folder();
    faults.most_written = 5 * OS_PAGE;
    goes_out_whole();
    cr_expect_eq(faults.writes, (PAGES + 4) / 5);
    faults.not_direct = true;
    faults.most_written = 2 * OS_PAGE + 100; /* no whole pages */
    goes_out_whole();
    cr_expect_geq(faults.writes, PAGES / 3);
    faults.most_written = 0;
    faults.nothing_written = true;
    struct stow_file file;
    char *from = content();
    cr_assert_eq(stow_file_open(&file, folder, LENGTH), STOW_DONE);
    cr_expect_eq(stow_file_write(&file, from, LENGTH), STOW_DISK_ERROR);
    stow_file_close(&file);
    free(from);
    rmdir(folder);
}

Test(stow_file, without_nameless_files) {
    make_folder();
    faults.no_nameless = true;
    goes_out_whole();
    cr_expect_eq(rmdir(folder), 0, "nothing is left in it");
}

static void die_half_way(void) {
    struct stow_file file;
    int status;
    pid_t child = fork();
    if (child == 0) {
        faults.killed_at_unlink = true;
        stow_file_open(&file, folder, LENGTH);
        _exit(0);
    }
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

Test(stow_file, killed_before_the_name_is_gone) {
    char path[128];
    make_folder();
    faults.no_nameless = true;
    die_half_way();
    cr_assert_eq(names_in_folder(), 1, "what it leaves");
    snprintf(path, sizeof path, "%s/notes", folder);
    cr_assert_geq(close(open(path, O_CREAT | O_WRONLY, 0600)), 0);
    struct stow_file file;
    cr_assert_eq(stow_file_open(&file, folder, LENGTH), STOW_DONE);
    stow_file_close(&file);
    cr_expect_eq(names_in_folder(), 1, "only what is not memstow's");
    cr_expect_eq(unlink(path), 0);
    rmdir(folder);
}

Test(stow_file, number_is_another_files) {
    struct stow_file file;
    struct stat status;
    char *from = content(), path[128];
    make_folder();
    snprintf(path, sizeof path, "%s/others", folder);
    int other = open(path, O_CREAT | O_RDWR, 0600);
    cr_assert_eq(stow_file_open(&file, folder, LENGTH), STOW_DONE);
    cr_assert_eq(dup2(other, file.fd), file.fd);
    cr_expect_eq(stow_file_write(&file, from, LENGTH), STOW_NO_DESCRIPTOR);
    cr_expect(stow_file_map(&file, LENGTH) == NULL);
    stow_file_close(&file);
    cr_expect_geq(fcntl(file.fd, F_GETFD), 0, "it is not ours to close");
    cr_expect(fstat(other, &status) == 0 && status.st_size == 0, "nothing was written to it");
    unlink(path);
    rmdir(folder);
    free(from);
}

Test(stow_file, folder_is_gone) {
    struct stow_file file, second;
    char *from = content();
    make_folder();
    cr_assert_eq(stow_file_open(&file, folder, LENGTH), STOW_DONE);
    cr_assert_eq(rmdir(folder), 0);
    cr_expect_eq(stow_file_open(&second, folder, LENGTH), STOW_NO_DIRECTORY);
    cr_expect_eq(stow_file_write(&file, from, LENGTH), STOW_DONE);
    stow_file_close(&file);
    free(from);
}
