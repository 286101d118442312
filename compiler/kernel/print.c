/* Kernels as text that read.c reads back:
 *
 *   loop row_sum {
 *     b0: in f32[6144]
 *     b1: out f32[8]
 *     par i < 8 {
 *       %2: f32 = acc add
 *       red j < 768 {
 *         %4: f32 = load b0[768*i + j] if 0 <= i + j < 700 else 0
 *         into %2, %4
 *       }
 *       %7: f32 = fold %2
 *       store b1[i], %7
 *     }
 *   }
 *
 * Loops and dims are named i, j, ... z, i1, j1, ... in the order of their
 * appearance, values by the instruction that makes them. */
#include "kernel.h"
#include "ktext.h"

static void print_dtype(Text *to, const KInst *i)
{
    text_add(to, "%s", dtype_name((DType)i->dtype));
}

static bool is_index(const Kernel *k, Val v)
{
    KOp op = (KOp)k->inst.at[v].op;
    return op == KI_PAR || op == KI_SEQ || op == KI_RED || op == KI_DIM;
}

/* A value as an operand: a loop or dim by its letter, others by number. */
static void print_val(Text *to, const Kernel *k, Val v)
{
    if (!is_index(k, v)) {
        text_add(to, "%%%u", v);
        return;
    }
    int order = 0;
    for (Val u = 1; u < v; u++)
        order += is_index(k, u);
    text_char(to, (char)('i' + order % KTEXT_LETTERS));
    if (order >= KTEXT_LETTERS)
        text_add(to, "%d", order / KTEXT_LETTERS);
}

static void print_affine(Text *to, const Kernel *k, const KAff *x)
{
    for (int i = 0; i < x->n; i++) {
        int64_t c = x->t[i].coef;
        if (i > 0)
            text_add(to, c < 0 ? " - " : " + ");
        else if (c < 0)
            text_char(to, '-');
        if (c != 1 && c != -1) /* the magnitude as unsigned: INT64_MIN has one too */
            text_add(to, "%llu*", c < 0 ? -(unsigned long long)c : (unsigned long long)c);
        print_val(to, k, x->t[i].v);
    }
    if (x->n == 0)
        text_add(to, "%lld", (long long)x->base);
    else if (x->base < 0)
        text_add(to, " - %llu", -(unsigned long long)x->base);
    else if (x->base > 0)
        text_add(to, " + %llu", (unsigned long long)x->base);
}

static void print_number(Text *to, DType t, double x)
{
    if (t == F64)
        text_double(to, x);
    else
        text_float(to, (float)x);
}

static void print_reach(Text *to, const KInst *i)
{
    if (i->reach != K_ALL)
        text_add(to, i->reach == K_ZERO ? ", zero from limit" : ", limit");
}

static void print_access(Text *to, const Kernel *k, const KAccess *a, bool load)
{
    text_add(to, " b%d[", a->buf);
    print_affine(to, k, &a->at);
    text_char(to, ']');
    for (int i = 0; i < a->n_bounds; i++) {
        const KBound *b = &a->bound[i];
        text_add(to, "%s%lld <= ", i == 0 ? " if " : ", ", (long long)b->lo);
        print_affine(to, k, &b->e);
        text_add(to, " < %lld", (long long)b->hi);
    }
    if (load && a->n_bounds > 0) {
        text_add(to, " else ");
        text_double(to, a->otherwise);
    }
}

static void print_operands(Text *to, const Kernel *k, const KInst *i)
{
    const Val operand[] = {i->a, i->b, i->c};
    for (int n = 0; n < kop_args((KOp)i->op); n++) {
        text_add(to, n == 0 ? " " : ", ");
        print_val(to, k, operand[n]);
    }
}

static void print_value(Text *to, const Kernel *k, Val v)
{
    const KInst *i = &k->inst.at[v];
    text_add(to, "%%%u: ", v);
    print_dtype(to, i);
    text_add(to, " = %s", kop_text((KOp)i->op));
    switch (i->op) {
    case KI_CONST:
        text_char(to, ' ');
        if (dtype_is_float((DType)i->dtype))
            print_number(to, (DType)i->dtype, i->imm.f);
        else
            text_add(to, "%lld", (long long)i->imm.i);
        break;
    case KI_INDEX:
        text_char(to, ' ');
        print_affine(to, k, &k->affine.at[i->aux]);
        break;
    case KI_LOAD:
        print_access(to, k, &k->access.at[i->aux], true);
        break;
    case KI_ACC:
        text_add(to, " %s", kop_text((KOp)i->aux));
        break;
    default:
        print_operands(to, k, i);
        break;
    }
}

const char *const krole_text[4] = {[K_B] = "b", [K_M] = "m", [K_N] = "n", [K_K] = "k"};

/* One instruction without indent and newline. */
static void print_inst(Text *to, const Kernel *k, Val v)
{
    const KInst *i = &k->inst.at[v];
    switch (i->op) {
    case KI_PAR:
    case KI_SEQ:
    case KI_RED:
        text_add(to, "%s ", kop_text((KOp)i->op));
        print_val(to, k, v);
        text_add(to, " < %lld", (long long)i->imm.i);
        print_reach(to, i);
        text_add(to, "%s {", i->aux != 0 ? " down" : "");
        break;
    case KI_DIM:
        text_add(to, "dim %s ", krole_text[i->aux]);
        print_val(to, k, v);
        text_add(to, " < %lld", (long long)i->imm.i);
        print_reach(to, i);
        break;
    case KI_END:
        text_char(to, '}');
        break;
    case KI_STORE:
        text_add(to, "store");
        print_access(to, k, &k->access.at[i->aux], false);
        text_add(to, ", %%%u", i->a);
        break;
    case KI_INTO:
    case KI_SET:
        text_add(to, "%s", kop_text((KOp)i->op));
        print_operands(to, k, i);
        break;
    default:
        print_value(to, k, v);
        break;
    }
}

static void indent(Text *to, int depth)
{
    text_add(to, "%*s", 2 * depth, "");
}

/* Instructions [from, to_val), the first at `depth`. */
static void print_range(Text *to, const Kernel *k, Val from, Val end, int depth)
{
    for (Val v = from; v < end; v++) {
        KOp op = (KOp)k->inst.at[v].op;
        depth -= op == KI_END;
        indent(to, depth);
        print_inst(to, k, v);
        text_char(to, '\n');
        depth += op == KI_PAR || op == KI_SEQ || op == KI_RED;
    }
}

static void print_section(Text *to, const Kernel *k, const char *name, Val from, Val end, Val gives)
{
    text_add(to, "  %s {\n", name);
    print_range(to, k, from, end, 2);
    if (gives != 0)
        text_add(to, "    give %%%u\n", gives);
    text_add(to, "  }\n");
}

const char *const kmode_text[4] = {
    [K_IN] = "in", [K_OUT] = "out", [K_INOUT] = "inout", [K_LOCAL] = "local"};

void kernel_print(const Kernel *k, Text *to)
{
    const KContract *c = &k->con;
    text_add(to, "%s %s {\n", k->kind == K_LOOP ? "loop" : "contract", k->name);
    for (int i = 0; i < k->buf.n; i++) {
        const KBuf *b = &k->buf.at[i];
        text_add(to, "  b%d: %s %s[%lld]\n", i, kmode_text[b->mode], dtype_name(b->dtype),
                 (long long)b->elems);
    }
    if (k->limit.is)
        text_add(to, "  limit b%d[%lld] + %lld mean %lld\n", k->limit.buf, (long long)k->limit.at,
                 (long long)k->limit.plus, (long long)k->limit.mean);
    if (k->kind == K_LOOP) {
        print_range(to, k, 1, (Val)k->inst.n, 1);
    } else {
        if (c->leaf > 0)
            text_add(to, "  leaf %lld\n", (long long)c->leaf);
        if (c->pairs)
            text_add(to, "  pairs\n");
        print_range(to, k, 1, c->a_from, 1);
        print_section(to, k, "a", c->a_from, c->a_to, c->a);
        print_section(to, k, "b", c->b_from, c->b_to, c->b);
        print_section(to, k, "epilogue", c->e_from, c->e_to, 0);
        if (c->all != 0)
            text_add(to, "  all b%d, %%%u\n", c->all_buf, c->all);
    }
    text_add(to, "}\n");
}
