/* The tile of a contraction that a block computes. Any tile gives the same bits. */
#ifndef GRADC_TARGET_CUDA_TILE_H
#define GRADC_TARGET_CUDA_TILE_H

#include "../../kernel/kernel.h"

typedef struct Tile {
    int32_t rows, cols;        /* threads along m and n */
    int32_t each_m, each_n;    /* elements of a thread */
    int32_t m, n, k;           /* elements of C; depth of a panel */
    int64_t extent[4];         /* by KRole */
    int64_t tiles_m, tiles_n;  /* of one b */
    int64_t leaf;              /* k of a leaf; all of K where there are none */
    bool a_along_k, b_along_k; /* neighbouring threads load neighbouring k */
    int32_t a_turns, b_turns;  /* elements of a panel that a thread has at hand; 0: any number */
    int32_t blocks;            /* of a multiprocessor: what their registers are chosen for */
} Tile;

Tile cu_plan_tile(const Kernel *k);

#endif
