/* hooks.h: every file operation and allocation of the runtime goes through these two tables.
 *
 * They hold the system's own functions and never change in a program. Tests replace entries, before
 * any other thread runs, so that the n-th operation or allocation fails. */
#ifndef GRADC_HOOKS_H
#define GRADC_HOOKS_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif

#include <stddef.h>
#include <sys/stat.h>
#include <sys/types.h>

typedef struct FileOps {
    int (*open)(const char *path, int flags, mode_t mode);
    ssize_t (*read)(int fd, void *bytes, size_t n);
    ssize_t (*write)(int fd, const void *bytes, size_t n);
    ssize_t (*pread)(int fd, void *bytes, size_t n, off_t at);
    ssize_t (*pwrite)(int fd, const void *bytes, size_t n, off_t at);
    int (*reserve)(int fd, off_t at, off_t n); /* gives an error number */
    int (*fstat)(int fd, struct stat *st);
    int (*lstat)(const char *path, struct stat *st);
    int (*fchmod)(int fd, mode_t mode);
    int (*fchown)(int fd, uid_t owner, gid_t group);
    int (*fsync)(int fd);
    int (*close)(int fd);
    int (*link)(const char *from, const char *to);
    int (*rename)(const char *from, const char *to);
    int (*unlink)(const char *path);
} FileOps;

typedef struct MemOps {
    void *(*alloc)(size_t bytes);
    void *(*aligned)(size_t align, size_t bytes);
    void *(*resize)(void *old, size_t bytes);
    void (*release)(void *memory);
} MemOps;

extern FileOps gr_file_ops;
extern MemOps gr_mem_ops;

#endif
