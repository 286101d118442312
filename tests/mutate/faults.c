/* The n-th allocation, and the n-th file operation, of `gradc build` fails, for all n: the
 * exit status is 4 or 3, a message says so, and no file is left behind. With a cache there are more
 * file operations; where one of those fails, the build is as without.
 *
 *   gradc-faults MODEL FOLDER */
#include <errno.h>
#include <fcntl.h>
#include <dirent.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/cli.h"

/* ---- file operations, by the linker's --wrap ---------------------------------------- */

static int fail_at;     /* 0: none fails */
static int *operations; /* so far; of parent and child */

static bool fails(void)
{
    if (++*operations != fail_at)
        return false;
    errno = EIO;
    return true;
}

int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...)
{
    va_list ap;
    va_start(ap, flags);
    int mode = flags & O_CREAT ? va_arg(ap, int) : 0;
    va_end(ap);
    return fails() ? -1 : __real_open(path, flags, mode);
}

ssize_t __real_write(int fd, const void *from, size_t n);
ssize_t __wrap_write(int fd, const void *from, size_t n);
ssize_t __wrap_write(int fd, const void *from, size_t n)
{
    if (!fails())
        return __real_write(fd, from, n);
    if (n > 1 && __real_write(fd, from, n / 2) < 0) /* a full disk takes a part of it */
        return -1;
    errno = ENOSPC;
    return -1;
}

int __real_close(int fd);
int __wrap_close(int fd);
int __wrap_close(int fd)
{
    bool no = fails();
    int status = __real_close(fd);
    errno = EIO;
    return no ? -1 : status;
}

int __real_rename(const char *from, const char *to);
int __wrap_rename(const char *from, const char *to);
int __wrap_rename(const char *from, const char *to)
{
    return fails() ? -1 : __real_rename(from, to);
}

int __real_openat(int folder, const char *path, int flags, ...);
int __wrap_openat(int folder, const char *path, int flags, ...);
int __wrap_openat(int folder, const char *path, int flags, ...)
{
    va_list ap;
    va_start(ap, flags);
    int mode = flags & O_CREAT ? va_arg(ap, int) : 0;
    va_end(ap);
    return fails() ? -1 : __real_openat(folder, path, flags, mode);
}

int __real_renameat(int a, const char *from, int b, const char *to);
int __wrap_renameat(int a, const char *from, int b, const char *to);
int __wrap_renameat(int a, const char *from, int b, const char *to)
{
    return fails() ? -1 : __real_renameat(a, from, b, to);
}

ssize_t __real_read(int fd, void *to, size_t n);
ssize_t __wrap_read(int fd, void *to, size_t n);
ssize_t __wrap_read(int fd, void *to, size_t n)
{
    return fails() ? -1 : __real_read(fd, to, n);
}

int __real_mkdir(const char *path, mode_t mode);
int __wrap_mkdir(const char *path, mode_t mode);
int __wrap_mkdir(const char *path, mode_t mode)
{
    return fails() ? -1 : __real_mkdir(path, mode);
}

FILE *__real_fopen(const char *path, const char *mode);
FILE *__wrap_fopen(const char *path, const char *mode);
FILE *__wrap_fopen(const char *path, const char *mode)
{
    return fails() ? NULL : __real_fopen(path, mode);
}

/* ---- one build ---------------------------------------------------------------------- */

typedef struct Outcome {
    int status, files;
    uint64_t object; /* a hash of it */
    char said[400];
} Outcome;

static void build_model(const char *model, const char *object, const char *jobs)
{
    char *argv[] = {"gradc",        "build",  (char *)model, "-o",
                    (char *)object, "--jobs", (char *)jobs,  NULL};
    Ctx cx;
    bool done = false;
    ctx_init(&cx);
    arena_on_exhaustion(say_exhausted);
    Cli c = {.cx = &cx};
    int status = cli_parse(&c, 7, argv, &done);
    exit(status == EXIT_OK ? c.command->run(&c) : status);
}

/* Files in the folder; all are removed. */
static int empty_folder(const char *folder)
{
    int n = 0;
    DIR *d = opendir(folder);
    for (struct dirent *e; d != NULL && (e = readdir(d)) != NULL;) {
        char path[5000];
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        n += e->d_name[0] != '.' && unlink(path) == 0;
    }
    if (d != NULL)
        closedir(d);
    return n;
}

static uint64_t hash_file(const char *path)
{
    char bytes[4096];
    uint64_t h = HASH_START;
    FILE *f = fopen(path, "rb");
    for (size_t n; f != NULL && (n = fread(bytes, 1, sizeof bytes, f)) > 0;)
        h = hash_bytes(h, bytes, n);
    if (f != NULL)
        fclose(f);
    return h;
}

/* In a child, with the n-th allocation or file operation failing. */
static Outcome attempt(const char *model, const char *folder, int allocation, int operation)
{
    Outcome o = {.status = -1};
    char object[4096];
    snprintf(object, sizeof object, "%s/m.o", folder);
    FILE *said = tmpfile();
    fflush(NULL);
    pid_t child = said == NULL ? -1 : fork();
    if (child == 0) {
        dup2(fileno(said), 2);
        dup2(fileno(said), 1);
        *operations = 0;
        fail_at = operation;
        arena_fail_at(allocation);
        /* without memory, others are at work; operations are counted in one order */
        build_model(model, object, allocation > 0 ? "3" : "1");
    }
    int status;
    if (child > 0 && waitpid(child, &status, 0) == child)
        o.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    if (said != NULL) {
        rewind(said);
        size_t n = fread(o.said, 1, sizeof o.said - 1, said);
        o.said[n] = '\0';
        fclose(said);
    }
    fail_at = 0;
    o.object = hash_file(object);
    o.files = empty_folder(folder);
    return o;
}

static int judge(const Outcome *o, const char *what, int n, int want, bool some_files)
{
    bool left = o->files > 0 && !some_files;
    if (o->status == want && o->said[0] != '\0' && !left)
        return 0;
    printf("FAILED: %s %d: status %d (not %d), %d files left, said: %s\n", what, n, o->status, want,
           o->files, o->said);
    return 1;
}

enum { MOST = 20000 };

/* Every n until a build is done; gives how many failed otherwise than they should. */
static int all_of(const char *model, const char *folder, bool memory, int *n)
{
    int failed = 0;
    for (*n = 1; *n < MOST; ++*n) {
        Outcome o = attempt(model, folder, memory ? *n : 0, memory ? 0 : *n);
        if (o.status == EXIT_OK)
            return failed + (o.files != 2);
        /* the object is there when the header cannot be renamed: both were whole */
        failed += judge(&o, memory ? "allocation" : "file operation", *n,
                        memory ? EXIT_MEMORY : EXIT_FILE, strstr(o.said, "m.h") != NULL);
    }
    return failed + 1;
}

/* With a cache, which is empty (cold) or full, every n-th operation: the build is done, or says
 * what it can't write. */
static int all_with_cache(const char *model, const char *folder, bool cold, int each, int *n)
{
    char cache[4096];
    snprintf(cache, sizeof cache, "%s.cache", folder);
    setenv("GRADC_CACHE", cache, 1);
    int failed = 0, count = MOST;
    uint64_t object = 0;
    for (int i = 0; i <= count; i += each) {
        if (cold) {
            empty_folder(cache);
            rmdir(cache);
        }
        Outcome o = attempt(model, folder, 0, i);
        if (i == 0) { /* nothing fails */
            object = o.object;
            count = *operations;
        }
        bool done = o.status == EXIT_OK && o.object == object && o.files == 2;
        if (!done)
            failed += judge(&o, cold ? "operation with a cold cache" : "operation with a cache", i,
                            EXIT_FILE, strstr(o.said, "m.h") != NULL);
        ++*n;
    }
    return failed;
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "gradc-faults MODEL FOLDER\n");
        return 2;
    }
    empty_folder(argv[2]);
    int allocations, files, cached = 0;
    operations =
        mmap(NULL, sizeof *operations, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (operations == MAP_FAILED)
        return 3;
    setenv("GRADC_CACHE", "", 1);
    int failed = all_of(argv[1], argv[2], true, &allocations);
    failed += all_of(argv[1], argv[2], false, &files);
    failed += all_with_cache(argv[1], argv[2], true, 3, &cached);
    failed += all_with_cache(argv[1], argv[2], false, 1, &cached);
    printf("%d allocations, %d file operations and %d of the cache failed, one by one\n",
           allocations - 1, files - 1, cached);
    printf("passed=%d failed=%d skipped=0\n", allocations + files + cached - 2 - failed, failed);
    return failed > 0;
}
