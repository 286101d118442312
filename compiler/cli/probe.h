/* What this machine does at best: small models, built and run like any other. */
#ifndef GRADC_CLI_PROBE_H
#define GRADC_CLI_PROBE_H

#include "cli.h"

typedef enum ProbeKind {
    PROBE_CALLS,   /* many steps that compute next to nothing */
    PROBE_PRODUCT, /* a matrix product of 512 rows: operands are packed, and in the nearer caches */
    PROBE_TILES,   /* a small one, whose operands need not be packed */
    PROBE_MATH,    /* exp of what is in the nearest cache */
    PROBE_NEAR,    /* reads and writes 128 KiB in all */
    PROBE_MIDDLE,  /* 8 MiB */
    PROBE_MEMORY,  /* 256 MiB: more than a cache holds */
    N_PROBES
} ProbeKind;

/* A forward pass, the fastest of some, beside what its plan counts. */
typedef struct Probe {
    double ns, flops, bytes, work, steps;
} Probe;

/* An exit status, after a message unless EXIT_OK. Options of the command line don't matter. */
int probe(const Cli *c, ProbeKind kind, int64_t threads, Probe *to);

/* Each in a ns, on so many threads. */
typedef struct Roof {
    double flops;                     /* of contractions */
    double work;                      /* instructions of other arithmetic */
    double near_rate, middle, memory; /* bytes moved, by how many a step moves: ... */
    double near_bytes, middle_bytes;  /* ... up to so many; more come from memory */
    double call;                      /* ns of a step that does nothing */
} Roof;

int probe_roof(const Cli *c, int64_t threads, Roof *to);
double roof_bytes(const Roof *r, double bytes); /* in a ns, where a step moves so many */

#endif
