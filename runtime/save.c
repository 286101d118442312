/* Replacing a file so that a kill or a power cut leaves the old one or the new one.
 *
 * In order: temp in the same directory with O_EXCL; write; fsync; close; hard link of the old file
 * renamed to .prev; rename of temp; fsync of the directory.
 * source: Pillai et al., "All File Systems Are Not Created Equal", OSDI 2014. */
#include "file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "hooks.h"

#define TEMP_MARK ".gradc-"

/* A number for this machine and process namespace: a pid says nothing about life elsewhere, on the
 * other side of a shared file system or of a container. */
static uint32_t host_number(void)
{
    struct utsname u;
    struct stat st;
    uint32_t n = 0;
    if (uname(&u) == 0)
        n = gr_crc32c(n, u.nodename, (int64_t)strlen(u.nodename));
    if (stat("/proc/self/ns/pid", &st) == 0)
        n = gr_crc32c(n, &st.st_ino, (int64_t)sizeof st.st_ino);
    return n;
}

static uint64_t random_word(void)
{
    uint64_t w;
    struct timespec t;
    if (getrandom(&w, sizeof w, GRND_NONBLOCK) == (ssize_t)sizeof w)
        return w;
    clock_gettime(CLOCK_MONOTONIC, &t); /* O_EXCL still keeps two writers apart */
    return gr_mix((uint64_t)t.tv_nsec, (uint64_t)t.tv_sec, (uint64_t)getpid());
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash == NULL ? path : slash + 1;
}

/* path and a printf-like rest in fresh memory. */
static char *join(const char *path, const char *rest)
{
    size_t a = strlen(path), b = strlen(rest) + 1;
    char *s = gr_alloc((int64_t)(a + b));
    if (s != NULL) {
        memcpy(s, path, a);
        memcpy(s + a, rest, b);
    }
    return s;
}

char *gr_previous_name(const char *path)
{
    return join(path, ".prev");
}

/* Directory of `path` with a slash behind or ".". */
static char *directory_name(const char *path)
{
    size_t n = (size_t)(base_name(path) - path);
    char *s = join(n == 0 ? "." : path, "");
    if (s != NULL && n > 0)
        s[n] = '\0';
    return s;
}

static bool make_names(Save *s, const char *path)
{
    char rest[80];
    snprintf(rest, sizeof rest, TEMP_MARK "%08lx-%ld-%016llx", (unsigned long)host_number(),
             (long)getpid(), (unsigned long long)random_word());
    s->path = join(path, "");
    s->temp = join(path, rest);
    s->previous = gr_previous_name(path);
    s->link = s->temp == NULL ? NULL : join(s->temp, "l");
    return s->path != NULL && s->temp != NULL && s->previous != NULL && s->link != NULL;
}

/* So that the rename can be made durable; a directory that may be written but not read cannot. */
static int open_directory(Save *s, gradc_error *e)
{
    char *name = directory_name(s->path);
    if (name == NULL)
        return gr_fail_memory(e, "a path", (int64_t)strlen(s->path));
    s->directory = gr_file_ops.open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    int status = GRADC_OK;
    if (s->directory < 0 && errno != EACCES)
        status = gr_fail_system(e, errno, "cannot open the directory of %s", s->path);
    gr_free(name);
    return status;
}

/* The new file gets mode and owner of the old one. Refuses to replace what is no file. */
static int copy_mode(Save *s, gradc_error *e)
{
    struct stat st;
    if (gr_file_ops.lstat(s->path, &st) != 0)
        return errno == ENOENT ? GRADC_OK : gr_fail_system(e, errno, "cannot look at %s", s->path);
    if (S_ISLNK(st.st_mode)) /* the link is replaced, never followed */
        return GRADC_OK;
    if (!S_ISREG(st.st_mode))
        return gr_fail(e, GRADC_IO, "%s is not a regular file and is left alone", s->path);
    if (st.st_uid != geteuid() || st.st_gid != getegid()) {
        int ignored = gr_file_ops.fchown(s->fd, st.st_uid, st.st_gid); /* only root may */
        (void)ignored;
    }
    if (gr_file_ops.fchmod(s->fd, st.st_mode & 07777) != 0)
        return gr_fail_system(e, errno, "cannot set the mode of %s", s->temp);
    return GRADC_OK;
}

static int begin(Save *s, gradc_error *e)
{
    int status = open_directory(s, e);
    if (status != GRADC_OK)
        return status;
    s->fd = gr_file_ops.open(s->temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (s->fd < 0)
        return gr_fail_system(e, errno, "cannot create a file beside %s", s->path);
    s->made = true;
    return copy_mode(s, e);
}

static void forget(Save *s)
{
    if (s->fd >= 0)
        gr_file_ops.close(s->fd);
    if (s->made)
        gr_file_ops.unlink(s->temp);
    if (s->directory >= 0)
        gr_file_ops.close(s->directory);
    gr_free(s->path);
    gr_free(s->temp);
    gr_free(s->previous);
    gr_free(s->link);
    *s = (Save){.fd = -1, .directory = -1};
}

int gr_save_begin(Save *s, const char *path, gradc_error *e)
{
    *s = (Save){.fd = -1, .directory = -1};
    if (path == NULL || *base_name(path) == '\0')
        return gr_fail(e, GRADC_BAD_ARGUMENT, "no file name given to write to");
    if (!make_names(s, path)) {
        forget(s);
        return gr_fail_memory(e, "a path", (int64_t)strlen(path));
    }
    int status = begin(s, e);
    if (status != GRADC_OK)
        forget(s);
    return status;
}

int gr_save_write(Save *s, const void *bytes, int64_t n, gradc_error *e)
{
    enum { MOST = 1 << 30 };
    const char *p = bytes;
    while (n > 0) {
        ssize_t k = gr_file_ops.write(s->fd, p, (size_t)(n < MOST ? n : MOST));
        if (k < 0 && errno == EINTR)
            continue;
        if (k < 0)
            return gr_fail_system(e, errno, "cannot write %s", s->path);
        if (k == 0)
            return gr_fail_system(e, ENOSPC, "cannot write %s", s->path);
        p += k;
        n -= k;
    }
    return GRADC_OK;
}

/* File systems without hard links get a rename: for a moment only .prev is there, which load
 * takes. */
static bool no_hard_links(int error_number)
{
    return error_number == EPERM || error_number == EOPNOTSUPP || error_number == ENOSYS ||
           error_number == EMLINK;
}

static int keep_old(Save *s, gradc_error *e)
{
    if (gr_file_ops.link(s->path, s->link) != 0) {
        if (errno == ENOENT)
            return GRADC_OK;
        s->moved = no_hard_links(errno) && gr_file_ops.rename(s->path, s->previous) == 0;
        if (s->moved)
            return GRADC_OK;
        return gr_fail_system(e, errno, "cannot keep %s as %s", s->path, s->previous);
    }
    int failed = gr_file_ops.rename(s->link, s->previous) != 0 ? errno : 0;
    /* rename does nothing if both are one file already (a kill came in between, last time) */
    gr_file_ops.unlink(s->link);
    if (failed != 0)
        return gr_fail_system(e, failed, "cannot keep %s as %s", s->path, s->previous);
    return GRADC_OK;
}

static int commit(Save *s, bool keep_previous, gradc_error *e)
{
    if (gr_file_ops.fsync(s->fd) != 0)
        return gr_fail_system(e, errno, "cannot bring %s to the disk", s->path);
    int failed = gr_file_ops.close(s->fd);
    s->fd = -1;
    if (failed != 0)
        return gr_fail_system(e, errno, "cannot finish %s", s->path);
    if (keep_previous) {
        int status = keep_old(s, e);
        if (status != GRADC_OK)
            return status;
    }
    if (gr_file_ops.rename(s->temp, s->path) != 0) {
        int status = gr_fail_system(e, errno, "cannot put the new %s in place", s->path);
        if (s->moved)
            gr_file_ops.rename(s->previous, s->path);
        return status;
    }
    s->made = false;
    /* EINVAL: a file system that has no such thing */
    if (s->directory >= 0 && gr_file_ops.fsync(s->directory) != 0 && errno != EINVAL)
        return gr_fail_system(e, errno, "%s is complete, but a power cut could still undo it",
                              s->path);
    return gr_ok(e);
}

int gr_save_end(Save *s, int status, bool keep_previous, gradc_error *e)
{
    if (s->path == NULL) /* begin failed and cleaned up */
        return status;
    if (status == GRADC_OK)
        status = commit(s, keep_previous, e);
    forget(s);
    return status;
}

/* Whether `name` is BASE.gradc-HOST-PID-RANDOM[l] of a dead process of this host. */
static bool is_stale(const char *name, const char *base, unsigned long host)
{
    size_t n = strlen(base), mark = strlen(TEMP_MARK);
    if (strncmp(name, base, n) != 0 || strncmp(name + n, TEMP_MARK, mark) != 0)
        return false;
    char *rest;
    errno = 0;
    if (strtoul(name + n + mark, &rest, 16) != host || *rest != '-' || errno != 0)
        return false;
    long pid = strtol(rest + 1, &rest, 10);
    if (errno != 0 || pid <= 0 || (long)(pid_t)pid != pid || *rest != '-')
        return false;
    size_t digits = strspn(rest + 1, "0123456789abcdef");
    if (digits != 16 || (strcmp(rest + 17, "") != 0 && strcmp(rest + 17, "l") != 0))
        return false;
    return kill((pid_t)pid, 0) != 0 && errno == ESRCH;
}

void gr_remove_stale(const char *path)
{
    char *directory = directory_name(path);
    DIR *d = directory == NULL ? NULL : opendir(directory);
    unsigned long host = host_number();
    if (d != NULL) {
        for (struct dirent *entry = readdir(d); entry != NULL; entry = readdir(d))
            if (is_stale(entry->d_name, base_name(path), host)) {
                int ignored = unlinkat(dirfd(d), entry->d_name, 0);
                (void)ignored;
            }
        closedir(d);
    }
    gr_free(directory);
}
