/* gradc inspect, doctor and fmt. */
#define _GNU_SOURCE
#include "cli.h"

#include <math.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>

#include "../../runtime/gradc.h"
#include "../target/cuda/nvrtc.h"
#include "values.h"

/* ---- inspect -------------------------------------------------------------------- */

static bool ends_with(const char *s, const char *suffix)
{
    size_t n = strlen(s), k = strlen(suffix);
    return n >= k && strcmp(s + n - k, suffix) == 0;
}

typedef struct Found {
    int64_t nan, inf;
    int64_t lo, hi; /* the places of the least and the greatest; -1: all are NaN */
} Found;

static bool is_less(DType t, const void *data, int64_t i, int64_t j)
{
    return dtype_is_float(t) ? dtype_value(t, data, i) < dtype_value(t, data, j)
                             : dtype_integer(t, data, i) < dtype_integer(t, data, j);
}

static Found scan_values(DType t, int64_t elems, const void *data)
{
    Found f = {.lo = -1, .hi = -1};
    for (int64_t i = 0; i < elems; i++) {
        double x = dtype_value(t, data, i);
        f.nan += isnan(x) != 0;
        f.inf += isinf(x) != 0;
        if (isnan(x))
            continue;
        f.lo = f.lo < 0 || is_less(t, data, i, f.lo) ? i : f.lo;
        f.hi = f.hi < 0 || is_less(t, data, f.hi, i) ? i : f.hi;
    }
    return f;
}

static void add_tensor(Text *t, bool json, const char *name, int32_t dtype, int32_t rank,
                       const int64_t *shape, int64_t elems, const void *data)
{
    Found f = scan_values((DType)dtype, elems, data);
    text_add(t, json ? "{\"name\": \"" : "");
    if (json)
        text_json(t, name);
    else
        text_add(t, "%-40s ", name);
    text_add(t, json ? "\", \"dtype\": \"%s\", \"shape\": [" : "%s[", gradc_dtype_name(dtype));
    for (int32_t i = 0; i < rank; i++)
        text_add(t, "%s%lld", i > 0 ? "," : "", (long long)shape[i]);
    if (json) {
        text_add(t, "], \"nan\": %lld, \"inf\": %lld}", (long long)f.nan, (long long)f.inf);
        return;
    }
    text_add(t, "]");
    if (f.lo >= 0) {
        text_add(t, "  ");
        add_element(t, (DType)dtype, data, f.lo);
        text_add(t, " .. ");
        add_element(t, (DType)dtype, data, f.hi);
    }
    if (f.nan + f.inf > 0)
        text_add(t, "  %lld NaN, %lld infinite", (long long)f.nan, (long long)f.inf);
    text_add(t, "\n");
}

static int file_failed(const gradc_error *e)
{
    say("%s", e->text);
    return EXIT_FILE;
}

static int inspect_tensors(Cli *c, const char *path, Text *t)
{
    gradc_tensors *file;
    gradc_error e = {0};
    if (gradc_tensors_read(path, &file, &e) != GRADC_OK)
        return file_failed(&e);
    bool json = c->cx->json;
    text_add(t, json ? "{\"metadata\": {" : "");
    for (int64_t i = 0; i < gradc_tensors_pairs(file); i++) {
        const gradc_pair *p = gradc_tensors_pair(file, i);
        if (json) {
            text_add(t, "%s\"", i > 0 ? ", " : "");
            text_json(t, p->key);
            text_add(t, "\": \"");
            text_json(t, p->value);
            text_add(t, "\"");
        } else {
            text_add(t, "# %s = %s\n", p->key, p->value);
        }
    }
    text_add(t, json ? "}, \"tensors\": [" : "");
    for (int64_t i = 0; i < gradc_tensors_count(file); i++) {
        const gradc_named *n = gradc_tensors_at(file, i);
        if (json && i > 0)
            text_add(t, ", ");
        add_tensor(t, json, n->name, n->dtype, n->rank, n->shape, n->elems, n->data);
    }
    text_add(t, json ? "]}\n" : "");
    gradc_tensors_free(file);
    return EXIT_OK;
}

static int inspect_array(Cli *c, const char *path, Text *t)
{
    gradc_array a = {0};
    gradc_error e = {0};
    if (gradc_array_read(path, &a, &e) != GRADC_OK)
        return file_failed(&e);
    add_tensor(t, c->cx->json, path, a.dtype, a.rank, a.shape, a.elems, a.data);
    if (c->cx->json)
        text_add(t, "\n");
    gradc_array_free(&a);
    return EXIT_OK;
}

/* Weights and checkpoints of any name: a length of 8 bytes, then a JSON object. */
static bool looks_like_tensors(const char *path)
{
    unsigned char head[9];
    FILE *f = fopen(path, "rb");
    if (f == NULL)
        return false;
    bool whole = fread(head, 1, sizeof head, f) == sizeof head;
    fclose(f);
    return whole && head[8] == '{' && head[5] == 0 && head[6] == 0 && head[7] == 0;
}

int command_inspect(Cli *c)
{
    const char *path = c->operand.at[0];
    Text t;
    text_init(&t, &c->cx->perm);
    bool tensors = ends_with(path, ".safetensors") || looks_like_tensors(path);
    int status = tensors ? inspect_tensors(c, path, &t) : inspect_array(c, path, &t);
    if (status == EXIT_OK)
        fputs(t.at, stdout);
    return status;
}

/* ---- doctor ---------------------------------------------------------------------- */

const char *cpu_model(Arena *a)
{
    FILE *f = fopen("/proc/cpuinfo", "r");
    char line[512];
    const char *name = "unknown";
    while (f != NULL && fgets(line, sizeof line, f) != NULL)
        if (strncmp(line, "model name", 10) == 0 && strchr(line, ':') != NULL) {
            char *p = strchr(line, ':') + 1;
            p += strspn(p, " ");
            p[strcspn(p, "\n")] = 0;
            name = arena_strdup(a, p);
            break;
        }
    if (f != NULL)
        fclose(f);
    return name;
}

/* What the target cuda needs to make more than text. */
static void print_nvrtc(const Cli *c, Arena *a)
{
    Nvrtc n;
    NvrtcMissing no;
    Text t;
    bool is = nvrtc_open(&n, a, &no);
    text_init(&t, a);
    text_pair(&t, is ? "library" : "missing", is ? n.name : no.text);
    if (!c->cx->json && is)
        printf("NVRTC     %s, for sm %s, in %s\n", nvrtc_version(&n, a), nvrtc_archs(&n, a),
               n.name);
    else if (!c->cx->json)
        printf("NVRTC     none: %s\n", no.text);
    else if (!is)
        printf(", \"nvrtc\": {%s}", t.at);
    else {
        printf(", \"nvrtc\": {\"version\": \"%s\", %s, \"archs\": [", nvrtc_version(&n, a), t.at);
        for (int i = 0; i < n.n_archs; i++)
            printf("%s%d", i > 0 ? ", " : "", n.arch[i]);
        printf("]}");
    }
    if (is)
        nvrtc_close(&n);
}

static void print_gpu(const Cli *c, const gradc_cuda_device *d)
{
    Text t;
    text_init(&t, &c->cx->scratch);
    if (c->cx->json)
        text_json(&t, d->name);
    printf(c->cx->json
               ? "%s{\"device\": %d, \"name\": \"%s\", \"arch\": %d, \"memory_bytes\": %lld}"
               : "%sGPU %d     %s, sm_%d, %lld bytes\n",
           c->cx->json && d->device > 0 ? ", " : "", d->device, c->cx->json ? t.at : d->name,
           d->arch, (long long)d->memory_bytes);
}

/* The driver and its devices, or why there are none. */
static void print_gpus(const Cli *c)
{
    gradc_cuda *gpu;
    gradc_error e = {0};
    gradc_cuda_device d = {.devices = 1};
    for (int32_t i = 0; i < d.devices; i++) {
        gradc_cuda_options o = {.struct_size = sizeof o, .device = i};
        if (gradc_cuda_open(&o, &gpu, &e) != GRADC_OK) {
            printf(c->cx->json ? "%s" : "CUDA      none: %s\n",
                   c->cx->json ? (i == 0 ? "\"cuda\": null" : "]}") : e.text);
            return;
        }
        gradc_cuda_about(gpu, &d);
        gradc_cuda_close(gpu);
        if (i == 0)
            printf(c->cx->json ? "\"cuda\": {\"driver\": \"%d.%d\", \"devices\": ["
                               : "CUDA      a driver for CUDA %d.%d\n",
                   d.driver / 1000, d.driver % 1000 / 10);
        print_gpu(c, &d);
    }
    if (c->cx->json)
        printf("]}");
}

int command_doctor(Cli *c)
{
    if (cli_has(c, OPT_CALIBRATE))
        return doctor_calibrate(c);
    if (cli_has(c, OPT_OUT))
        return usage_error(c, "--output goes with --calibrate");
    Arena a = {0};
    int n = usable_cores();
    TargetOptions o = {.target = "cpu", .cpu = "native", .threads_max = 8};
    const Caps *caps = target_cpu.caps(c->cx, &o, &a);
    const char *llvm = cpu_llvm_version(&a), *cpu = cpu_host_name(&a);
    long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGE_SIZE);
    const char *form = c->cx->json ? "{\"gradc\": \"%s\", \"abi\": %d, \"llvm\": \"%s\", "
                                     "\"cpu\": \"%s\", \"target\": \"%s\", \"cores\": %d, "
                                     "\"memory_bytes\": %lld, "
                                   : "gradc     %s, ABI %d\nLLVM      %s\nprocessor %s\n"
                                     "target    cpu:%s\ncores     %d usable\n"
                                     "memory    %lld bytes\n";
    printf(form, GRADC_VERSION, GRADC_ABI, llvm, cpu_model(&a), cpu, n,
           (long long)pages * (long long)size);
    print_gpus(c);
    print_nvrtc(c, &a);
    print_cache(c);
    if (c->cx->json)
        printf("}\n");
    arena_free(&a);
    return finish(c, caps != NULL);
}

/* ---- fmt ------------------------------------------------------------------------- */

int command_fmt(Cli *c)
{
    int32_t source;
    int status = read_source(c, c->operand.at[0], &source);
    if (status != EXIT_OK)
        return status;
    Ast *ast = parse(c->cx, source);
    status = finish(c, ast != NULL);
    if (status != EXIT_OK)
        return status;
    Text t;
    text_init(&t, &c->cx->perm);
    ast_format(c->cx, &t, ast);
    bool same = strcmp(t.at, c->cx->source.at[source]->text) == 0;
    if (cli_has(c, OPT_CHECK)) {
        if (!same)
            say("%s: the layout is not canonical; `gradc fmt %s -o %s` makes it so",
                c->operand.at[0], c->operand.at[0], c->operand.at[0]);
        return same ? EXIT_OK : EXIT_INPUT;
    }
    Files *f = files_open(&c->cx->perm);
    files_add(f, cli_value(c, OPT_OUT, "-"), t.at, t.n);
    return files_commit(f);
}
