/* Squares of lanes, transposed in registers. */
#include "ir.h"

/* One stage: lanes with bit `s` clear of x[i] and x[i+s] meet. */
static void exchange(Ir *ir, Lv *x, int n, int s)
{
    int lo[64], hi[64];
    for (int l = 0; l < n; l++) {
        lo[l] = (l & s) == 0 ? l : n + l - s;
        hi[l] = (l & s) == 0 ? l + s : n + l;
    }
    for (int i = 0; i < n; i++) {
        if ((i & s) != 0)
            continue;
        Lv a = x[i], b = x[i + s];
        x[i] = ir_shuffle(ir, a, b, lo, n);
        x[i + s] = ir_shuffle(ir, a, b, hi, n);
    }
}

/* The stages for neighbours are unpacks on every machine. */
void ir_transpose(Ir *ir, Lv *x, int n)
{
    if (n >= 4) { /* 4 x 4 blocks: unpack pairs, then their halves */
        int lo[64], hi[64];
        for (int l = 0; l < n; l++) {
            int block = l / 4 * 4, at = l % 4;
            lo[l] = block + at / 2 + (at % 2) * n;
            hi[l] = block + 2 + at / 2 + (at % 2) * n;
        }
        for (int i = 0; i < n; i += 2) {
            Lv a = x[i], b = x[i + 1];
            x[i] = ir_shuffle(ir, a, b, lo, n);     /* a0 b0 a1 b1 */
            x[i + 1] = ir_shuffle(ir, a, b, hi, n); /* a2 b2 a3 b3 */
        }
        for (int l = 0; l < n; l++) {
            int block = l / 4 * 4, at = l % 4;
            lo[l] = at < 2 ? block + at : n + block + at - 2;
            hi[l] = at < 2 ? block + 2 + at : n + block + at;
        }
        for (int i = 0; i < n; i += 4) {
            Lv a = x[i], b = x[i + 1], d = x[i + 2], e = x[i + 3];
            x[i] = ir_shuffle(ir, a, d, lo, n);
            x[i + 1] = ir_shuffle(ir, a, d, hi, n);
            x[i + 2] = ir_shuffle(ir, b, e, lo, n);
            x[i + 3] = ir_shuffle(ir, b, e, hi, n);
        }
        for (int s = 4; s < n; s *= 2)
            exchange(ir, x, n, s);
        return;
    }
    for (int s = 1; s < n; s *= 2)
        exchange(ir, x, n, s);
}
