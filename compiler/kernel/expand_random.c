/* RANDOM as integer instructions: philox4x32-10, word 0 (see interp_alu.c). A word is the low
 * half of an I64, and what is above it is anything: a product of two words is then one
 * instruction for both of its halves (x86: pmuludq), and words need no joining between rounds. */
#include "expand.h"

static Val xor3(Kernel *k, Val x, Val y, Val z)
{
    Val xy = k_binary(k, KI_XOR, x, y);
    return k_binary(k, KI_XOR, xy, z);
}

Val expand_random(Kernel *k, Val key, Val lo, Val hi)
{
    Val m0 = k_const_int(k, I64, 0xD2511F53), m1 = k_const_int(k, I64, 0xCD9E8D57);
    Val w0 = k_const_int(k, I64, 0x9E3779B9), w1 = k_const_int(k, I64, 0xBB67AE85);
    Val word = k_const_int(k, I64, 0xFFFFFFFF), up = k_const_int(k, I64, 32);
    Val key0 = key, key1 = k_binary(k, KI_SHR, key, up);
    Val c0 = lo, c1 = k_binary(k, KI_SHR, lo, up), c2 = hi, c3 = k_binary(k, KI_SHR, hi, up);
    for (int round = 0; round < 10; round++) {
        Val x0 = k_binary(k, KI_AND, c0, word), x2 = k_binary(k, KI_AND, c2, word);
        Val p = k_binary(k, KI_MUL, x0, m0), q = k_binary(k, KI_MUL, x2, m1);
        Val p_high = k_binary(k, KI_SHR, p, up), q_high = k_binary(k, KI_SHR, q, up);
        c0 = xor3(k, q_high, c1, key0);
        c2 = xor3(k, p_high, c3, key1);
        c1 = q;
        c3 = p;
        key0 = k_binary(k, KI_ADD, key0, w0);
        key1 = k_binary(k, KI_ADD, key1, w1);
    }
    return k_cast(k, I32, c0);
}
