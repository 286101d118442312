/* See runtime_help.h. */
#define _GNU_SOURCE 1
#include "runtime_help.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "runtime/hooks.h"

/* ---- files ---- */

char *help_directory(void)
{
    const char *base = getenv("TMPDIR");
    char *name = malloc(4096);
    if (base == NULL) /* thousands of fsyncs: in memory where there is such a place */
        base = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    snprintf(name, 4096, "%s/gradc-test-XXXXXX", base);
    if (mkdtemp(name) == NULL)
        abort();
    return name;
}

const char *help_path(const char *directory, const char *name)
{
    static char paths[64][4400];
    static int next;
    char *p = paths[next++ % 64];
    snprintf(p, sizeof paths[0], "%s/%s", directory, name);
    return p;
}

int help_entries(const char *directory)
{
    DIR *d = opendir(directory);
    int n = 0;
    if (d == NULL)
        return -1;
    for (struct dirent *e = readdir(d); e != NULL; e = readdir(d))
        n += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
    closedir(d);
    return n;
}

void help_remove(char *directory)
{
    DIR *d = opendir(directory);
    if (d != NULL) {
        for (struct dirent *e = readdir(d); e != NULL; e = readdir(d))
            if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0 &&
                unlinkat(dirfd(d), e->d_name, 0) != 0)
                unlinkat(dirfd(d), e->d_name, AT_REMOVEDIR);
        closedir(d);
    }
    rmdir(directory);
    free(directory);
}

void help_write(const char *path, const void *bytes, int64_t n)
{
    FILE *f = fopen(path, "wb");
    if (f == NULL || (n > 0 && fwrite(bytes, 1, (size_t)n, f) != (size_t)n) || fclose(f) != 0)
        abort();
}

uint8_t *help_read(const char *path, int64_t *n)
{
    FILE *f = fopen(path, "rb");
    if (f == NULL)
        return NULL;
    uint8_t *bytes = NULL;
    size_t size = 0, room = 0;
    for (;;) {
        if (size == room) {
            room = room == 0 ? 4096 : 2 * room;
            bytes = realloc(bytes, room);
        }
        size_t k = fread(bytes + size, 1, room - size, f);
        if (k == 0)
            break;
        size += k;
    }
    fclose(f);
    *n = (int64_t)size;
    return bytes;
}

void help_write_gz(const char *path, const void *bytes, int64_t n)
{
    gzFile f = gzopen(path, "wb9");
    if (f == NULL || (n > 0 && gzwrite(f, bytes, (unsigned)n) != (int)n) || gzclose(f) != Z_OK)
        abort();
}

/* ---- a model ---- */

enum { FIRST, HALF, BRAIN, MEAN, STEP, RATE, MOMENT, SMALL, GRADIENT };

#define SCALAR_OF(n, t, r, b)                                                                      \
    {                                                                                              \
        .name = n, .dtype = t, .role = r, .rank = 0, .elems = 1, .bytes = b, .offset = -1,         \
        .of = -1                                                                                   \
    }

/* clang-format off */
#define TENSORS(first, rows)                                                                       \
    {.name = first, .dtype = GRADC_F32, .role = GRADC_PARAM, .rank = 2, .shape = {rows, 12 / rows},\
     .elems = 12, .bytes = 48, .offset = -1, .of = -1},                                            \
    {.name = "h.0.bias", .dtype = GRADC_F16, .role = GRADC_PARAM, .rank = 1, .shape = {5},         \
     .elems = 5, .bytes = 10, .offset = -1, .of = -1},                                             \
    {.name = "h.0.scale", .dtype = GRADC_BF16, .role = GRADC_PARAM, .rank = 1, .shape = {3},       \
     .elems = 3, .bytes = 6, .offset = -1, .of = -1},                                              \
    {.name = "norm.mean", .dtype = GRADC_F32, .role = GRADC_STATE, .rank = 1, .shape = {3},        \
     .elems = 3, .bytes = 12, .offset = -1, .of = -1},                                             \
    SCALAR_OF("step", GRADC_I64, GRADC_STATE, 8),                                                  \
    SCALAR_OF("lr", GRADC_F32, GRADC_SCALAR, 4),                                                   \
    {.name = "adam.m:" first, .dtype = GRADC_F64, .role = GRADC_OPTIMIZER, .rank = 2,              \
     .shape = {3, 4}, .elems = 12, .bytes = 96, .offset = -1, .of = 0},                            \
    {.name = "adam8.v:" first, .dtype = GRADC_U8, .role = GRADC_OPTIMIZER, .rank = 1,              \
     .shape = {7}, .elems = 7, .bytes = 7, .offset = -1, .of = 0},                                 \
    {.name = "grad:" first, .dtype = GRADC_F32, .role = GRADC_GRADIENT, .rank = 2,                 \
     .shape = {3, 4}, .elems = 12, .bytes = 48, .offset = -1, .of = 0}
/* clang-format on */

static const gradc_tensor tensors[] = {TENSORS("h.0.weight", 3)};
static const gradc_tensor other_shapes[] = {TENSORS("h.0.weight", 4)};
static const gradc_tensor other_names[] = {TENSORS("encoder.weight", 3)};

static int fake_read(const void *g, int32_t tensor, void *out, size_t bytes)
{
    Fake *f = (Fake *)(uintptr_t)g;
    if (f->broken || tensor < 0 || tensor >= FAKE_TENSORS || bytes != (size_t)tensors[tensor].bytes)
        return GRADC_BAD_STATE;
    if (++f->reads == f->change_at)
        f->value[tensor][0] ^= 1;
    memcpy(out, f->value[tensor], bytes);
    return GRADC_OK;
}

static int fake_write(void *g, int32_t tensor, const void *in, size_t bytes)
{
    Fake *f = g;
    if (f->broken || f->read_only || tensor < 0 || tensor >= FAKE_TENSORS ||
        bytes != (size_t)tensors[tensor].bytes)
        return GRADC_BAD_STATE;
    memcpy(f->value[tensor], in, bytes);
    return GRADC_OK;
}

static const char *fake_error(const void *g)
{
    const Fake *f = g;
    return f->broken ? "the handle is in use" : f->read_only ? NULL : "";
}

#define HASH "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcde"
#define MODEL(list, digit)                                                                         \
    {                                                                                              \
        .abi = GRADC_ABI, .struct_size = sizeof(gradc_model), .name = "fake", .version = "0.1.0",  \
        .hash = HASH digit, .target = "none", .arena_bytes = 1, .arena_align = 64,                 \
        .batch_rows = 2, .accumulate = 1, .threads_max = 1, .n_tensors = FAKE_TENSORS,             \
        .tensors = list, .read = fake_read, .write = fake_write, .error = fake_error,              \
    }

const gradc_model fake_model = MODEL(tensors, "f");
const gradc_model fake_other_hash = MODEL(tensors, "0");
const gradc_model fake_other_shapes = MODEL(other_shapes, "f");
const gradc_model fake_other_names = MODEL(other_names, "f");

Fake *fake_new(int seed)
{
    Fake *f = calloc(1, sizeof *f);
    for (int t = 0; t < FAKE_TENSORS; t++) {
        const gradc_tensor *x = &tensors[t];
        f->value[t] = calloc(1, (size_t)x->bytes);
        for (int64_t i = 0; i < x->elems; i++) {
            int k = (seed * 31 + t * 7 + (int)i) % 100;
            float single = (float)k / 8;
            double twice = k / 16.0;
            int64_t whole = seed;
            uint16_t half = (uint16_t)(0x3000 + k); /* finite as f16 and as bf16 */
            if (x->dtype == GRADC_F32)
                memcpy(f->value[t] + 4 * i, &single, 4);
            else if (x->dtype == GRADC_F64)
                memcpy(f->value[t] + 8 * i, &twice, 8);
            else if (x->dtype == GRADC_I64)
                memcpy(f->value[t] + 8 * i, &whole, 8);
            else if (x->dtype == GRADC_U8)
                f->value[t][i] = (uint8_t)k;
            else
                memcpy(f->value[t] + 2 * i, &half, 2);
        }
    }
    return f;
}

void fake_free(Fake *f)
{
    for (int t = 0; t < FAKE_TENSORS; t++)
        free(f->value[t]);
    free(f);
}

bool fake_same(const Fake *a, const Fake *b, bool weights_only)
{
    for (int t = 0; t < GRADIENT; t++) {
        bool weight = t <= MEAN;
        if ((weight || !weights_only) &&
            memcmp(a->value[t], b->value[t], (size_t)tensors[t].bytes) != 0)
            return false;
    }
    return true;
}

float *fake_floats(Fake *f, int tensor)
{
    return (float *)(void *)f->value[tensor];
}

/* ---- faults ---- */

static struct {
    int nth, count, error;
    bool always, memory;
    int live, open;
    FileOps file;
    MemOps mem;
    bool installed;
} fault;

static bool fails(bool cleaning)
{
    int n = ++fault.count;
    bool now = fault.nth > 0 && (n == fault.nth || (fault.always && n > fault.nth && !cleaning));
    if (now && fault.error == FAULT_DEATH)
        _exit(9);
    if (now)
        errno = fault.error;
    return now;
}

static bool file_fails(bool cleaning)
{
    return !fault.memory && fails(cleaning);
}

static int f_open(const char *path, int flags, mode_t mode)
{
    if (file_fails(false))
        return -1;
    int fd = fault.file.open(path, flags, mode);
    fault.open += fd >= 0;
    return fd;
}

static ssize_t f_read(int fd, void *bytes, size_t n)
{
    return file_fails(false) ? -1 : fault.file.read(fd, bytes, n < 7 ? n : n / 2); /* short */
}

static ssize_t f_write(int fd, const void *bytes, size_t n)
{
    return file_fails(false) ? -1 : fault.file.write(fd, bytes, n < 7 ? n : n / 2);
}

static int f_fstat(int fd, struct stat *st)
{
    return file_fails(false) ? -1 : fault.file.fstat(fd, st);
}

static int f_lstat(const char *path, struct stat *st)
{
    return file_fails(false) ? -1 : fault.file.lstat(path, st);
}

static int f_fchmod(int fd, mode_t mode)
{
    return file_fails(false) ? -1 : fault.file.fchmod(fd, mode);
}

static int f_fchown(int fd, uid_t owner, gid_t group)
{
    return file_fails(false) ? -1 : fault.file.fchown(fd, owner, group);
}

static int f_fsync(int fd)
{
    return file_fails(false) ? -1 : fault.file.fsync(fd);
}

static int f_close(int fd)
{
    bool bad = file_fails(false);
    int error = errno;
    fault.open--;
    fault.file.close(fd); /* as Linux does: closed even when it reports an error */
    errno = error;
    return bad ? -1 : 0;
}

static int f_link(const char *from, const char *to)
{
    return file_fails(false) ? -1 : fault.file.link(from, to);
}

static int f_rename(const char *from, const char *to)
{
    return file_fails(false) ? -1 : fault.file.rename(from, to);
}

static int f_unlink(const char *path)
{
    return file_fails(true) ? -1 : fault.file.unlink(path);
}

static void *m_alloc(size_t n)
{
    void *p = fault.memory && fails(false) ? NULL : fault.mem.alloc(n);
    fault.live += p != NULL;
    return p;
}

static void *m_aligned(size_t align, size_t n)
{
    void *p = fault.memory && fails(false) ? NULL : fault.mem.aligned(align, n);
    fault.live += p != NULL;
    return p;
}

static void *m_resize(void *old, size_t n)
{
    void *p = fault.memory && fails(false) ? NULL : fault.mem.resize(old, n);
    fault.live += p != NULL && old == NULL;
    return p;
}

static void m_release(void *p)
{
    fault.live -= p != NULL;
    fault.mem.release(p);
}

static void install(int nth, int error, bool always, bool memory)
{
    if (fault.installed)
        fault_end();
    fault.nth = nth;
    fault.count = fault.live = fault.open = 0;
    fault.error = error;
    fault.always = always;
    fault.memory = memory;
    fault.file = gr_file_ops;
    fault.mem = gr_mem_ops;
    gr_file_ops = (FileOps){.open = f_open,
                            .read = f_read,
                            .write = f_write,
                            .fstat = f_fstat,
                            .lstat = f_lstat,
                            .fchmod = f_fchmod,
                            .fchown = f_fchown,
                            .fsync = f_fsync,
                            .close = f_close,
                            .link = f_link,
                            .rename = f_rename,
                            .unlink = f_unlink};
    gr_mem_ops =
        (MemOps){.alloc = m_alloc, .aligned = m_aligned, .resize = m_resize, .release = m_release};
    json_set_alloc_funcs(m_alloc, m_release);
    fault.installed = true;
}

void fault_files(int nth, int error, bool always)
{
    install(nth, error, always, false);
}

void fault_memory(int nth, bool always)
{
    install(nth, ENOMEM, always, true);
}

bool fault_end(void)
{
    gr_file_ops = fault.file;
    gr_mem_ops = fault.mem;
    json_set_alloc_funcs(malloc, free);
    fault.installed = false;
    return fault.nth > 0 && fault.count >= fault.nth;
}

int fault_live(void)
{
    return fault.live;
}

int fault_open(void)
{
    return fault.open;
}

/* ---- a file in memory ---- */

static struct {
    const char *path;
    const uint8_t *bytes;
    size_t n, at;
} memory_file;

enum { MEMORY_FD = 1 << 20 };

static int mem_open(const char *path, int flags, mode_t mode)
{
    (void)mode;
    if ((flags & O_ACCMODE) != O_RDONLY || strcmp(path, memory_file.path) != 0) {
        errno = ENOENT;
        return -1;
    }
    memory_file.at = 0;
    fault.open++;
    return MEMORY_FD;
}

static ssize_t mem_read(int fd, void *bytes, size_t n)
{
    size_t left = memory_file.n - memory_file.at;
    if (fd != MEMORY_FD)
        abort();
    if (n > left)
        n = left;
    if (n > 0)
        memcpy(bytes, memory_file.bytes + memory_file.at, n);
    memory_file.at += n;
    return (ssize_t)n;
}

static int mem_fstat(int fd, struct stat *st)
{
    if (fd != MEMORY_FD)
        abort();
    memset(st, 0, sizeof *st);
    st->st_mode = S_IFREG;
    st->st_size = (off_t)memory_file.n;
    return 0;
}

static int mem_close(int fd)
{
    if (fd != MEMORY_FD)
        abort();
    fault.open--;
    return 0;
}

void fault_memory_file(const char *path, const void *bytes, size_t n)
{
    install(0, 0, false, false);
    memory_file.path = path;
    memory_file.bytes = bytes;
    memory_file.n = n;
    gr_file_ops.open = mem_open;
    gr_file_ops.read = mem_read;
    gr_file_ops.fstat = mem_fstat;
    gr_file_ops.close = mem_close;
}
