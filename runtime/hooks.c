/* The tables of hooks.h, filled with the system's functions. */
#include "hooks.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int system_open(const char *path, int flags, mode_t mode)
{
    return open(path, flags, mode);
}

static void *system_aligned(size_t align, size_t bytes)
{
    void *memory = NULL;
    return posix_memalign(&memory, align, bytes) == 0 ? memory : NULL;
}

FileOps gr_file_ops = {
    .open = system_open,
    .read = read,
    .write = write,
    .pread = pread,
    .pwrite = pwrite,
    .reserve = posix_fallocate,
    .fstat = fstat,
    .lstat = lstat,
    .fchmod = fchmod,
    .fchown = fchown,
    .fsync = fsync,
    .close = close,
    .link = link,
    .rename = rename,
    .unlink = unlink,
};

MemOps gr_mem_ops = {
    .alloc = malloc,
    .aligned = system_aligned,
    .resize = realloc,
    .release = free,
};
