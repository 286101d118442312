/* Where offloaded values are: --offload, and --offload-rate, which may be measured. */
#include "cli.h"

#include <string.h>

#include "../../runtime/gradc.h"

bool offload_is_host(const Cli *c)
{
    return strcmp(cli_value(c, OPT_OFFLOAD, "host"), "host") == 0;
}

int offload_open(const Cli *c, int64_t bytes, struct gradc_store **out)
{
    gradc_error e = {0};
    int st = offload_is_host(c) ? gradc_store_host(bytes, out, &e)
                                : gradc_store_file(cli_value(c, OPT_OFFLOAD, ""), bytes, out, &e);
    if (st == GRADC_OK)
        return EXIT_OK;
    say("--offload: %s", e.text);
    return st == GRADC_MEMORY ? EXIT_MEMORY : EXIT_FILE;
}

/* ---- measured -------------------------------------------------------------------------- */

enum { PIECE = 4 << 20, PIECES = 16 };

/* All pieces out, and in again, as a step does; false: a transfer has failed. */
static bool move_pieces(const gradc_offload *store, char *piece)
{
    bool fine = true;
    for (int i = 0; i < 2 * PIECES && fine; i++) {
        int64_t at = (int64_t)(i % PIECES) * PIECE;
        fine = (i < PIECES ? store->write(store->context, at, piece, PIECE)
                           : store->read(store->context, at, piece, PIECE)) == 0;
    }
    return store->wait(store->context, -1) == 0 && fine;
}

static int measure(const Cli *c, double *bytes_per_ns)
{
    struct gradc_store *store;
    gradc_options o = {0};
    gradc_store_counts counts;
    int status = offload_open(c, (int64_t)PIECES * PIECE, &store);
    if (status != EXIT_OK)
        return status;
    gradc_store_use(store, &o);
    char *piece = gradc_alloc(PIECE, 1);
    bool fine = piece != NULL && move_pieces(o.offload, piece);
    gradc_store_count(store, &counts);
    gradc_store_close(store);
    gradc_free(piece);
    if (!fine || counts.transfer_s <= 0) {
        say("--offload-rate: the store could not be written and read");
        return EXIT_FILE;
    }
    *bytes_per_ns = (double)(counts.written + counts.read) / (counts.transfer_s * 1e9);
    return EXIT_OK;
}

/* ---- the options ------------------------------------------------------------------------- */

int cli_offload(Cli *c)
{
    const char *where = cli_value(c, OPT_OFFLOAD, NULL);
    const char *rate = cli_value(c, OPT_OFFLOAD_RATE, NULL);
    CostModel *m = NEW(&c->cx->perm, CostModel);
    int64_t bytes;
    *m = *c->options.cost;
    if (where != NULL && where[0] == 0)
        return usage_error(c, "--offload wants host or a file");
    c->options.offload = where != NULL;
    c->options.cost = m;
    m->store = offload_is_host(c) ? STORE_HOST_RATE : STORE_FILE_RATE;
    if (rate == NULL)
        return EXIT_OK;
    if (strcmp(rate, "measured") == 0)
        return measure(c, &m->store);
    if (!parse_bytes(rate, &bytes))
        return usage_error(
            c, "--offload-rate wants bytes a second such as 500MiB or 2GiB, or measured, not `%s`",
            rate);
    m->store = (double)bytes / 1e9;
    return EXIT_OK;
}
