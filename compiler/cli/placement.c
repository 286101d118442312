/* gradc plan --placement: where buffers of given lives lie. */
#include "cli.h"

#include "../plan/placement.h"

/* About ten seconds, where nothing is found. */
static const int64_t effort = 1500000000;

static int read_capacity(const Cli *c, int64_t *capacity)
{
    const char *s = cli_value(c, OPT_CAPACITY, NULL);
    *capacity = 0;
    if (s == NULL || parse_bytes(s, capacity))
        return EXIT_OK;
    return usage_error(c, "--capacity wants bytes such as 4096, 512KiB or 1.5GiB, not `%s`", s);
}

static void refuse(Cli *c, const Placement *p, const Placed *r, int64_t capacity)
{
    bool proved = r->answer == PLACEMENT_IMPOSSIBLE;
    Diag *d = proved ? diag_error(c->cx, E0621, NO_SPAN,
                                  "proved impossible: no placement keeps to a capacity of %lld",
                                  (long long)capacity)
                     : diag_error(c->cx, E0622, NO_SPAN,
                                  "not found: no placement within a capacity of %lld",
                                  (long long)capacity);
    if (p->max_live > capacity)
        diag_note(c->cx, d, NO_SPAN, "%lld bytes are alive at one time", (long long)p->max_live);
    diag_note(c->cx, d, NO_SPAN, "the lowest placement found takes %lld", (long long)r->height);
}

static void report(const Cli *c, const Placement *p, const Placed *r, int64_t capacity,
                   double seconds)
{
    if (cli_has(c, OPT_JSON)) {
        char asked[32] = "null";
        if (capacity > 0)
            snprintf(asked, sizeof asked, "%lld", (long long)capacity);
        printf("{\"buffers\": %d, \"capacity\": %s, \"height\": %lld, \"max_live\": %lld, "
               "\"proved\": %s, \"seconds\": %.3f}\n",
               p->n, asked, (long long)r->height, (long long)p->max_live,
               r->proved ? "true" : "false", seconds);
        return;
    }
    if (cli_has(c, OPT_QUIET))
        return;
    printf("%d buffers, height %lld (%s), max live %lld, %.3f s\n", p->n, (long long)r->height,
           r->proved ? "proved to be the least" : "not proved to be the least",
           (long long)p->max_live, seconds);
}

static int write_offsets(Cli *c, const Placement *p)
{
    Text t;
    text_init(&t, &c->cx->perm);
    placement_write(p, &t);
    Files *f = files_open(&c->cx->perm);
    files_add(f, cli_value(c, OPT_OUT, NULL), t.at, t.n);
    return files_commit(f);
}

static int solve(Cli *c, Placement *p, int64_t capacity, Arena *a)
{
    double from = now_ms();
    Placed r = placement_solve(p, capacity, effort, a);
    double seconds = (now_ms() - from) / 1e3;
    const char *wrong = placement_check(p, r.height, a);
    if (wrong != NULL)
        diag_error(c->cx, E0990, NO_SPAN, "the placement does not hold: %s", wrong);
    else if (r.answer != PLACEMENT_FOUND)
        refuse(c, p, &r, capacity);
    int status = finish(c, c->cx->n_errors == 0);
    if (status == EXIT_OK && cli_has(c, OPT_OUT))
        status = write_offsets(c, p);
    if (status == EXIT_OK)
        report(c, p, &r, capacity, seconds);
    return status;
}

int plan_placement(Cli *c)
{
    int64_t capacity;
    int32_t source;
    int status = read_capacity(c, &capacity);
    if (status == EXIT_OK)
        status = read_source(c, cli_value(c, OPT_PLACEMENT, NULL), &source);
    if (status != EXIT_OK)
        return status;
    Arena a = {0};
    Placement *p = placement_read(c->cx, source, &a);
    status = p == NULL ? finish(c, false) : solve(c, p, capacity, &a);
    arena_free(&a);
    return status;
}
