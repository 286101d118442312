/* exp, log, ... and random as functions: what kernel_expand() makes of a kernel that loads their
 * arguments and stores the result. */
#include "cuda.h"

static const char *const argument[] = {"x", "y", "z"};

/* y = op(x[0], ...): buffers 0 to n - 1 are the arguments. */
static Kernel *wrapped(Arena *arena, KOp op, DType t)
{
    int n = kop_args(op);
    DType of = op == KI_RANDOM ? I64 : t;
    Kernel *k = kernel_new(arena, K_LOOP, kop_text(op));
    Val x[3] = {0, 0, 0};
    for (int i = 0; i < n; i++) {
        int buf = k_buf(k, of, 1, K_IN);
        x[i] = k_load(k, buf, k_aff(0));
    }
    int out = k_buf(k, t, 1, K_OUT);
    Val y = n == 3   ? k_random(k, x[0], x[1], x[2])
            : n == 2 ? k_binary(k, op, x[0], x[1])
                     : k_unary(k, op, x[0]);
    k_store(k, out, k_aff(0), y);
    k_finish(k);
    return kernel_expand(arena, k, false);
}

static void print_body(Math *m, const Kernel *k)
{
    Printer p = cu_printer(&m->text, m->arena, k, m);
    p.depth = 1;
    for (Val v = 1; v < (Val)k->inst.n; v++) {
        const KInst *i = &k->inst.at[v];
        if (i->op == KI_LOAD)
            p.name[v] = argument[k->access.at[i->aux].buf];
        else if (i->op == KI_STORE)
            cu_line(&p, "return %s;", cu_operand(&p, i->a));
        else if (i->op != KI_CONST)
            cu_line(&p, "const %s %s = %s;", cu_type((DType)i->dtype), p.name[v],
                    cu_expression(&p, v));
    }
}

const char *cu_math(Math *m, KOp op, DType t)
{
    const char *name = op == KI_RANDOM
                           ? "random_bits"
                           : arena_printf(m->arena, "%s_%s", kop_text(op), dtype_name(t));
    if (m->has[op][t == F64])
        return name;
    m->has[op][t == F64] = true;
    const char *of = cu_type(op == KI_RANDOM ? I64 : t);
    text_add(&m->text, "DEVICE %s %s(", cu_type(t), name);
    for (int i = 0; i < kop_args(op); i++)
        text_add(&m->text, "%s%s %s", i > 0 ? ", " : "", of, argument[i]);
    text_add(&m->text, ")\n{\n");
    print_body(m, wrapped(m->arena, op, t));
    text_add(&m->text, "}\n\n");
    return name;
}
