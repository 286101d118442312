/* gradc show --kernels: what an entry launches, and, for a GPU, what it is expected to take. */
#include <stdlib.h>
#include <string.h>

#include "../plan/report.h"
#include "../target/cuda/cubin.h"
#include "../target/cuda/gpu.h"
#include "../target/cuda/nvrtc.h"
#include "images.h"

/* One kernel in the entry. */
typedef struct Row {
    const Kernel *k;
    const char *name, *line; /* "k3_contract"; "mlp.model:7" of the first call, or NULL */
    int64_t calls;           /* a call of the entry: those of loops are many */
    KCost cost;              /* of one */
    /* of the target cuda: */
    GpuUse use;
    const CubinKernel *cubin; /* NULL: there is no NVRTC */
    double occupancy, ns;     /* of one call */
    GpuLimit limit;
} Row;

typedef struct Table {
    const Cli *c;
    const Program *p;
    const Entry *entry;
    Arena *arena;
    const Gpu *gpu; /* NULL: another target */
    VEC(Row) row;
    int32_t *row_of; /* by kernel, or -1 */
} Table;

/* ---- rows ---------------------------------------------------------------------------------- */

static void add_call(Table *t, const Call *call, int64_t times)
{
    const Kernel *k = t->p->kernel.at[call->kernel];
    if (t->row_of[call->kernel] < 0) {
        Row r = {.k = k, .cost = kernel_cost(k)};
        r.name = arena_printf(t->arena, "k%d_%s", call->kernel, k->name);
        r.line = report_line(t->c->cx, call->origin, t->arena);
        t->row_of[call->kernel] = t->row.n;
        vec_push(t->arena, &t->row, r);
    }
    t->row.at[t->row_of[call->kernel]].calls += times;
}

static void add_calls(Table *t, const Call *call, int32_t n, int64_t times)
{
    for (const Call *c = call; n-- > 0; c++) {
        if (c->kind == CALL_KERNEL)
            add_call(t, c, times);
        else
            add_calls(t, c->body, c->n_body, c->kind == CALL_LOOP ? times * c->count : times);
    }
}

static void make_rows(Table *t)
{
    int n = t->p->kernel.n;
    t->row_of = NEW_ARRAY(t->arena, int32_t, n);
    for (int i = 0; i < n; i++)
        t->row_of[i] = -1;
    add_calls(t, t->entry->call, t->entry->n_calls, 1);
}

static double bytes_of(const Row *r)
{
    return r->cost.bytes_read + r->cost.bytes_written;
}

static double weight(const Row *r)
{
    return (double)r->calls * (r->ns > 0 ? r->ns : bytes_of(r));
}

static int heavier(const void *a, const void *b)
{
    const Row *x = a, *y = b;
    double u = weight(x), v = weight(y);
    return u != v ? (u < v) - (u > v) : strcmp(x->name, y->name);
}

/* ---- of the target cuda -----------------------------------------------------------------------
 */

/* The kernels' cubins, in the order of Program.kernel; entries stay NULL where NVRTC is not there,
 * or not for this GPU.   fails: false, after a report. */
static bool find_cubins(Table *t, const CubinKernel **of)
{
    Nvrtc nvrtc;
    NvrtcMissing no;
    CudaImages m;
    TargetOptions o = t->c->options.target;
    if (!nvrtc_open(&nvrtc, t->arena, &no))
        return true;
    bool has = nvrtc_has(&nvrtc, t->gpu->arch);
    nvrtc_close(&nvrtc);
    o.arch = arena_printf(t->arena, "sm_%d", t->gpu->arch);
    if (!has)
        return true;
    if (!cuda_compile(t->c->cx, t->p, &o, t->arena, &m))
        return false;
    Cubin *cubin = NEW_ARRAY(t->arena, Cubin, m.n);
    for (int i = 0; i < m.n; i++)
        cubin_read(m.items[i].bytes, m.items[i].size, t->arena, &cubin[i]);
    for (int i = 0; i < t->p->kernel.n; i++)
        if (m.program_of_kernel[i] >= 0)
            of[i] = cubin_kernel(&cubin[m.program_of_kernel[i]], m.name[i]);
    return true;
}

static bool predict(Table *t)
{
    CudaText *text = cu_text_open(t->c->cx, t->p, t->arena);
    const CubinKernel **cubin = NEW_ARRAY(t->arena, const CubinKernel *, t->p->kernel.n);
    cu_text_launches(text);
    if (!find_cubins(t, cubin))
        return false;
    for (int32_t i = 0; i < t->p->kernel.n; i++) {
        if (t->row_of[i] < 0)
            continue;
        Row *r = &t->row.at[t->row_of[i]];
        r->use.launch = text->launch[i];
        if (r->use.launch.blocks == 0)
            continue;
        r->cubin = cubin[i];
        r->ns = gpu_time(t->gpu, r->k, &r->use.launch, &r->limit);
        if (r->cubin == NULL)
            continue;
        r->use.registers = r->cubin->registers;
        r->use.shared_bytes = r->cubin->shared_bytes;
        r->occupancy = gpu_occupancy(t->gpu, &r->use);
    }
    return true;
}

/* ---- text ------------------------------------------------------------------------------------ */

static void put_resources(const Row *r, Text *to)
{
    const CubinKernel *k = r->cubin;
    if (k != NULL)
        text_add(to, " %4d %6lld %5d %4.0f%%", k->registers, (long long)k->shared_bytes,
                 k->loads + k->stores, 100 * r->occupancy);
    else
        text_add(to, " %4s %6s %5s %5s", "-", "-", "-", "-");
}

static void put_row(const Table *t, const Row *r, Text *to)
{
    double calls = (double)r->calls;
    if (t->gpu != NULL) {
        text_add(to, "%10.1f %-6s", calls * r->ns / 1e3,
                 r->use.launch.blocks > 0 ? gpu_limit[r->limit] : "-");
        text_add(to, " %9lld %7d", (long long)r->use.launch.blocks, r->use.launch.threads);
        put_resources(r, to);
    }
    text_add(to, " %6lld %11.3f %11.3f  %s %s\n", (long long)r->calls, calls * bytes_of(r) / 1e6,
             calls * r->cost.flops / 1e9, r->name, r->line != NULL ? r->line : "-");
}

static Row total_of(const Table *t)
{
    Row sum = {0};
    for (int i = 0; i < t->row.n; i++) {
        const Row *r = &t->row.at[i];
        sum.calls += r->calls;
        sum.ns += (double)r->calls * r->ns;
        sum.cost.bytes_read += (double)r->calls * r->cost.bytes_read;
        sum.cost.bytes_written += (double)r->calls * r->cost.bytes_written;
        sum.cost.flops += (double)r->calls * r->cost.flops;
    }
    return sum;
}

static void put_text(const Table *t, Text *to)
{
    Row sum = total_of(t);
    text_add(to, "entry %s: %lld calls of %d kernels, %.3f MB, %.3f GFLOP", t->entry->name,
             (long long)sum.calls, t->row.n, bytes_of(&sum) / 1e6, sum.cost.flops / 1e9);
    if (t->gpu != NULL)
        text_add(to,
                 ", %.1f us\n%s: %d multiprocessors, %.0f GB/s, %.1f TFLOP/s of f32. A launch is "
                 "taken to need %.1f us and the longer of\nits bytes at %.0f %% of the bandwidth "
                 "and its instructions, on the multiprocessors that have a block.\n\n%10s %-6s %9s "
                 "%7s %4s %6s %5s %5s",
                 sum.ns / 1e3, t->gpu->title, t->gpu->processors, t->gpu->memory, t->gpu->f32 / 1e3,
                 gpu_launch_ns / 1e3, 100 * gpu_reached, "us", "limit", "blocks", "threads", "regs",
                 "shared", "spill", "warps");
    else
        text_add(to, "\n\n");
    text_add(to, " %6s %11s %11s  %s\n", "calls", "MB", "GFLOP", "kernel, line");
    for (int i = 0; i < t->row.n; i++)
        put_row(t, &t->row.at[i], to);
}

/* ---- JSON -------------------------------------------------------------------------------------
 */

static void put_json_gpu(const Row *r, Text *to)
{
    const CubinKernel *k = r->cubin;
    text_add(to, ", \"ns\": %.1f, \"limit\": \"%s\", \"blocks\": %lld, \"threads\": %d", r->ns,
             gpu_limit[r->limit], (long long)r->use.launch.blocks, r->use.launch.threads);
    if (k != NULL)
        text_add(to,
                 ", \"registers\": %d, \"shared_bytes\": %lld, \"frame_bytes\": %d, "
                 "\"local_accesses\": %d, \"occupancy\": %.4f",
                 k->registers, (long long)k->shared_bytes, k->frame_bytes, k->loads + k->stores,
                 r->occupancy);
    else
        text_add(to, ", \"registers\": null, \"shared_bytes\": null, \"frame_bytes\": null, "
                     "\"local_accesses\": null, \"occupancy\": null");
}

static void put_json(const Table *t, Text *to)
{
    text_add(to, "{\"entry\": \"%s\"", t->entry->name);
    if (t->gpu != NULL)
        text_add(to, ", \"gpu\": \"%s\", \"launch_ns\": %.0f, \"reached\": %.2f", t->gpu->name,
                 gpu_launch_ns, gpu_reached);
    text_add(to, ", \"kernels\": [");
    for (int i = 0; i < t->row.n; i++) {
        const Row *r = &t->row.at[i];
        text_add(to, "%s\n{", i > 0 ? "," : "");
        text_pair(to, "kernel", r->name);
        text_add(to, ", ");
        text_pair(to, "line", r->line);
        text_add(to,
                 ", \"calls\": %lld, \"bytes_read\": %.0f, \"bytes_written\": %.0f, "
                 "\"flops\": %.0f",
                 (long long)r->calls, r->cost.bytes_read, r->cost.bytes_written, r->cost.flops);
        if (t->gpu != NULL)
            put_json_gpu(r, to);
        text_add(to, "}");
    }
    text_add(to, "]}\n");
}

/* ---- the command ---------------------------------------------------------------------------- */

int cli_gpu(const Cli *c, const char *otherwise, const Gpu **gpu)
{
    const char *name = cli_value(c, OPT_GPU, otherwise), *known = "";
    *gpu = NULL;
    if (strcmp(cli_value(c, OPT_TARGET, "cpu"), "cuda") != 0)
        return cli_has(c, OPT_GPU) ? usage_error(c, "--gpu is for --target cuda") : EXIT_OK;
    *gpu = name != NULL ? gpu_find(name) : NULL;
    if (*gpu != NULL || name == NULL)
        return EXIT_OK;
    for (int i = 0; i < n_gpus; i++)
        known = arena_printf(&c->cx->perm, "%s%s%s", known, i > 0 ? ", " : "", gpus[i].name);
    return usage_error(c, "--gpu knows %s, not `%s`", known, name);
}

/* What trains, else what evaluates. */
static const Entry *main_entry(const Program *p)
{
    static const char *const name[] = {"step", "grad", "eval", "init"};
    const Entry *e = NULL;
    for (size_t i = 0; i < sizeof name / sizeof *name && e == NULL; i++)
        e = program_entry(p, name[i]);
    return e;
}

int show_kernels(Cli *c, bool json)
{
    Arena arena = {0};
    Output out = {.arena = &arena};
    Table t = {.c = c, .arena = &arena};
    int status = cli_gpu(c, "h100", &t.gpu);
    if (status == EXIT_OK)
        status = compile_to(c, 2, &out);
    if (status == EXIT_OK) {
        t.p = out.program;
        t.entry = main_entry(t.p);
        make_rows(&t);
        status = finish(c, t.gpu == NULL || predict(&t));
    }
    if (status == EXIT_OK) {
        Text text;
        text_init(&text, &arena);
        if (t.row.n > 0)
            qsort(t.row.at, (size_t)t.row.n, sizeof *t.row.at, heavier);
        if (json)
            put_json(&t, &text);
        else
            put_text(&t, &text);
        fputs(text.at, stdout);
    }
    output_free(&out);
    return status;
}
