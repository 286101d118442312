/* BLAKE2b, RFC 7693, section 3. */
#include "blake2b.h"

#include <stdbool.h>
#include <string.h>

static const uint64_t start[8] = {
    0x6a09e667f3bcc908, 0xbb67ae8584caa73b, 0x3c6ef372fe94f82b, 0xa54ff53a5f1d36f1,
    0x510e527fade682d1, 0x9b05688c2b3e6c1f, 0x1f83d9abfb41bd6b, 0x5be0cd19137e2179,
};

static const unsigned char order[10][16] = {
    {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
    {14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3},
    {11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4},
    {7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8},
    {9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13},
    {2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9},
    {12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11},
    {13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10},
    {6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5},
    {10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0},
};

static uint64_t rotate(uint64_t x, int n)
{
    return x >> n | x << (64 - n);
}

static void mix(uint64_t *a, uint64_t *b, uint64_t *c, uint64_t *d, uint64_t x, uint64_t y)
{
    *a += *b + x;
    *d = rotate(*d ^ *a, 32);
    *c += *d;
    *b = rotate(*b ^ *c, 24);
    *a += *b + y;
    *d = rotate(*d ^ *a, 16);
    *c += *d;
    *b = rotate(*b ^ *c, 63);
}

static void compress(Blake2b *b, bool last)
{
    uint64_t v[16], m[16];
    for (int i = 0; i < 16; i++) {
        m[i] = 0;
        for (int j = 0; j < 8; j++)
            m[i] |= (uint64_t)b->block[8 * i + j] << 8 * j;
    }
    memcpy(v, b->h, sizeof b->h);
    memcpy(v + 8, start, sizeof start);
    v[12] ^= b->bytes;
    v[14] = last ? ~v[14] : v[14];
    for (int r = 0; r < 12; r++) {
        const unsigned char *s = order[r % 10];
        for (int i = 0; i < 4; i++)
            mix(&v[i], &v[4 + i], &v[8 + i], &v[12 + i], m[s[2 * i]], m[s[2 * i + 1]]);
        for (int i = 0; i < 4; i++)
            mix(&v[i], &v[4 + (i + 1) % 4], &v[8 + (i + 2) % 4], &v[12 + (i + 3) % 4],
                m[s[8 + 2 * i]], m[s[9 + 2 * i]]);
    }
    for (int i = 0; i < 8; i++)
        b->h[i] ^= v[i] ^ v[8 + i];
}

void blake2b_start(Blake2b *b)
{
    *b = (Blake2b){.bytes = 0};
    memcpy(b->h, start, sizeof start);
    b->h[0] ^= 0x01010000 ^ DIGEST_BYTES; /* no key, one digest in sequence */
}

void blake2b_add(Blake2b *b, const void *p, size_t n)
{
    const unsigned char *from = p;
    while (n > 0) {
        size_t used = (size_t)(b->bytes % sizeof b->block);
        if (used == 0 && b->bytes > 0) /* the last block is another: it waits for more */
            compress(b, false);
        size_t take = sizeof b->block - used < n ? sizeof b->block - used : n;
        memcpy(b->block + used, from, take);
        b->bytes += take;
        from += take;
        n -= take;
    }
}

void blake2b_end(Blake2b *b, unsigned char digest[DIGEST_BYTES])
{
    size_t used = (size_t)(b->bytes % sizeof b->block);
    if (used > 0 || b->bytes == 0)
        memset(b->block + used, 0, sizeof b->block - used);
    compress(b, true);
    for (int i = 0; i < DIGEST_BYTES; i++)
        digest[i] = (unsigned char)(b->h[i / 8] >> 8 * (i % 8));
}
