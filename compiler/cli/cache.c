/* How compiling is shared out, and where its results are kept: --jobs, --no-cache. */
#define _GNU_SOURCE
#include "cli.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../target/cache.h"

int usable_cores(void)
{
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

int cli_jobs(Cli *c, int32_t *jobs)
{
    int64_t n;
    int status = cli_integer(c, OPT_JOBS, usable_cores(), 1, 1024, &n);
    *jobs = (int32_t)n;
    return status;
}

/* source: XDG Base Directory Specification, which wants a path that is not absolute ignored */
static const char *folder(Arena *a)
{
    const char *own = getenv("GRADC_CACHE"), *cache = getenv("XDG_CACHE_HOME");
    const char *home = getenv("HOME");
    if (own != NULL)
        return own[0] != 0 ? own : NULL;
    if (cache != NULL && cache[0] == '/')
        return arena_printf(a, "%s/gradc", cache);
    return home != NULL && home[0] == '/' ? arena_printf(a, "%s/.cache/gradc", home) : NULL;
}

const char *cli_cache(const Cli *c)
{
    return cli_has(c, OPT_NO_CACHE) ? NULL : folder(&c->cx->perm);
}

void say_cache(const Cli *c)
{
    const char *path = c->options.target.cache;
    int error = path != NULL ? cache_denied(path) : 0;
    if (error != 0 && !cli_has(c, OPT_QUIET))
        remark("kernels are not kept for the next time: %s: %s", path, strerror(error));
}

void print_cache(const Cli *c)
{
    const char *path = folder(&c->cx->perm);
    bool is = path != NULL && access(path, F_OK) == 0; /* opening would make it */
    Cache cache = cache_open(is ? path : NULL);
    CacheSize size = cache_size(&cache);
    Text t;
    text_init(&t, &c->cx->perm);
    if (cli_has(c, OPT_CLEAR_CACHE))
        cache_clear(&cache);
    cache_close(&cache);
    if (!c->cx->json) {
        const char *what = cli_has(c, OPT_CLEAR_CACHE) ? " were removed from" : " in";
        if (path == NULL)
            printf("cache     none: GRADC_CACHE is empty, or there is no HOME\n");
        else
            printf("cache     %lld parts, %lld bytes%s %s\n", (long long)size.files,
                   (long long)size.bytes, what, path);
        return;
    }
    text_pair(&t, "cache", path);
    printf(", %s, \"cache_files\": %lld, \"cache_bytes\": %lld", t.at, (long long)size.files,
           (long long)size.bytes);
}
