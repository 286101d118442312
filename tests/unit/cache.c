/* The cache of compiled parts: what is written is read, and nothing else is. */
#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "target/cache.h"

/* ---- the digest ---------------------------------------------------------------------- */

static void digest_of(const unsigned char *p, size_t n, size_t step, char hex[65])
{
    Blake2b b;
    unsigned char digest[DIGEST_BYTES];
    blake2b_start(&b);
    for (size_t i = 0; i < n; i += step)
        blake2b_add(&b, p + i, n - i < step ? n - i : step);
    blake2b_end(&b, digest);
    for (int i = 0; i < DIGEST_BYTES; i++)
        snprintf(hex + 2 * i, 3, "%02x", digest[i]);
}

/* Bytes 0, 1, ... 255, 0, ...; digests by Python's hashlib.blake2b(digest_size=32). */
START_TEST(digests_are_blake2b)
{
    static const struct {
        size_t n;
        const char *digest;
    } known[] = {
        {0, "0e5751c026e543b2e8ab2eb06099daa1d1e5df47778f7787faab45cdf12fe3a8"},
        {1, "03170a2e7597b7b7e3d84c05391d139a62b157e78786d8c082f29dcf4c111314"},
        {127, "f2fe67ff342e21b8f45e8f2e0bcd1d9243245d50ee6c78042e9c491388791c72"},
        {128, "c3582f71ebb2be66fa5dd750f80baae97554f3b015663c8be377cfcb2488c1d1"},
        {129, "f7f3c46ba2564ff4c4c162da1f5b605f9f1c4aa6a20652a9f9a337c1a2f5b9c9"},
        {256, "39a7eb9fedc19aabc83425c6755dd90e6f9d0c804964a1f4aaeea3b9fb599835"},
        {1000, "c636324d47d89f2b2434dc2c994100663fbbaea880ff020fc5de89dd0f77a1ec"},
    };
    unsigned char bytes[1000];
    char hex[65];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)i;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        for (size_t step = 1; step < 300; step += 63) {
            digest_of(bytes, known[i].n, step, hex);
            ck_assert_str_eq(hex, known[i].digest);
        }
}
END_TEST

/* ---- a folder ------------------------------------------------------------------------- */

static const unsigned char key[DIGEST_BYTES] = {1, 2, 3};
static const unsigned char other_key[DIGEST_BYTES] = {1, 2, 4};
static const char part[] = "the bytes of a part, of which there are some";

typedef struct Folder {
    char path[64];
    Arena arena;
    Cache cache;
} Folder;

static void set_up(Folder *f)
{
    *f = (Folder){.path = "/tmp/gradc-cache-XXXXXX"};
    ck_assert(mkdtemp(f->path) != NULL);
    f->cache = cache_open(f->path);
    ck_assert_int_ge(f->cache.folder, 0);
}

static void tear_down(Folder *f)
{
    char command[100];
    cache_close(&f->cache);
    arena_free(&f->arena);
    snprintf(command, sizeof command, "rm -rf %s", f->path);
    ck_assert_int_eq(system(command), 0);
}

static void store(Folder *f)
{
    cache_write(&f->cache, key, (const unsigned char *)part, sizeof part);
}

static bool is_there(Folder *f)
{
    size_t n = 0;
    const unsigned char *bytes = cache_read(&f->cache, key, &f->arena, &n);
    if (bytes == NULL)
        return false;
    ck_assert_uint_eq(n, sizeof part);
    ck_assert_mem_eq(bytes, part, n);
    return true;
}

/* Of the file of `key`. */
static const char *path_of(const Folder *f)
{
    static char path[200];
    int n = snprintf(path, sizeof path, "%s/", f->path);
    for (int i = 0; i < DIGEST_BYTES; i++)
        n += snprintf(path + n, 3, "%02x", key[i]);
    snprintf(path + n, 7, ".gradc");
    return path;
}

static size_t read_file(const char *path, unsigned char *bytes, size_t most)
{
    FILE *f = fopen(path, "rb");
    ck_assert(f != NULL);
    size_t n = fread(bytes, 1, most, f);
    fclose(f);
    return n;
}

static void write_file(const char *path, const unsigned char *bytes, size_t n)
{
    FILE *f = fopen(path, "wb");
    ck_assert(f != NULL && fwrite(bytes, 1, n, f) == n && fclose(f) == 0);
}

/* ---- one part --------------------------------------------------------------------------- */

START_TEST(what_is_written_is_read)
{
    Folder f;
    size_t n;
    set_up(&f);
    ck_assert(!is_there(&f));
    store(&f);
    ck_assert(is_there(&f));
    ck_assert_ptr_null(cache_read(&f.cache, other_key, &f.arena, &n));
    store(&f);
    ck_assert(is_there(&f));
    cache_write(&f.cache, other_key, NULL, 0);
    ck_assert_ptr_nonnull(cache_read(&f.cache, other_key, &f.arena, &n));
    ck_assert_uint_eq(n, 0);
    CacheSize size = cache_size(&f.cache);
    ck_assert_int_eq(size.files, 2);
    ck_assert_int_gt(size.bytes, (int64_t)sizeof part);
    tear_down(&f);
}
END_TEST

/* Every bit, every length, another part's file: none is taken for the part, and it is stored
 * again. */
START_TEST(damage_is_seen)
{
    Folder f;
    unsigned char whole[300], bad[301];
    set_up(&f);
    store(&f);
    size_t n = read_file(path_of(&f), whole, sizeof whole);
    ck_assert_uint_lt(n, sizeof whole);
    for (size_t bit = 0; bit < 8 * n; bit++) {
        memcpy(bad, whole, n);
        bad[bit / 8] ^= (unsigned char)(1 << bit % 8);
        write_file(path_of(&f), bad, n);
        ck_assert_msg(!is_there(&f), "bit %zu is not looked at", bit);
    }
    memcpy(bad, whole, n);
    bad[n] = 0;
    for (size_t length = 0; length <= n + 1; length++) {
        write_file(path_of(&f), bad, length);
        ck_assert_msg(is_there(&f) == (length == n), "%zu of %zu bytes", length, n);
    }
    cache_write(&f.cache, other_key, (const unsigned char *)part, sizeof part);
    char other[200];
    snprintf(other, sizeof other, "%s", path_of(&f));
    other[strlen(f.path) + 6] = '4';
    ck_assert_int_eq(rename(other, path_of(&f)), 0);
    ck_assert(!is_there(&f));
    store(&f);
    ck_assert(is_there(&f));
    tear_down(&f);
}
END_TEST

/* In the file's place: what can be replaced is, and what can't is left alone. */
START_TEST(what_is_no_file_is_not_read)
{
    Folder f;
    char target[100];
    set_up(&f);
    ck_assert_int_eq(mkfifo(path_of(&f), 0600), 0);
    ck_assert(!is_there(&f)); /* and nobody waits for a writer */
    store(&f);
    ck_assert(is_there(&f));

    snprintf(target, sizeof target, "%s/target", f.path);
    ck_assert_int_eq(rename(path_of(&f), target), 0);
    ck_assert_int_eq(symlink(target, path_of(&f)), 0);
    ck_assert(!is_there(&f));
    store(&f);
    ck_assert(is_there(&f));
    struct stat st;
    ck_assert(lstat(path_of(&f), &st) == 0 && S_ISREG(st.st_mode));

    ck_assert_int_eq(unlink(path_of(&f)), 0);
    ck_assert_int_eq(mkdir(path_of(&f), 0700), 0);
    ck_assert(!is_there(&f));
    store(&f);
    ck_assert(!is_there(&f));
    cache_clear(&f.cache);
    ck_assert(lstat(path_of(&f), &st) == 0 && S_ISDIR(st.st_mode));
    tear_down(&f);
}
END_TEST

START_TEST(other_owners_are_not_trusted)
{
    Folder f;
    if (geteuid() != 0)
        return; /* nobody else can give files away */
    set_up(&f);
    store(&f);
    ck_assert_int_eq(chown(path_of(&f), 12345, 12345), 0);
    ck_assert(!is_there(&f));
    store(&f);
    ck_assert(is_there(&f));
    tear_down(&f);
}
END_TEST

START_TEST(folders_that_cannot_be)
{
    Folder f;
    char path[5000];
    size_t n;
    set_up(&f);
    store(&f);
    snprintf(path, sizeof path, "%s/below", path_of(&f));
    memset(path + 200, 'x', 4700);
    path[4900] = 0;
    const char *const bad[] = {NULL, "", path_of(&f), path, "/dev/null/x", "/proc/none/x"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        Cache c = cache_open(bad[i]);
        ck_assert_int_lt(c.folder, 0);
        cache_write(&c, key, (const unsigned char *)part, sizeof part);
        ck_assert_ptr_null(cache_read(&c, key, &f.arena, &n));
        cache_trim(&c);
        cache_clear(&c);
        ck_assert_int_eq(cache_size(&c).files, 0);
        cache_close(&c);
    }
    snprintf(path, sizeof path, "%s/a/b//c", f.path);
    Cache deep = cache_open(path);
    cache_write(&deep, key, (const unsigned char *)part, sizeof part);
    ck_assert_ptr_nonnull(cache_read(&deep, key, &f.arena, &n));
    cache_close(&deep);
    tear_down(&f);
}
END_TEST

/* ---- all of them ----------------------------------------------------------------------- */

/* An empty file of that length, used so many hours ago. */
static void plant(const Folder *f, const char *name, int64_t bytes, int hours)
{
    char path[200];
    snprintf(path, sizeof path, "%s/%s", f->path, name);
    int fd = open(path, O_CREAT | O_WRONLY, 0600);
    struct timespec t[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_sec = time(NULL) - hours * 3600}};
    ck_assert(fd >= 0 && ftruncate(fd, bytes) == 0 && futimens(fd, t) == 0 && close(fd) == 0);
}

static bool has(const Folder *f, const char *name)
{
    char path[200];
    snprintf(path, sizeof path, "%s/%s", f->path, name);
    return access(path, F_OK) == 0;
}

#define HEX "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcde"

START_TEST(the_oldest_go)
{
    static const char *const name[] = {HEX "0.gradc", HEX "1.gradc", HEX "2.gradc", HEX "3.gradc"};
    static const int hours[] = {5, 50, 500, 1};
    Folder f;
    set_up(&f);
    for (int i = 0; i < 3; i++)
        plant(&f, name[i], CACHE_MOST_BYTES / 3, hours[i]);
    plant(&f, "of somebody", CACHE_MOST_BYTES, 5000);
    plant(&f, HEX "0", CACHE_MOST_BYTES, 5000);
    plant(&f, "tmp-0123456789abcdef", 1, 2);
    plant(&f, "tmp-1123456789abcdef", 1, 0);
    plant(&f, "tmp-is mine", 1, 2);
    cache_trim(&f.cache);
    ck_assert(has(&f, name[0]) && has(&f, name[1]) && has(&f, name[2]));
    ck_assert(!has(&f, "tmp-0123456789abcdef") && has(&f, "tmp-1123456789abcdef"));
    plant(&f, name[3], CACHE_MOST_BYTES / 3, hours[3]);
    cache_trim(&f.cache);
    ck_assert(has(&f, name[0]) && !has(&f, name[1]) && !has(&f, name[2]) && has(&f, name[3]));
    cache_clear(&f.cache);
    ck_assert(!has(&f, name[0]) && !has(&f, name[3]) && !has(&f, "tmp-1123456789abcdef"));
    ck_assert(has(&f, "of somebody") && has(&f, HEX "0") && has(&f, "tmp-is mine"));
    tear_down(&f);
}
END_TEST

START_TEST(use_is_noted)
{
    Folder f;
    struct stat st;
    set_up(&f);
    store(&f);
    struct timespec old[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
    ck_assert_int_eq(utimensat(AT_FDCWD, path_of(&f), old, 0), 0);
    ck_assert(is_there(&f));
    ck_assert_int_eq(stat(path_of(&f), &st), 0);
    ck_assert_int_gt(st.st_mtime, 1000000);
    tear_down(&f);
}
END_TEST

Suite *suite_cache(void);
Suite *suite_cache(void)
{
    Suite *s = suite_create("cache");
    TCase *t = tcase_create("parts");
    tcase_add_test(t, digests_are_blake2b);
    tcase_add_test(t, what_is_written_is_read);
    tcase_add_test(t, damage_is_seen);
    tcase_add_test(t, what_is_no_file_is_not_read);
    tcase_add_test(t, other_owners_are_not_trusted);
    tcase_add_test(t, folders_that_cannot_be);
    tcase_add_test(t, the_oldest_go);
    tcase_add_test(t, use_is_noted);
    suite_add_tcase(s, t);
    return s;
}
