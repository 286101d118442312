/* Contractions of every shape and form, likewise. */
#ifndef GRADC_TESTS_CPU_CONTRACTIONS_H
#define GRADC_TESTS_CPU_CONTRACTIONS_H

#include <check.h>
#include "cpu/fill.h"
#include "cpu/shapes.h"

static inline void keep_each(Kernels *s, int step)
{
    int n = 0;
    for (int i = 0; i < s->n; i += step)
        s->at[n++] = s->at[i];
    s->n = n;
}

/* Under GRADC_SHORT one of twelve: a sanitizer looks for what gradc does wrong with memory, which
 * these have in common; their bits are compared without one. */
static inline void keep_some(Kernels *s)
{
    keep_each(s, getenv("GRADC_SHORT") != NULL ? 12 : 1);
}

static const int64_t sweep_sizes[] = {1, 2, 3, 5, 7, 8, 15, 16, 17, 31, 33, 64, 100, 127};

static inline void add_sweep(Arena *arena, Kernels *s)
{
    uint64_t seed = 1;
    for (int form = 0; form < 32; form++)
        for (int i = 0; i < 6; i++) {
            int64_t m = sweep_sizes[draw(&seed) % 14], n = sweep_sizes[draw(&seed) % 14];
            int64_t kk = sweep_sizes[draw(&seed) % 14];
            int64_t leaf = i < 4 ? 0 : 1 + (int64_t)(draw(&seed) % 40);
            add_kernel(arena, s,
                       make_matmul(arena, i == 3 ? F64 : F32,
                                   &(Matmul){i == 2 ? 3 : 1, m, n, kk, form, leaf}));
        }
}

static inline void add_blocked(Arena *arena, Kernels *s)
{
    add_kernel(arena, s, make_matmul(arena, F32, &(Matmul){1, 200, 70, 1300, 0, 0}));
    add_kernel(arena, s,
               make_matmul(arena, F32, &(Matmul){1, 70, 200, 1300, TRANSPOSE_A | TRANSPOSE_B, 0}));
    add_kernel(arena, s, make_matmul(arena, F32, &(Matmul){1, 230, 50, 1300, EPILOGUE, 700}));
    add_kernel(arena, s,
               make_matmul(arena, F64, &(Matmul){1, 210, 33, 1300, PROLOGUE | TRANSPOSE_B, 600}));
    add_kernel(arena, s, make_matmul(arena, F32, &(Matmul){1, 64, 256, 784, TRANSPOSE_B, 0}));
    add_kernel(arena, s,
               make_matmul(arena, F32, &(Matmul){1, 256, 784, 64, TRANSPOSE_A | EPILOGUE, 0}));
    add_kernel(arena, s,
               make_matmul(arena, F32, &(Matmul){1, 64, 10, 256, TRANSPOSE_B | EPILOGUE, 0}));
    /* the last panel of columns has half of a tile's vectors: packed or not, in blocks of k */
    add_kernel(arena, s, make_matmul(arena, F32, &(Matmul){1, 256, 784, 64, TRANSPOSE_A, 0}));
    add_kernel(arena, s, make_matmul(arena, F32, &(Matmul){1, 90, 112, 100, TRANSPOSE_B, 0}));
    add_kernel(arena, s, make_matmul(arena, F32, &(Matmul){2, 530, 48, 1200, 0, 0}));
    /* nothing is packed, and a panel of columns is longer than the first cache */
    add_kernel(arena, s, make_matmul(arena, F32, &(Matmul){1, 64, 64, 1500, 0, 0}));
    add_kernel(arena, s, make_matmul(arena, F32, &(Matmul){2, 50, 64, 1500, 0, 1100}));
    add_kernel(arena, s, make_matmul(arena, F32, &(Matmul){1, 1, 500, 300, 0, 0}));
    add_kernel(arena, s, make_matmul(arena, F32, &(Matmul){1, 500, 1, 300, 0, 0}));
    add_kernel(arena, s, make_matmul(arena, F32, &(Matmul){1, 1, 500, 300, TRANSPOSE_B, 0}));
    add_kernel(arena, s, make_matmul(arena, F32, &(Matmul){2, 20, 30, 0, 0, 0}));
    add_kernel(arena, s, make_embedding_matmul(arena, 30, 40, 50));
}

/* Rows that are more than a quarter of a second cache, and columns that are less: a few rows meet
 * all columns before the next ones. */
static inline void add_many_rows(Arena *arena, Kernels *s)
{
    static const Matmul of[] = {
        {1, 700, 70, 300, TRANSPOSE_B | EPILOGUE, 0},
        {1, 700, 96, 300, EPILOGUE, 0},
        {1, 900, 90, 150, 0, 0},
        {2, 640, 80, 220, TRANSPOSE_B | PROLOGUE, 0},
        {1, 500, 500, 10, EPILOGUE, 0},
        {1, 260, 1030, 9, 0, 0},
        {1, 1500, 64, 96, TRANSPOSE_A, 0},
        {1, 1030, 37, 140, TRANSPOSE_C, 0},
    };
    for (size_t i = 0; i < sizeof of / sizeof *of; i++)
        add_kernel(arena, s, make_matmul(arena, F32, &of[i]));
    add_kernel(arena, s, make_matmul(arena, F64, &(Matmul){1, 350, 50, 200, TRANSPOSE_B, 0}));
}

/* Each of the products in each of the forms besides its own. */
static inline void add_forms(Arena *arena, Kernels *s, const Matmul *of, size_t n, const int *form,
                             size_t n_forms)
{
    for (size_t i = 0; i < n; i++)
        for (size_t f = 0; f < n_forms; f++) {
            Matmul x = of[i];
            x.form |= form[f];
            add_kernel(arena, s, make_matmul(arena, F32, &x));
        }
}

/* Products that say whether something is true of all sums: those that are stored where they are
 * summed, and others, in one block of k or several. */
static inline void add_telling(Arena *arena, Kernels *s)
{
    static const Matmul of[] = {
        {1, 61, 80, 40, TRANSPOSE_A, 0},
        {1, 61, 84, 40, TRANSPOSE_A, 0},
        {1, 130, 96, 300, 0, 0},
        {1, 530, 96, 1200, 0, 0},
        {3, 33, 70, 50, EPILOGUE, 0},
        {1, 40, 64, 700, 0, 100},
        {1, 700, 70, 300, TRANSPOSE_B, 0},
        {1, 90, 50, 20, TRANSPOSE_C, 0},
        {1, 1, 300, 40, 0, 0},
        {1, 20, 30, 0, 0, 0},
    };
    static const int forms[] = {TELLS_TRUE, TELLS_FALSE};
    add_forms(arena, s, of, sizeof of / sizeof *of, forms, 2);
    add_kernel(arena, s, make_matmul(arena, F64, &(Matmul){1, 50, 40, 30, TELLS_FALSE, 0}));
}

/* Products that are added to what is there, or of which there are some rows or columns: tiles that
 * are whole and others, in one block of k or several. */
static inline void add_adding(Arena *arena, Kernels *s)
{
    static const Matmul of[] = {
        {1, 131, 64, 64, TRANSPOSE_A, 0},
        {1, 61, 80, 40, TRANSPOSE_A, 0},
        {1, 61, 84, 40, 0, 0},
        {1, 530, 96, 1200, 0, 0},
        {1, 40, 64, 700, 0, 100},
        {1, 700, 70, 300, TRANSPOSE_B, 0},
        {1, 90, 50, 20, TRANSPOSE_C, 0},
        {1, 64, 500, 64, TRANSPOSE_B, 0},
        {1, 1, 300, 40, 0, 0},
        {1, 20, 30, 0, 0, 0},
    };
    static const int forms[] = {ADDS, LIMITED_M, LIMITED_N, ADDS | LIMITED_M, ADDS | LIMITED_N};
    add_forms(arena, s, of, sizeof of / sizeof *of, forms, sizeof forms / sizeof *forms);
    add_kernel(arena, s, make_matmul(arena, F32, &(Matmul){3, 33, 70, 50, ADDS, 0}));
    add_kernel(arena, s, make_matmul(arena, F64, &(Matmul){1, 131, 64, 64, TRANSPOSE_A | ADDS, 0}));
}

/* Products whose columns are stored apart, and whose rows' prologue is best paid once: tiles are
 * transposed before they are stored, in one block of k or several, up to the edges. */
static inline void add_turned(Arena *arena, Kernels *s)
{
    static const Matmul of[] = {
        {1, 128, 512, 300, TRANSPOSE_A | PROLOGUE | TRANSPOSE_C, 0},
        {1, 67, 515, 130, TRANSPOSE_A | PROLOGUE | TRANSPOSE_C, 0},
        {1, 50, 260, 1300, TRANSPOSE_A | PROLOGUE | TRANSPOSE_C, 0},
        {1, 33, 300, 200, TRANSPOSE_A | PROLOGUE | TRANSPOSE_C, 60},
        {2, 40, 290, 90, TRANSPOSE_A | PROLOGUE | TRANSPOSE_C, 0},
    };
    static const int forms[] = {EPILOGUE, TELLS_FALSE, LIMITED_N};
    add_forms(arena, s, of, sizeof of / sizeof *of, forms, sizeof forms / sizeof *forms);
    Matmul wide = {1, 50, 270, 140, TRANSPOSE_A | PROLOGUE | TRANSPOSE_C, 0};
    add_kernel(arena, s, make_matmul(arena, F64, &wide));
}

/* Products with long epilogues: lines of a tile two at a time, an odd one, and less than a group of
 * columns at the end. */
static inline void add_long(Arena *arena, Kernels *s)
{
    static const Matmul of[] = {
        {1, 61, 80, 40, TRANSPOSE_A, 0}, {1, 1, 64, 30, 0, 0},
        {1, 130, 96, 300, PROLOGUE, 0},  {1, 530, 96, 1200, 0, 0},
        {3, 33, 70, 50, TRANSPOSE_B, 0}, {1, 40, 64, 700, 0, 100},
        {1, 90, 50, 20, TRANSPOSE_C, 0}, {1, 67, 515, 130, TRANSPOSE_A | PROLOGUE | TRANSPOSE_C, 0},
    };
    static const int forms[] = {
        LONG, LONG | EPILOGUE, LONG | ADDS, LONG | TELLS_TRUE, LONG | LIMITED_M, LONG | LIMITED_N};
    add_forms(arena, s, of, sizeof of / sizeof *of, forms, sizeof forms / sizeof *forms);
    add_kernel(arena, s, make_matmul(arena, F64, &(Matmul){1, 51, 40, 30, LONG | EPILOGUE, 0}));
}

/* Sums of several blocks of k that rest where the epilogue stores what it makes of them: tiles that
 * are whole and others; not where it reads what may lie there, or stores it apart. */
static inline void add_finishing(Arena *arena, Kernels *s)
{
    static const Matmul of[] = {
        {1, 530, 160, 520, 0, 0},
        {1, 521, 150, 601, TRANSPOSE_B, 0},
        {1, 140, 530, 540, TRANSPOSE_C | PROLOGUE, 0},
        {1, 531, 37, 550, TRANSPOSE_A, 0},
    };
    static const int forms[] = {LONG, LONG | TELLS_FALSE, LONG | STORES_SUM, LONG | ADDS};
    add_kernel(arena, s, make_matmul(arena, F32, &(Matmul){2, 515, 48, 540, LONG, 0}));
    add_forms(arena, s, of, sizeof of / sizeof *of, forms, sizeof forms / sizeof *forms);
    add_kernel(arena, s, make_matmul(arena, F64, &(Matmul){1, 530, 32, 700, LONG, 0}));
}

/* Operands larger than half of a second cache, whichever way they lie: tiles ask for what is packed
 * next, in one block of k or several, up to the edges. */
static inline void add_streams(Arena *arena, Kernels *s)
{
    static const int forms[] = {0, TRANSPOSE_A, TRANSPOSE_B, TRANSPOSE_A | TRANSPOSE_B | EPILOGUE};
    for (int i = 0; i < 4; i++) {
        add_kernel(
            arena, s,
            make_matmul(arena, F32, &(Matmul){1, 1100, 330, 260, forms[i], i == 2 ? 100 : 0}));
        add_kernel(arena, s, make_matmul(arena, F32, &(Matmul){1, 90, 1030, 600, forms[i], 0}));
    }
    for (int64_t rows = 14; rows < 60; rows += 15) /* panels of one tile, two, ... */
        for (int i = 0; i < 4; i++)
            add_kernel(arena, s,
                       make_matmul(arena, F32, &(Matmul){1, rows, 1500, 450, forms[i], 0}));
    add_kernel(arena, s, make_matmul(arena, F64, &(Matmul){1, 610, 250, 250, 0, 0}));
    add_kernel(arena, s,
               make_matmul(arena, F64, &(Matmul){2, 610, 250, 250, TRANSPOSE_A | TRANSPOSE_B, 0}));
}

/* Several blocks of rows, for which columns are packed once: in one block of k or several, of
 * leaves, up to the edges. Where the second cache is large tiles ask for the next block of rows. */
static inline void add_once(Arena *arena, Kernels *s)
{
    static const Matmul of[] = {
        {1, 700, 192, 260, TRANSPOSE_A | LONG_B, 0},
        {1, 900, 160, 260, TRANSPOSE_A | LONG_B | EPILOGUE, 200},
        {1, 900, 160, 301, TRANSPOSE_A | LONG_B | TELLS_FALSE, 200},
        {1, 1400, 96, 521, LONG_B, 0},
        {1, 901, 150, 260, TRANSPOSE_A | LONG_B, 0},
    };
    for (size_t i = 0; i < sizeof of / sizeof *of; i++)
        add_kernel(arena, s, make_matmul(arena, F32, &of[i]));
    add_kernel(arena, s,
               make_matmul(arena, F64, &(Matmul){1, 900, 64, 300, TRANSPOSE_A | LONG_B, 0}));
}

static inline void add_convolutions(Arena *arena, Kernels *s)
{
    static const Conv conv[] = {
        {2, 3, 8, 12, 3, 1, 0, 1}, {3, 4, 7, 9, 3, 1, 1, 1},  {2, 5, 6, 11, 3, 2, 1, 1},
        {1, 2, 5, 15, 5, 1, 2, 2}, {2, 3, 4, 20, 3, 1, 0, 1}, {5, 2, 3, 6, 1, 1, 0, 1},
        {2, 6, 33, 7, 3, 1, 1, 1}, {1, 1, 8, 28, 3, 1, 0, 1}, {3, 17, 16, 5, 3, 2, 1, 1},
    };
    for (int i = 0; i < 9; i++) {
        add_kernel(arena, s, make_conv_forward(arena, &conv[i], false));
        add_kernel(arena, s, make_conv_forward(arena, &conv[i], true));
        add_kernel(arena, s, make_conv_chain(arena, &conv[i]));
        if (conv[i].stride == 1)
            add_kernel(arena, s, make_conv_data(arena, &conv[i]));
        add_kernel(arena, s, make_conv_weight(arena, &conv[i], 0));
        add_kernel(arena, s, make_conv_weight(arena, &conv[i], 50));
    }
}

/* Windows that slide over lines alone. */
static inline void add_lines(Arena *arena, Kernels *s)
{
    static const int64_t size[] = {1, 2, 5, 7, 8, 13, 16, 17, 29, 33};
    for (int i = 0; i < 10; i++) {
        Conv c = {2 + i % 3, i % 4 == 3 ? 90 : 3, i % 3 == 2 ? 40 : 6, size[i], -2 - i % 3, 1, 1,
                  1 + i % 2};
        if (conv_out(&c) < 1)
            continue;
        add_kernel(arena, s, make_conv_forward(arena, &c, i % 2 == 1));
        add_kernel(arena, s, make_conv_chain(arena, &c));
        add_kernel(arena, s, make_conv_data(arena, &c));
        c.stride = 2;
        add_kernel(arena, s, make_conv_forward(arena, &c, false));
    }
}

/* Rows of a window that are staged again and again, blocks of k, pictures cut by leaves. */
static inline void add_staged(Arena *arena, Kernels *s)
{
    static const Conv conv[] = {
        {2, 70, 5, 14, 3, 1, 1, 1}, {1, 40, 4, 60, 3, 1, 1, 1}, {9, 3, 5, 17, 3, 2, 1, 1},
        {7, 20, 9, 10, 5, 1, 0, 1}, {2, 60, 7, 19, 3, 2, 1, 1}, {3, 8, 6, 24, 3, 1, 2, 2},
        {2, 3, 9, 30, 7, 2, 3, 2},
    };
    for (int i = 0; i < 7; i++) {
        add_kernel(arena, s, make_conv_forward(arena, &conv[i], i % 2 == 0));
        add_kernel(arena, s, make_conv_chain(arena, &conv[i]));
        if (conv[i].stride == 1)
            add_kernel(arena, s, make_conv_data(arena, &conv[i]));
        add_kernel(arena, s, make_conv_weight(arena, &conv[i], 0));
        add_kernel(arena, s, make_conv_weight(arena, &conv[i], 160));
    }
}

/* Lines a little shorter than some vectors, or as long: few output channels, so that columns are
 * read where they are staged; of these, windows with steps, dilated ones, and k in blocks. */
static inline void add_direct(Arena *arena, Kernels *s)
{
    static const int64_t size[] = {7, 8, 13, 14, 15, 16, 28, 29, 30, 31, 32, 47};
    for (int i = 0; i < 12; i++) {
        Conv c = {2 + i % 3, i % 4 == 3 ? 90 : 3, 4 + i % 5, size[i], 3 + i % 2 * 2, 1, 1,
                  1 + i % 2};
        add_kernel(arena, s, make_conv_forward(arena, &c, i % 2 == 1));
        add_kernel(arena, s, make_conv_data(arena, &c));
        add_kernel(arena, s, make_conv_chain(arena, &c));
        Conv half = {2, 5, 4, 2 * size[i] + i % 2, 3, 2, 1, 1};
        add_kernel(arena, s, make_conv_forward(arena, &half, false));
    }
}

/* More images than a second cache has: tiles ask for those of the next block of k, or for the lines
 * that are staged next. */
static inline void add_next(Arena *arena, Kernels *s)
{
    static const Conv conv[] = {{9, 16, 16, 32, 3, 1, 1, 1},
                                {18, 34, 32, 16, 3, 1, 1, 1},
                                {14, 15, 19, 30, 3, 1, 0, 1},
                                {10, 8, 32, 45, 3, 2, 1, 1}};
    static const int64_t leaf[] = {1024, 512, 784, 0};
    for (int i = 0; i < 4; i++) {
        add_kernel(arena, s, make_conv_weight(arena, &conv[i], leaf[i]));
        add_kernel(arena, s, make_conv_chain(arena, &conv[i]));
    }
}

/* Many output channels, which then lie along the lanes: rows of tiles that are pieces of a line,
 * whole lines or pictures, read in place or staged some lines at a time; places of a window in
 * lines and in channels; blocks and leaves of k that begin within a line. */
static inline void add_windows(Arena *arena, Kernels *s)
{
    static const Conv conv[] = {
        {3, 8, 32, 26, 3, 1, 0, 1},  {2, 33, 64, 13, 3, 1, 1, 1}, {2, 7, 48, 31, 3, 2, 1, 1},
        {2, 5, 17, 29, 5, 1, 2, 1},  {9, 6, 16, 10, 5, 1, 0, 1},  {3, 10, 40, 23, 3, 1, 2, 2},
        {70, 4, 32, 4, 3, 1, 1, 1},  {2, 3, 64, 40, 7, 2, 3, 1},  {3, 19, 31, 8, 3, 2, 0, 1},
        {1, 90, 128, 9, 3, 1, 1, 1}, {2, 16, 16, 61, 3, 1, 1, 1}, {5, 2, 130, 7, 2, 1, 0, 1},
        {2, 2, 32, 97, 1, 2, 0, 1},  {1, 2, 16, 150, 3, 1, 0, 1},
    };
    for (int i = 0; i < 14; i++) {
        add_kernel(arena, s, make_conv_forward(arena, &conv[i], i % 4 == 3));
        if (conv[i].pad > 0)
            add_kernel(arena, s, make_conv_chain(arena, &conv[i]));
        if (conv[i].stride == 1)
            add_kernel(arena, s, make_conv_data(arena, &conv[i]));
        static const int64_t leaf[] = {0, 160, 512, 77};
        for (int l = i % 2; l < 4; l += 2)
            add_kernel(arena, s, make_conv_weight(arena, &conv[i], leaf[l]));
    }
    /* A table of one picture's places: all of them would be too many. */
    Conv large = {5, 2, 32, 62, 3, 1, 0, 1};
    add_kernel(arena, s, make_conv_weight(arena, &large, 3600));
    large.pad = 1;
    add_kernel(arena, s, make_conv_weight(arena, &large, 3844 / 4));
    add_next(arena, s);
}

/* Rows of tiles that are no vectors, of lines as long as some vectors, which lie apart in memory:
 * vectors of a tile's rows, transposed, go past the ends of lines, as those of lanes do. */
static inline void add_folded(Arena *arena, Kernels *s)
{
    for (int64_t b = 4; b <= 64; b *= 2)
        for (int f = 0; f < 2; f++) {
            DType type = f == 0 ? F32 : F64;
            add_kernel(arena, s, make_folded(arena, type, 24, b, 36, 5));
            add_kernel(arena, s, make_folded(arena, type, 11, b, 70, 3));
            add_kernel(arena, s, make_folded(arena, type, 5, b, 150, 9));
            add_kernel(arena, s, make_outer(arena, type, 16, 5, b, 3));
            add_kernel(arena, s, make_outer(arena, type, 3, 20, b, 9));
            add_kernel(arena, s, make_outer(arena, type, 8, 7, b, 1));
        }
}

/* Gradients of weights, of few images and of more than a block of k has, of lines that are summed
 * some at a time; panels of rows of two heights; strides, wide windows; leaves of whole images. */
static inline void add_edges(Arena *arena, Kernels *s)
{
    static const Conv conv[] = {
        {1, 16, 16, 3, 3, 1, 1, 1},  {2, 14, 32, 3, 3, 1, 1, 1},  {3, 8, 16, 8, 3, 1, 1, 1},
        {5, 29, 32, 7, 3, 1, 1, 1},  {40, 9, 32, 8, 3, 2, 1, 1},  {2, 13, 16, 16, 5, 1, 2, 1},
        {1, 28, 48, 20, 3, 1, 1, 1}, {2, 20, 32, 12, 3, 1, 2, 2}, {3, 33, 16, 9, 3, 2, 1, 1},
        {6, 6, 32, 10, 5, 1, 2, 1},  {2, 17, 16, 32, 3, 1, 1, 1}, {1, 3, 32, 4, 3, 1, 1, 1},
        {2, 64, 32, 8, 3, 1, 1, 1},
    };
    for (size_t i = 0; i < sizeof conv / sizeof *conv; i++)
        for (int form = 0; form < 3; form++) {
            int64_t o = conv_out(&conv[i]), leaf = form == 1 ? (1 + (int64_t)i % 2) * o * o : 0;
            add_kernel(arena, s, make_conv_weight_as(arena, &conv[i], leaf, form == 2));
        }
    /* Rows that are places of images, whose terms are windows of channels. */
    static const Conv data[] = {
        {64, 96, 6, 4, 3, 1, 1, 1}, {70, 128, 5, 7, 3, 1, 1, 1}, {33, 64, 3, 8, 3, 1, 1, 1}};
    for (int i = 0; i < 3; i++) {
        add_kernel(arena, s, make_conv_data(arena, &data[i]));
        const Conv turned = {data[i].batch, data[i].out, data[i].in, data[i].size, 3, 1, 1, 1};
        add_kernel(arena, s, make_conv_forward(arena, &turned, false));
    }
}

/* Pictures so narrow that a vector reaches over several lines of them, and over pictures. */
static inline void add_narrow(Arena *arena, Kernels *s)
{
    for (int64_t size = 1; size <= 17; size++) {
        int64_t kernel = size % 2 == 0 ? 3 : 5, out = size % 3 == 0 ? 40 : 6;
        Conv c = {3 + size % 4, 5, out, size, kernel, 1, kernel / 2, 1};
        add_kernel(arena, s, make_conv_forward(arena, &c, size % 5 == 0));
        add_kernel(arena, s, make_conv_chain(arena, &c));
        add_kernel(arena, s, make_conv_data(arena, &c));
        add_kernel(arena, s, make_conv_weight(arena, &c, 0));
        c.stride = 2;
        add_kernel(arena, s, make_conv_forward(arena, &c, false));
    }
}

/* Images that fill vectors, or nearly, of few channels and places, so that these lie along the
 * lanes: windows that slide over padding by one or two places, or over none; one or several groups
 * of images, panels of rows, tiles of a line, units. */
static inline void add_images(Arena *arena, Kernels *s)
{
    static const Conv conv[] = {
        {16, 16, 6, 14, 5, 1, 0, 1},  {32, 6, 16, 14, 5, 1, 0, 1}, {17, 10, 20, 8, 3, 1, 1, 1},
        {8, 12, 17, 9, 3, 1, 1, 1},   {48, 12, 7, 5, 3, 1, 2, 2},  {31, 12, 13, 10, 3, 2, 1, 1},
        {64, 30, 5, 3, 3, 1, 1, 1},   {16, 20, 30, 8, 3, 1, 1, 1}, {12, 9, 14, 7, 5, 1, 2, 1},
        {40, 9, 14, 11, 4, 1, 1, 1},  {16, 33, 6, 6, 3, 1, 1, 1},  {15, 16, 3, 18, 5, 1, 4, 1},
        {16, 16, 5, 12, 5, 1, -4, 1},
    };
    for (size_t i = 0; i < sizeof conv / sizeof *conv; i++) {
        add_kernel(arena, s, make_conv_forward(arena, &conv[i], i % 4 == 3));
        if (conv[i].pad != 0)
            add_kernel(arena, s, make_conv_chain(arena, &conv[i]));
        if (conv[i].stride == 1)
            add_kernel(arena, s, make_conv_data(arena, &conv[i]));
    }
    /* ... of a group's weights each */
    static const Conv group[] = {{16, 5, 2, 22, 3, 1, 1, 1}, {19, 3, 6, 13, 3, 1, 0, 1}};
    for (int i = 0; i < 2; i++)
        for (int first = 0; first < 2; first++)
            add_kernel(arena, s, make_depthwise(arena, DEPTHWISE_FORWARD, &group[i], 0, first));
}

/* Rows of tiles that begin and end with a partner, or without one; lines as long as a vector. */
static inline void add_interleaved(Arena *arena, Kernels *s)
{
    static const int64_t size[][4] = {{3, 16, 32, 64}, {2, 32, 9, 20}, {5, 8, 7, 33},
                                      {1, 15, 21, 5},  {2, 64, 3, 1},  {4, 48, 13, 100},
                                      {1, 33, 1, 7},   {9, 4, 40, 16}, {1, 256, 30, 64}};
    for (int i = 0; i < 9; i++)
        for (int second = 0; second < 2; second++)
            add_kernel(arena, s,
                       make_interleaved(arena, size[i][0], size[i][1], size[i][2], size[i][3],
                                        second == 1));
}

/* Channels along the lanes: vectors that are full or not, lines longer than a tile, planes that are
 * taken some lines at a time, leaves that end within a line; several results of each channel. */
static inline void add_depthwise_as(Arena *arena, Kernels *s, int form)
{
    static const Conv conv[] = {
        {3, 16, 0, 6, 3, 1, 1, 1},  {2, 24, 0, 7, 3, 2, 1, 1},   {2, 17, 0, 12, 5, 1, 2, 1},
        {1, 48, 0, 15, 3, 1, 1, 1}, {2, 8, 0, 29, 3, 1, 0, 1},   {2, 33, 0, 9, 3, 1, 2, 2},
        {1, 16, 0, 97, 3, 1, 1, 1}, {1, 19, 0, 130, 3, 2, 1, 1}, {5, 40, 0, 1, 3, 1, 1, 1},
        {2, 5, 0, 20, 3, 1, 1, 1},  {4, 16, 0, 3, 3, 1, 1, 1},   {2, 12, 0, 10, 1, 1, 0, 1},
        {2, 20, 0, 16, 2, 2, 0, 1}, {1, 32, 0, 40, 7, 1, 3, 1},  {2, 16, 2, 12, 3, 1, 1, 1},
        {1, 33, 3, 9, 3, 1, 1, 1},  {2, 24, 8, 6, 3, 2, 1, 1},   {2, 33, 6, 11, 5, 1, 2, 1},
    };
    static const int64_t leaf[] = {0, 64, 50, 1};
    for (int i = 0; i < 18; i++)
        for (int first = 0; first < 2; first++) {
            add_kernel(arena, s,
                       make_depthwise(arena, form | DEPTHWISE_FORWARD, &conv[i], i % 3 == 2 ? 4 : 0,
                                      first));
            if (conv[i].stride == 1)
                add_kernel(arena, s,
                           make_depthwise(arena, form | DEPTHWISE_DATA, &conv[i], 0, first));
            for (int l = 0; l < 3 + (conv[i].size < 8); l++)
                add_kernel(
                    arena, s,
                    make_depthwise(arena, form | DEPTHWISE_WEIGHT, &conv[i], leaf[l], first));
        }
}

static inline void add_depthwise(Arena *arena, Kernels *s)
{
    add_depthwise_as(arena, s, 0);
}

/* ... with nothing to transpose; windows that slide over lines alone, or are one place. */
static inline void add_channels_last(Arena *arena, Kernels *s)
{
    add_depthwise_as(arena, s, CHANNELS_LAST);
    add_depthwise_as(arena, s, CHANNELS_LAST | ONE_WIDE);
}

/* ---- of bf16, in pairs ------------------------------------------------------------------- */

static inline void shift_affine(KAff *x, Val from)
{
    for (int t = 0; t < x->n; t++)
        x->t[t].v += x->t[t].v >= from;
}

static inline Val shifted(Val v, Val from)
{
    return v + (v >= from);
}

/* Puts a cast of `of` to bf16 before instruction `at`. */
static inline void insert_cast(Arena *arena, Kernel *k, Val at, Val of)
{
    vec_push(arena, &k->inst, (KInst){0});
    for (Val v = (Val)k->inst.n - 1; v > at; v--)
        k->inst.at[v] = k->inst.at[v - 1];
    for (Val v = 1; v < (Val)k->inst.n; v++) {
        KInst *i = &k->inst.at[v];
        i->a = shifted(i->a, at);
        i->b = shifted(i->b, at);
        i->c = shifted(i->c, at);
    }
    k->inst.at[at] = (KInst){.op = KI_CAST, .dtype = BF16, .a = of};
    for (int i = 0; i < k->affine.n; i++)
        shift_affine(&k->affine.at[i], at);
    for (int i = 0; i < k->access.n; i++) {
        KAccess *a = &k->access.at[i];
        shift_affine(&a->at, at);
        for (int b = 0; b < a->n_bounds; b++)
            shift_affine(&a->bound[b].e, at);
    }
    KContract *c = &k->con;
    for (int r = K_B; r <= K_K; r++)
        for (int d = 0; d < c->n[r]; d++)
            c->dim[r][d] = shifted(c->dim[r][d], at);
}

/* The kernel of f32 operands with what it multiplies rounded to bf16, in pairs; where `lying`, an
 * operand that is loaded, and nothing else, lies in memory as bf16. */
static inline Kernel *in_pairs(Arena *arena, const Kernel *f32, bool lying)
{
    Kernel *k = kernel_copy(arena, f32, NULL);
    KContract *c = &k->con;
    for (int side = 1; side >= 0; side--) { /* b first: it stands behind a */
        Val *value = side == 0 ? &c->a : &c->b;
        KInst *i = &k->inst.at[*value];
        if (lying && i->op == KI_LOAD) {
            i->dtype = BF16;
            k->buf.at[k->access.at[i->aux].buf].dtype = BF16;
            continue;
        }
        Val at = side == 0 ? c->a_to : c->b_to;
        insert_cast(arena, k, at, *value);
        *value = at;
        if (side == 0) {
            c->a_to++;
            c->b_from++;
            c->b++;
        }
        c->b_to++;
        c->e_from++;
        c->e_to++;
    }
    c->leaf = (c->leaf + 1) / 2 * 2;
    c->pairs = true;
    const char *wrong = kernel_verify(k, arena);
    ck_assert_msg(wrong == NULL, "%s", wrong);
    return k;
}

/* Every other one, but under GRADC_FULL: their plans are those of f32, which are tried as such. */
static inline void add_pairs_of(Arena *arena, Kernels *s, void (*fill)(Arena *, Kernels *))
{
    Kernels f32 = {0};
    int step = getenv("GRADC_FULL") != NULL ? 1 : 2;
    fill(arena, &f32);
    for (int i = 0; i < f32.n; i += step) {
        const Kernel *k = f32.at[i];
        if (k->con.dtype == F32)
            add_kernel(arena, s, in_pairs(arena, k, i / step % 2 == 0));
    }
}

/* Sizes around those of vectors, tiles, blocks of k; k odd and even, operands either way round. */
static inline void add_pairs(Arena *arena, Kernels *s)
{
    static const Matmul m[] = {
        {1, 200, 70, 1300, 0, 0},
        {1, 70, 200, 1301, TRANSPOSE_A | TRANSPOSE_B, 0},
        {1, 230, 50, 2600, EPILOGUE, 700},
        {1, 210, 33, 2601, PROLOGUE | TRANSPOSE_B, 600},
        {1, 64, 256, 785, TRANSPOSE_B, 0},
        {1, 256, 784, 64, TRANSPOSE_A | EPILOGUE, 0},
        {1, 64, 10, 256, TRANSPOSE_B | EPILOGUE, 0},
        {1, 1, 500, 300, 0, 0},
        {1, 500, 1, 300, 0, 0},
        {1, 1, 500, 301, TRANSPOSE_B, 0},
        {1, 14, 64, 30, 0, 0},
        {1, 16, 640, 1500, 0, 0},
        {1, 28, 100, 96, TRANSPOSE_A, 0},
        {2, 20, 30, 0, 0, 0},
        {1, 20, 30, 1, 0, 0},
        {3, 33, 65, 2, TRANSPOSE_A | PROLOGUE, 0},
        {2, 1100, 330, 260, TRANSPOSE_A, 0},
        {1, 50, 40, 30, TELLS_FALSE, 0},
        {1, 50, 40, 30, TELLS_TRUE, 0},
    };
    uint64_t seed = 5;
    for (int i = 0; i < (int)(sizeof m / sizeof *m); i++)
        add_kernel(arena, s, make_matmul(arena, BF16, &m[i]));
    for (int form = 0; form < 32; form++)
        for (int i = 0; i < 5; i++) {
            int64_t rows = sweep_sizes[draw(&seed) % 14], cols = sweep_sizes[draw(&seed) % 14];
            int64_t k = sweep_sizes[draw(&seed) % 14] + i % 2;
            int64_t leaf = i < 3 ? 0 : 1 + (int64_t)(draw(&seed) % 40);
            Matmul one = {i == 2 ? 3 : 1, rows, cols, k, form, leaf};
            add_kernel(arena, s, make_matmul(arena, BF16, &one));
        }
    add_pairs_of(arena, s, add_sweep);
}

static inline void add_pairs_of_windows(Arena *arena, Kernels *s)
{
    add_pairs_of(arena, s, add_convolutions);
    add_pairs_of(arena, s, add_staged);
    add_pairs_of(arena, s, add_narrow);
    add_pairs_of(arena, s, add_lines);
    add_pairs_of(arena, s, add_depthwise);
}

#endif
