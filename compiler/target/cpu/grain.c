/* Which kernels lanes share out. What one lane has written is in its cache: where its neighbours
 * run on one lane, a kernel that is shared out fetches half of what it reads from another core, and
 * so do those that read what it wrote. Where most of the time is in kernels that are shared out,
 * lanes find things where they left them. */
#include <string.h>
#include "model.h"

/* What crosses costs so much for each byte that the kernel touches: tried on an Intel Xeon with a
 * mesh. With 0.15 and 0.3 mobilenetv2 of one picture takes 1.15 ms with two lanes, as with one;
 * without, 1.34. */
static const double CYCLES_A_BYTE = 0.15;
/* Of the time, for all to be shared out that is worth it by itself: it is 0.46 there, and 0.87 or
 * more in the networks that two lanes are good for. */
static const double LEAST_SHARED = 0.6;

typedef struct Cycles {
    double shared, all;
} Cycles;

static void add_calls(const Model *m, const Call *call, int32_t n, double turns, Cycles *sum)
{
    for (const Call *c = call; n-- > 0; c++) {
        if (c->kind != CALL_KERNEL) {
            double each = c->kind == CALL_LOOP ? (double)c->count : 1;
            add_calls(m, c->body, c->n_body, turns * each, sum);
            continue;
        }
        const KernelFn *f = &m->kernel[c->kernel];
        sum->all += turns * f->cycles;
        sum->shared += f->chunks > 1 ? turns * f->cycles : 0;
    }
}

static double bytes_of(const Kernel *k)
{
    double bytes = 0;
    for (int i = 0; i < k->buf.n; i++) {
        const KBuf *b = &k->buf.at[i];
        bytes += b->mode == K_LOCAL ? 0 : (double)b->elems * dtype_bytes(b->dtype);
    }
    return bytes;
}

void model_grain(Model *m)
{
    const Program *p = m->p;
    Cycles sum = {0, 0};
    for (int i = 0; i < p->entry.n; i++)
        if (strcmp(p->entry.at[i].name, "init") != 0)
            add_calls(m, p->entry.at[i].call, p->entry.at[i].n_calls, 1, &sum);
    if (sum.shared >= LEAST_SHARED * sum.all)
        return;
    for (int i = 0; i < p->kernel.n; i++) {
        KernelFn *f = &m->kernel[i];
        double rest = f->cycles - CYCLES_A_BYTE * bytes_of(p->kernel.at[i]);
        if (f->chunks > 1 && emit_chunks(rest, f->n_units) == 1)
            f->chunks = 1;
    }
}
