/* RANDOM as integer instructions: philox4x32-10, word 0 (see interp_alu.c). */
#include "expand.h"

typedef struct Word2 {
    Val low, high;
} Word2;

static Word2 halves(Kernel *k, Val x)
{
    Val c = k_const_int(k, I64, 32);
    Val up = k_binary(k, KI_SHR, x, c);
    Word2 w = {.low = k_cast(k, I32, x)};
    w.high = k_cast(k, I32, up);
    return w;
}

static Val xor3(Kernel *k, Val x, Val y, Val z)
{
    Val xy = k_binary(k, KI_XOR, x, y);
    return k_binary(k, KI_XOR, xy, z);
}

Val expand_random(Kernel *k, Val key, Val lo, Val hi)
{
    Word2 key2 = halves(k, key), c01 = halves(k, lo), c23 = halves(k, hi);
    Val m0 = k_const_int(k, I32, 0xD2511F53), m1 = k_const_int(k, I32, 0xCD9E8D57);
    Val w0 = k_const_int(k, I32, 0x9E3779B9), w1 = k_const_int(k, I32, 0xBB67AE85);
    for (int round = 0; round < 10; round++) {
        Val p_high = k_binary(k, KI_MULHI, c01.low, m0), p_low = k_binary(k, KI_MUL, c01.low, m0);
        Val q_high = k_binary(k, KI_MULHI, c23.low, m1), q_low = k_binary(k, KI_MUL, c23.low, m1);
        c01.low = xor3(k, q_high, c01.high, key2.low);
        c23.low = xor3(k, p_high, c23.high, key2.high);
        c01.high = q_low;
        c23.high = p_low;
        key2.low = k_binary(k, KI_ADD, key2.low, w0);
        key2.high = k_binary(k, KI_ADD, key2.high, w1);
    }
    return c01.low;
}
