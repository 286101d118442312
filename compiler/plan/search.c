#include "pack.h"
void pack_search(Pack *k, int64_t work)
{
    (void)k;
    (void)work;
}
