/* Transcendental functions as polynomials in kernel instructions. */
#include "kernel.h"

Kernel *kernel_expand(Arena *arena, const Kernel *k)
{
    Kernel *copy = NEW(arena, Kernel);
    *copy = *k;
    return copy;
}
