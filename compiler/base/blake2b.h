/* BLAKE2b with 32 bytes of digest.   source: RFC 7693 */
#ifndef GRADC_BASE_BLAKE2B_H
#define GRADC_BASE_BLAKE2B_H

#include <stddef.h>
#include <stdint.h>

enum { DIGEST_BYTES = 32 };

typedef struct Blake2b {
    uint64_t h[8], bytes; /* bytes: taken so far, those in `block` too */
    unsigned char block[128];
} Blake2b;

void blake2b_start(Blake2b *b);
void blake2b_add(Blake2b *b, const void *p, size_t n);
void blake2b_end(Blake2b *b, unsigned char digest[DIGEST_BYTES]);

#endif
