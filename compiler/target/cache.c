/* Files of the cache:
 *
 *     magic, key, bytes of the part (64 bits), digest of these and the part     HEAD_BYTES
 *     the part
 *
 * A file is written under another name and renamed: readers see all of it or nothing. There is no
 * fsync: what a crash leaves has another digest. */
#include "cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "../base/intern.h"

enum {
    MAGIC_BYTES = 8,
    HEAD_BYTES = MAGIC_BYTES + DIGEST_BYTES + 8 + DIGEST_BYTES,
    HEX_BYTES = 2 * DIGEST_BYTES,
    NAME_BYTES = HEX_BYTES + 6, /* of a file: the key and SUFFIX */
    TEMP_SECONDS = 3600,        /* a temporary file of this age has no writer any more */
    TOUCH_SECONDS = 3600        /* how exact the time of the last use is */
};
static const char magic[MAGIC_BYTES] = {'g', 'r', 'a', 'd', 'c', 'u', 0, 1};
#define SUFFIX ".gradc"
static const int64_t MOST_PART = INT64_C(256) << 20;

/* ---- the folder ------------------------------------------------------------------------ */

/* mkdir -p; what fails is seen when the folder is opened. */
static void make_folders(const char *path)
{
    char part[4096];
    size_t n = strlen(path);
    if (n >= sizeof part)
        return;
    for (size_t i = 1; i <= n; i++)
        if (i == n || path[i] == '/') {
            memcpy(part, path, i);
            part[i] = 0;
            mkdir(part, 0700);
        }
}

Cache cache_open(const char *path)
{
    Cache c = {-1};
    if (path == NULL)
        return c;
    c.folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (c.folder < 0) {
        make_folders(path);
        c.folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    }
    return c;
}

void cache_close(Cache *c)
{
    if (c->folder >= 0)
        close(c->folder);
    c->folder = -1;
}

int cache_denied(const char *path)
{
    Cache c = cache_open(path);
    int error = c.folder < 0 || faccessat(c.folder, ".", W_OK | X_OK, AT_EACCESS) != 0 ? errno : 0;
    cache_close(&c);
    return error;
}

/* ---- one file ---------------------------------------------------------------------------- */

static void file_name(const unsigned char *key, char name[NAME_BYTES + 1])
{
    for (int i = 0; i < DIGEST_BYTES; i++)
        snprintf(name + (ptrdiff_t)2 * i, 3, "%02x", key[i]);
    strcpy(name + HEX_BYTES, SUFFIX);
}

static void make_head(unsigned char *head, const unsigned char *key, const unsigned char *bytes,
                      size_t n)
{
    memcpy(head, magic, MAGIC_BYTES);
    memcpy(head + MAGIC_BYTES, key, DIGEST_BYTES);
    for (int i = 0; i < 8; i++)
        head[MAGIC_BYTES + DIGEST_BYTES + i] = (unsigned char)((uint64_t)n >> 8 * i);
    Blake2b b;
    blake2b_start(&b);
    blake2b_add(&b, head, HEAD_BYTES - DIGEST_BYTES);
    blake2b_add(&b, bytes, n);
    blake2b_end(&b, head + HEAD_BYTES - DIGEST_BYTES);
}

static bool read_all(int fd, unsigned char *to, size_t n)
{
    while (n > 0) {
        ssize_t k = read(fd, to, n);
        if (k < 0 && errno == EINTR)
            continue;
        if (k <= 0)
            return false;
        to += k;
        n -= (size_t)k;
    }
    return true;
}

static bool write_all(int fd, const unsigned char *from, size_t n)
{
    while (n > 0) {
        ssize_t k = write(fd, from, n);
        if (k < 0 && errno == EINTR)
            continue;
        if (k <= 0)
            return false;
        from += k;
        n -= (size_t)k;
    }
    return true;
}

/* What another user has put there is code that this one would run. */
static bool is_trusted(const struct stat *st)
{
    return S_ISREG(st->st_mode) && (st->st_uid == geteuid() || st->st_uid == 0) &&
           st->st_size >= HEAD_BYTES && st->st_size <= HEAD_BYTES + MOST_PART;
}

/* For cache_trim(): when it was used last. Where that can't be written, it is when it was made. */
static void touch(int fd, const struct stat *st)
{
    if (time(NULL) - st->st_mtime > TOUCH_SECONDS)
        (void)futimens(fd, NULL);
}

const unsigned char *cache_read(const Cache *c, const unsigned char key[DIGEST_BYTES], Arena *arena,
                                size_t *n)
{
    char name[NAME_BYTES + 1];
    struct stat st;
    if (c->folder < 0)
        return NULL;
    file_name(key, name);
    int fd = openat(c->folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return NULL;
    const unsigned char *part = NULL;
    ArenaMark mark = arena_mark(arena);
    if (fstat(fd, &st) == 0 && is_trusted(&st)) {
        size_t all = (size_t)st.st_size;
        unsigned char *bytes = arena_alloc(arena, all), head[HEAD_BYTES];
        *n = all - HEAD_BYTES;
        if (read_all(fd, bytes, all)) {
            make_head(head, key, bytes + HEAD_BYTES, *n);
            part = memcmp(head, bytes, HEAD_BYTES) == 0 ? bytes + HEAD_BYTES : NULL;
        }
        if (part != NULL)
            touch(fd, &st);
        else
            arena_reset(arena, mark);
    }
    close(fd);
    return part;
}

/* A name that no other writer has. */
static int open_temp(const Cache *c, char name[NAME_BYTES + 1])
{
    static atomic_uint count;
    for (int i = 0; i < 100; i++) {
        struct timespec t;
        clock_gettime(CLOCK_REALTIME, &t);
        uint64_t r = hash_mix((uint64_t)t.tv_nsec ^ (uint64_t)getpid() << 32) + ++count;
        snprintf(name, NAME_BYTES + 1, "tmp-%016llx", (unsigned long long)r);
        int fd = openat(c->folder, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (fd >= 0 || errno != EEXIST)
            return fd;
    }
    return -1;
}

void cache_write(const Cache *c, const unsigned char key[DIGEST_BYTES], const unsigned char *bytes,
                 size_t n)
{
    char temp[NAME_BYTES + 1], name[NAME_BYTES + 1];
    unsigned char head[HEAD_BYTES];
    if (c->folder < 0 || (int64_t)n > MOST_PART)
        return;
    int fd = open_temp(c, temp);
    if (fd < 0)
        return;
    make_head(head, key, bytes, n);
    file_name(key, name);
    bool ok = write_all(fd, head, HEAD_BYTES) && write_all(fd, bytes, n);
    ok = close(fd) == 0 && ok;
    if (!ok || renameat(c->folder, temp, c->folder, name) != 0)
        unlinkat(c->folder, temp, 0);
}

/* ---- all files ------------------------------------------------------------------------------ */

typedef struct Kept {
    char name[NAME_BYTES + 1];
    int64_t bytes;
    struct timespec used;
} Kept;

typedef VEC(Kept) KeptFiles;

static bool is_part(const char *name)
{
    return strspn(name, "0123456789abcdef") == HEX_BYTES && strcmp(name + HEX_BYTES, SUFFIX) == 0;
}

static bool is_temp(const char *name)
{
    return strncmp(name, "tmp-", 4) == 0 && strlen(name) == 20 &&
           strspn(name + 4, "0123456789abcdef") == 16;
}

/* Parts, and temporary files that are as old as `temp_age` or more, of which no more is heard. */
static KeptFiles list_files(const Cache *c, Arena *a, time_t temp_age)
{
    KeptFiles files = {0};
    int fd = c->folder < 0 ? -1 : openat(c->folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    if (d == NULL) {
        if (fd >= 0)
            close(fd);
        return files;
    }
    for (struct dirent *e; (e = readdir(d)) != NULL;) {
        struct stat st;
        if ((!is_part(e->d_name) && !is_temp(e->d_name)) ||
            fstatat(c->folder, e->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(st.st_mode))
            continue;
        if (is_temp(e->d_name)) {
            if (time(NULL) - st.st_mtime >= temp_age)
                unlinkat(c->folder, e->d_name, 0);
            continue;
        }
        Kept k = {.bytes = st.st_size, .used = st.st_mtim};
        memcpy(k.name, e->d_name, NAME_BYTES);
        vec_push(a, &files, k);
    }
    closedir(d);
    return files;
}

static int by_use(const void *x, const void *y)
{
    const Kept *a = x, *b = y;
    if (a->used.tv_sec != b->used.tv_sec)
        return a->used.tv_sec < b->used.tv_sec ? -1 : 1;
    if (a->used.tv_nsec != b->used.tv_nsec)
        return a->used.tv_nsec < b->used.tv_nsec ? -1 : 1;
    return strcmp(a->name, b->name);
}

static int64_t bytes_of(const KeptFiles *f)
{
    int64_t sum = 0;
    for (int i = 0; i < f->n; i++)
        sum += f->at[i].bytes;
    return sum;
}

/* Removes the oldest until so many bytes are left. */
static void remove_oldest(const Cache *c, KeptFiles *f, int64_t leave)
{
    int64_t sum = bytes_of(f);
    if (f->n > 0)
        qsort(f->at, (size_t)f->n, sizeof *f->at, by_use);
    for (int i = 0; i < f->n && sum > leave; i++) {
        unlinkat(c->folder, f->at[i].name, 0);
        sum -= f->at[i].bytes;
    }
}

void cache_trim(const Cache *c)
{
    Arena a = {0};
    KeptFiles f = list_files(c, &a, TEMP_SECONDS);
    if (bytes_of(&f) > CACHE_MOST_BYTES)
        remove_oldest(c, &f, CACHE_KEEP_BYTES);
    arena_free(&a);
}

CacheSize cache_size(const Cache *c)
{
    Arena a = {0};
    KeptFiles f = list_files(c, &a, TEMP_SECONDS);
    CacheSize s = {f.n, bytes_of(&f)};
    arena_free(&a);
    return s;
}

void cache_clear(const Cache *c)
{
    Arena a = {0};
    KeptFiles f = list_files(c, &a, 0);
    remove_oldest(c, &f, -1);
    arena_free(&a);
}
