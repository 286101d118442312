/* EXPONENT, FRACTION and SCALE by VGETEXPPS, VGETMANTPS and VSCALEFPS of AVX-512, which also see to
 * zeros, denormals, infinities and NaN as these are defined: Intel SDM volume 2C. */
#include "gen.h"

enum { MOST_LANES = 64 }; /* as of ir_shuffle */

/* Of 4, 8 or 16 lanes. */
static Lv of_register(Gen *g, KOp op, Lv x, Lv y)
{
    enum { NAN_BELOW_ZERO = 12 /* of a fraction from 1 to 2 */, ROUNDED_AS_ALWAYS = 4 };
    Ir *ir = g->ir;
    int lanes = lanes_of(x), n = 0;
    bool is_whole = lanes == 16;
    Lv arg[6];
    arg[n++] = x;
    if (y != NULL)
        arg[n++] = y;
    if (op == KI_FRACTION)
        arg[n++] = ir_int32(ir, NAN_BELOW_ZERO);
    arg[n++] = LLVMGetPoison(LLVMTypeOf(x)); /* of lanes that a mask leaves out */
    arg[n++] = LLVMConstAllOnes(is_whole ? LLVMInt16TypeInContext(ir->c) : ir->i8);
    if (is_whole)
        arg[n++] = ir_int32(ir, ROUNDED_AS_ALWAYS);
    const char *what = op == KI_EXPONENT ? "getexp" : op == KI_FRACTION ? "getmant" : "scalef";
    const char *name = arena_printf(ir->arena, "llvm.x86.avx512.mask.%s.ps.%d", what, 32 * lanes);
    return ir_intrinsic(ir, name, NULL, 0, arg, n);
}

static Lv some_lanes(Gen *g, Lv x, int from, int n)
{
    int lane[MOST_LANES], has = lanes_of(x);
    for (int i = 0; i < n; i++)
        lane[i] = from + i < has ? from + i : -1;
    return ir_shuffle(g->ir, x, x, lane, n);
}

static Lv part(Gen *g, KOp op, Lv x, Lv y, int from, int n)
{
    Lv some = some_lanes(g, x, from, n);
    return gen_exponent(g, op, some, y != NULL ? some_lanes(g, y, from, n) : NULL);
}

/* In the first lane. */
static Lv alone(Gen *g, Lv x)
{
    Ir *ir = g->ir;
    return LLVMBuildInsertElement(ir->b, LLVMGetPoison(ir_vec(ir->f32, 4)), x, ir_int32(ir, 0), "");
}

Lv gen_exponent(Gen *g, KOp op, Lv x, Lv y)
{
    Ir *ir = g->ir;
    int n = lanes_of(x);
    if (n == 1) {
        Lv z = of_register(g, op, alone(g, x), y != NULL ? alone(g, y) : NULL);
        return LLVMBuildExtractElement(ir->b, z, ir_int32(ir, 0), "");
    }
    if (n < 4)
        return some_lanes(g, part(g, op, x, y, 0, 4), 0, n);
    if (n <= 16)
        return of_register(g, op, x, y);
    Lv low = part(g, op, x, y, 0, n / 2), high = part(g, op, x, y, n / 2, n / 2);
    int lane[MOST_LANES];
    for (int i = 0; i < n; i++)
        lane[i] = i;
    return ir_shuffle(ir, low, high, lane, n);
}
