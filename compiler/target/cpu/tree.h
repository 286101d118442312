/* A loop kernel as a tree, with the decisions of its emission: what is hoisted,
 * which loops move along the lanes of vectors, what the threads share out. No
 * LLVM here. */
#ifndef GRADC_TARGET_CPU_TREE_H
#define GRADC_TARGET_CPU_TREE_H

#include "machine.h"

typedef struct Node Node;
struct Node {
    bool loop;
    Val v;     /* 0: the root */
    int depth; /* loops: of the root 0 */
    int width; /* loops: > 0 moves along that many lanes */
    Node *parent, *prev, *next, *first, *last;
};

enum { MAX_CHAIN = 16, FEW_TURNS = 4, TILE_ROWS = 16 /* a line of four-byte elements */ };

typedef struct Tree {
    const Kernel *k; /* adjacent PAR loops merged where every access allows it */
    Node *root;
    /* The grid: nested PAR loops with nothing but pure values between them, outermost
     * first; a vectorised one is the last. */
    int n_chain;
    Node *chain[MAX_CHAIN];
    uint64_t *deps; /* by Val: those it depends on of the loops around it, bit i is the i-th one
                     * from outside; of a loop: its own bit */
    Val *red_of;    /* by Val, INTO: innermost RED inside of the ACC's scope, or 0 */
    bool *wide;     /* by Val, ACC: some INTO has a red_of */
    /* What the threads share out: units [0, n_units), in order of the grid. The last
     * loop of a vectorised chain is cut into blocks of `block` iterations. */
    int64_t n_units, block, n_blocks;
    /* The link of the chain along which elements lie together that are apart along the lanes; -1:
     * there is none. A unit has `rows` of its iterations, and each vector's place is met for all of
     * them before the next one: lines of memory are read once. */
    int across;
    int rows;
    double cost; /* cycles of the whole kernel, estimated */
} Tree;

Tree *tree_build(const Kernel *k, const Machine *m, Arena *arena);
/* Bytes of lane scratch of the LOCAL buffers, whole vectors of LOCAL_PAD at most; offset of each,
 * when not NULL. */
int64_t tree_locals(const Tree *t, int64_t *offset);
/* The chain's vector loop, or NULL. */
static inline const Node *tree_chain_vector(const Tree *t)
{
    return t->n_chain > 0 && t->chain[t->n_chain - 1]->width > 0 ? t->chain[t->n_chain - 1] : NULL;
}
/* Units along a link of the chain that is no vector. */
int64_t tree_units_of(const Tree *t, int link);
int64_t tree_coef(const KAff *x, Val v);
/* Elements of a load that are apart along the lanes of `lane` and side by side along the other link
 * of the chain, with bounds that are the same there: `rows` of both can be transposed in
 * registers. */
bool tree_is_tile(const Tree *t, const KInst *load, Val lane, Val across);
/* Whether v is computed again for each iteration of the loop `of`. */
bool tree_depends(const Tree *t, Val v, Val of);

/* Its few iterations are written out one after another: each does something else, as of the phases
 * of a strided convolution that are put together, and knows what. */
bool tree_is_written_out(const Tree *t, const Node *loop);

/* tree_vector.c: chooses the loops that move along lanes; sets Node.width. */
void tree_choose_vectors(Tree *t, const Machine *m);
/* tree_merge.c: k with adjacent PAR loops merged where every access allows it. */
const Kernel *tree_merge(const Kernel *k, Arena *arena);

#endif
