/* Counter-based draws and orders: functions of seed and counters alone, the same on every machine.
 *
 * sources: the mixer is SplitMix64's (Steele, Lea, Flood, "Fast Splittable Pseudorandom Number
 * Generators", 2014); a Feistel network with cycle walking as an order is from Mitchell, Stokes,
 * Frank, Holmes, "Bandwidth-Optimal Random Shuffling for GPUs" (2022). */
#include "internal.h"

static uint64_t scramble(uint64_t z)
{
    z += UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    return z ^ z >> 31;
}

uint64_t gr_mix(uint64_t seed, uint64_t a, uint64_t b)
{
    return scramble(scramble(scramble(seed) ^ a) ^ b);
}

/* One pass of the network over numbers of low + high bits. Each round adds to one part a function
 * of the other, so the whole can be undone and is an order. */
static uint64_t network(uint64_t key, uint64_t x, int low, int high)
{
    enum { ROUNDS = 8 };
    uint64_t low_mask = (UINT64_C(1) << low) - 1, high_mask = (UINT64_C(1) << high) - 1;
    uint64_t l = x & low_mask, h = x >> low;
    for (uint64_t r = 0; r < ROUNDS; r++) {
        l ^= scramble(key + 2 * r + (h << 8)) & low_mask;
        h ^= scramble(key + 2 * r + 1 + (l << 8)) & high_mask;
    }
    return h << low | l;
}

int64_t gradc_shuffled(uint64_t seed, int64_t epoch, int64_t count, int64_t index)
{
    if (count < 1 || index < 0 || index >= count)
        return -1;
    int bits = 1;
    while (bits < 62 && INT64_C(1) << bits < count)
        bits++;
    /* a spare bit for small counts: a network over few bits knows few orders */
    if (bits < 8)
        bits = 8;
    uint64_t key = gr_mix(seed, (uint64_t)epoch, (uint64_t)count);
    uint64_t x = (uint64_t)index;
    do { /* numbers beyond count are walked over: the cycle leads back below it */
        x = network(key, x, bits / 2, bits - bits / 2);
    } while (x >= (uint64_t)count);
    return (int64_t)x;
}

int64_t gradc_draw(uint64_t seed, int64_t index, int64_t count)
{
    if (count < 1)
        return -1;
    /* the high word of a product: biased by less than count / 2^64 */
    __extension__ typedef unsigned __int128 Wide;
    uint64_t word = gr_mix(seed, (uint64_t)index, UINT64_C(0x64726177));
    return (int64_t)(uint64_t)((Wide)word * (uint64_t)count >> 64);
}
