/* whole_file.c — see whole_file.h. */
#include "tools/base/whole_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int whole_file_refuse(struct whole_file *file, const char *why) {
    snprintf(file->why, sizeof file->why, "%s", why);
    return -1;
}

/* Reads the file. If it becomes shorter meanwhile, it is read up to its new end. */
static int whole_file_read_all(struct whole_file *file, int fd) {
    size_t size = (size_t)file->st.st_size;
    file->text = malloc(size + 1);
    if (!file->text) return whole_file_refuse(file, "not enough memory");
    while (file->length < size) {
        ssize_t part = read(fd, file->text + file->length, size - file->length);
        if (part < 0 && errno == EINTR) continue;
        if (part < 0) return whole_file_refuse(file, strerror(errno));
        if (part == 0) break;
        file->length += (size_t)part;
    }
    file->text[file->length] = 0;
    return 0;
}

int whole_file_read(struct whole_file *file, const char *path, size_t most_mib) {
    *file = (struct whole_file){0};
    int result, fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) return whole_file_refuse(file, strerror(errno));
    if (fstat(fd, &file->st) < 0)
        result = whole_file_refuse(file, strerror(errno));
    else if (!S_ISREG(file->st.st_mode))
        result = whole_file_refuse(file, "not a regular file");
    else if ((uint64_t)file->st.st_size > most_mib << 20)
        result = -1, snprintf(file->why, sizeof file->why, "longer than %zu MiB", most_mib);
    else
        result = whole_file_read_all(file, fd);
    close(fd);
    if (result == 0) return 0;
    free(file->text);
    file->text = NULL;
    file->length = 0;
    return -1;
}
