#include "cli.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { MAX_FILES = 256, MAX_SOURCE = 16 << 20 };

typedef struct File {
    const char *path, *temp;
    const void *bytes;
    size_t n;
} File;

struct Files {
    Arena *arena;
    int n; /* more than there is room for is refused by files_commit() */
    File file[MAX_FILES];
};

/* Temporary files that exist now, for files_abandon(). Fixed memory: it runs when
 * there is no more. */
static char pending[MAX_FILES][4096];
static int n_pending;

Files *files_open(Arena *a)
{
    Files *f = NEW(a, Files);
    f->arena = a;
    return f;
}

void files_add(Files *f, const char *path, const void *bytes, size_t n)
{
    if (f->n < MAX_FILES)
        f->file[f->n] = (File){.path = path, .bytes = bytes, .n = n};
    f->n++;
}

void files_abandon(void)
{
    for (int i = 0; i < n_pending; i++)
        unlink(pending[i]);
    n_pending = 0;
}

static int fail(const char *path, const char *what)
{
    int e = errno;
    files_abandon();
    say("%s: cannot %s: %s", path, what, strerror(e));
    return EXIT_FILE;
}

static bool write_all(int fd, const char *p, size_t n)
{
    while (n > 0) {
        ssize_t k = write(fd, p, n);
        if (k < 0 && errno == EINTR)
            continue;
        if (k <= 0)
            return false;
        p += k;
        n -= (size_t)k;
    }
    return true;
}

/* A new file of a random name in the same folder, so that a rename can't cross file
 * systems; never through a link that is already there. */
static int open_temp(Files *f, File *file)
{
    for (int i = 0; i < 100; i++) {
        struct timespec t;
        clock_gettime(CLOCK_REALTIME, &t);
        uint64_t r = hash_mix((uint64_t)t.tv_nsec ^ ((uint64_t)getpid() << 32) ^ (uint64_t)i);
        file->temp = arena_printf(f->arena, "%s.tmp%08x", file->path, (unsigned)r);
        if (strlen(file->temp) >= sizeof pending[0]) {
            errno = ENAMETOOLONG;
            return -1;
        }
        int fd = open(file->temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd >= 0) {
            strcpy(pending[n_pending++], file->temp);
            return fd;
        }
        if (errno != EEXIST)
            return -1;
    }
    return -1;
}

static int write_temp(Files *f, File *file)
{
    struct stat st;
    if (lstat(file->path, &st) == 0 && !S_ISREG(st.st_mode)) {
        errno = S_ISDIR(st.st_mode) ? EISDIR : EINVAL;
        return fail(file->path, "replace something that is not a regular file");
    }
    int fd = open_temp(f, file);
    if (fd < 0)
        return fail(file->path, "write");
    bool ok = write_all(fd, file->bytes, file->n);
    if (close(fd) != 0 || !ok)
        return fail(file->path, "write");
    return EXIT_OK;
}

/* One file for two outputs would have the later one alone. */
static bool is_twice(const Files *f, int i)
{
    for (int j = 0; j < i; j++)
        if (strcmp(f->file[i].path, "-") != 0 && strcmp(f->file[i].path, f->file[j].path) == 0)
            return true;
    return false;
}

int files_commit(Files *f)
{
    if (f->n > MAX_FILES) {
        say("%d outputs are too many: %d is the most", f->n, MAX_FILES);
        return EXIT_USAGE;
    }
    for (int i = 0; i < f->n; i++)
        if (is_twice(f, i)) {
            say("%s: two outputs have this name", f->file[i].path);
            return EXIT_USAGE;
        }
    for (int i = 0; i < f->n; i++)
        if (strcmp(f->file[i].path, "-") != 0) {
            int status = write_temp(f, &f->file[i]);
            if (status != EXIT_OK)
                return status;
        }
    for (int i = 0; i < f->n; i++) {
        File *file = &f->file[i];
        if (strcmp(file->path, "-") == 0)
            fwrite(file->bytes, 1, file->n, stdout);
        else if (rename(file->temp, file->path) != 0)
            return fail(file->path, "write");
    }
    n_pending = 0;
    return EXIT_OK;
}

/* One byte more than `most` is enough to see that it is too much. */
static bool read_all(FILE *in, size_t most, Text *t)
{
    char buffer[65536];
    size_t k;
    while ((k = fread(buffer, 1, sizeof buffer, in)) > 0) {
        text_put(t, buffer, k);
        if (t->n > most)
            return true;
    }
    return ferror(in) == 0;
}

int read_text(const char *path, size_t most, Text *t)
{
    bool from_stdin = strcmp(path, "-") == 0;
    FILE *in = from_stdin ? stdin : fopen(path, "rb");
    struct stat st;
    if (in != NULL && !from_stdin && fstat(fileno(in), &st) == 0 && !S_ISREG(st.st_mode)) {
        fclose(in);
        say("%s: not a regular file", path);
        return EXIT_FILE;
    }
    if (in == NULL) {
        say("%s: %s", path, strerror(errno));
        return EXIT_FILE;
    }
    bool ok = read_all(in, most, t);
    if (!from_stdin)
        fclose(in);
    if (!ok) {
        say("%s: %s", path, strerror(errno));
        return EXIT_FILE;
    }
    return EXIT_OK;
}

int read_source(Cli *c, const char *path, int32_t *source)
{
    bool from_stdin = strcmp(path, "-") == 0;
    Text t;
    text_init(&t, &c->cx->perm);
    int status = read_text(path, MAX_SOURCE, &t); /* the parser says if it is too large */
    if (status != EXIT_OK)
        return status;
    *source = source_add(c->cx, from_stdin ? "<stdin>" : path, t.at, t.n, false);
    return EXIT_OK;
}

static bool is_memory(const Ctx *cx)
{
    for (int i = 0; i < cx->diag.n; i++)
        switch (cx->diag.at[i]->code) {
        case E0601:
        case E0603:
        case E0611:
        case E0612:
        case E0617:
        case E0621:
        case E0622:
            return true;
        default:
            break;
        }
    return false;
}

static bool has_code(const Ctx *cx, Code code)
{
    for (int i = 0; i < cx->diag.n; i++)
        if (cx->diag.at[i]->code == code)
            return true;
    return false;
}

int finish(Cli *c, bool ok)
{
    diag_print(c->cx, stderr);
    if (ok && c->cx->n_errors == 0)
        return EXIT_OK;
    if (has_code(c->cx, E0990))
        return EXIT_INTERNAL;
    if (has_code(c->cx, E0703) || has_code(c->cx, E0704) || has_code(c->cx, E0706) ||
        has_code(c->cx, E0707) || has_code(c->cx, E0708))
        return EXIT_NO_GPU;
    return is_memory(c->cx) ? EXIT_MEMORY : EXIT_INPUT;
}

double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

int64_t peak_rss_bytes(void)
{
    struct rusage u;
    return getrusage(RUSAGE_SELF, &u) == 0 ? (int64_t)u.ru_maxrss * 1024 : 0;
}
