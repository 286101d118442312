/* The object and its header. */
#include <string.h>
#include "../../../runtime/cuda_abi.h"
#include "object.h"

static uint64_t magic_of(const Program *p)
{
    uint64_t hash = hash_bytes(HASH_START, p->hash, strlen(p->hash));
    return hash_mix(hash_bytes(hash, p->name, strlen(p->name)) + 1) | 1;
}

/* "cuda:sm_80,sm_90,compute_120" */
static const char *about(const CudaImages *m, Arena *arena)
{
    Text t;
    text_init(&t, arena);
    text_add(&t, "cuda:");
    for (int i = 0; i < m->n && m->items[i].program == m->items[0].program; i++)
        text_add(&t, "%s%s_%d", i > 0 ? "," : "", m->items[i].kind == IMAGE_PTX ? "compute" : "sm",
                 m->items[i].arch);
    return t.at;
}

/* ---- the header -------------------------------------------------------------------------------
 */

static const char usage[] =
    "/* This model computes on an NVIDIA GPU. The driver is found when gradc_cuda_open() of "
    "libgradc\n"
    " * looks for it; nothing is linked against CUDA.\n"
    " *\n"
    " *     gradc_cuda *gpu;   // <gradc.h>, libgradc\n"
    " *     gradc_options o = {.struct_size = sizeof o, .abi = GRADC_ABI, .seed = 1};\n"
    " *     if (gradc_cuda_open(NULL, &gpu, &error) != GRADC_OK) ... error.text\n"
    " *     gradc_cuda_use(gpu, &o);\n"
    " *     $ *g;\n"
    " *     if ($_init(block, sizeof block, &o, &g) != GRADC_OK) ... $_error(($ *)block)\n"
    " *     while (more)\n"
    " *         $_step(g, &inputs, NULL);   // queued; inputs are copied before it returns\n"
    " *     $_wait(g, &loss);               // of the last step\n"
    " *     $_close(g);\n"
    " *     gradc_cuda_close(gpu);\n"
    " *\n"
    " * Inputs and outputs may lie on the device: they are then copied there. Integers with a "
    "range\n"
    " * that lie there are copied to the host and back, as they are checked; `eval` and calls "
    "that\n"
    " * want results wait for them. After GRADC_DEVICE a handle can only be closed. */\n";

static const char functions[] =
    "/* Waits for all calls so far; *loss, if it is not NULL, is that of the last step or grad. "
    "What\n"
    " * those that nobody waited for would have returned comes from here. */\n"
    "int $_wait($ *g, @ *loss);\n"
    "/* Gives back what the device has, whatever happened before. The block can be used again. */\n"
    "int $_close($ *g);\n";

static const char *loss_type(const Program *p)
{
    int32_t loss = fact_loss(p);
    return loss < 0 ? "void" : name_c_type(p->buffer.at[p->result.at[loss].buffer].dtype);
}

static const char *fill_in(const Object *o, const char *from)
{
    Text t;
    text_init(&t, o->arena);
    for (const char *c = from; *c != 0; c++) {
        const char *word = *c == '$' ? o->name : *c == '@' ? loss_type(o->p) : NULL;
        if (word != NULL)
            text_put(&t, word, strlen(word));
        else
            text_char(&t, *c);
    }
    return t.at;
}

static const char *header_of(const Object *o, const TargetOptions *options)
{
    const char *upper = name_upper(o->arena, o->name);
    HeaderWords w = {.name = o->name,
                     .block = HANDLE_BYTES,
                     .what = "of the block on the host, for the handle alone",
                     .usage = fill_in(o, usage),
                     .functions = fill_in(o, functions),
                     .extra = options->header_extra};
    const char *suffix = o->behind.device_bytes > UINT32_MAX ? "ull" : "u";
    w.more = arena_printf(
        o->arena,
        "#define %s_DEVICE_BYTES %lld%s /* all that init allocates on the device */\n"
        "#define %s_PLANNED_BYTES %lld%s /* of these, what --budget limits: parameters, state, "
        "activations */\n"
        "#define %s_CUDA \"%s\" /* what the object has code for */\n",
        upper, (long long)o->behind.device_bytes, suffix, upper, (long long)o->p->arena_bytes,
        suffix, upper, o->about);
    return header_text(o->p, &w, o->arena);
}

bool cu_object(Ctx *cx, const Program *p, const TargetOptions *options, Arena *arena,
               const CudaImages *images, ObjectFile *out)
{
    Object o = {.cx = cx, .p = p, .images = images, .arena = arena, .magic = magic_of(p)};
    const char *name = options->prefix != NULL ? options->prefix : p->name;
    o.name = name_identifier(arena, name);
    o.about = about(images, arena);
    o.behind = cu_place_behind(p, images->guarded, arena);
    text_init(&o.to, arena);
    text_init(&o.strings, arena);
    cu_tables(&o);
    cu_functions(&o);
    text_put(&o.to, o.strings.at, o.strings.n);
    out->header = header_of(&o, options);
    out->device_bytes = o.behind.device_bytes;
    out->launched = o.launched;
    return cpu_host_object(cx, o.name, o.to.at, options, arena, out);
}
