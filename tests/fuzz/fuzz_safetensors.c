/* safetensors: what is taken must be whole, and must read the same when it is written again. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/safetensors.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void require(bool truth)
{
    if (!truth)
        abort();
}

static void look_at(const gradc_tensors *t, size_t n)
{
    int64_t total = 0;
    for (int64_t i = 0; i < gradc_tensors_count(t); i++) {
        const gradc_named *x = gradc_tensors_at(t, i);
        int64_t elems, bytes;
        require(gr_shape_size(x->dtype, x->rank, x->shape, &elems, &bytes));
        require(elems == x->elems && bytes == x->bytes && (bytes == 0 || x->data != NULL));
        require(gradc_tensors_find(t, x->name) == x);
        gr_crc32c(0, x->data, x->bytes); /* every byte can be read */
        total += bytes;
    }
    require(total <= (int64_t)n);
    for (int64_t i = 0; i < gradc_tensors_pairs(t); i++) {
        const gradc_pair *p = gradc_tensors_pair(t, i);
        require(gradc_tensors_value(t, p->key) == p->value);
    }
}

static void same(const gradc_tensors *a, const gradc_tensors *b)
{
    require(a->n == b->n && a->n_pairs == b->n_pairs);
    for (int64_t i = 0; i < a->n; i++) {
        const gradc_named *x = gradc_tensors_at(a, i), *y = gradc_tensors_find(b, x->name);
        require(y != NULL && x->dtype == y->dtype && x->rank == y->rank && x->bytes == y->bytes);
        require(memcmp(x->shape, y->shape, sizeof x->shape) == 0);
        require(x->bytes == 0 || memcmp(x->data, y->data, (size_t)x->bytes) == 0);
    }
}

/* As gradc_tensors_write does, but into memory. */
static void write_again(const gradc_tensors *t)
{
    Layout l = {.list = t->list, .n = t->n, .pairs = t->pairs, .n_pairs = t->n_pairs};
    Text file = {0};
    gradc_tensors *u;
    gradc_error e;
    require(gr_layout_make(&l, &e) == GRADC_OK);
    gr_text_add(&file, l.head.bytes, l.head.n);
    for (int64_t i = 0; i < l.n; i++)
        if (l.bytes[l.order[i]] > 0)
            gr_text_add(&file, t->list[l.order[i]].data, l.bytes[l.order[i]]);
    require(!file.failed);
    require(gradc_tensors_parse("again", file.bytes, (size_t)file.n, &u, &e) == GRADC_OK);
    same(t, u);
    gradc_tensors_free(u);
    gr_text_free(&file);
    gr_layout_free(&l);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    gradc_tensors *t;
    gradc_error e;
    if (gradc_tensors_parse("fuzz", data, n, &t, &e) != GRADC_OK) {
        require(t == NULL && e.text[0] != '\0' && e.status == GRADC_FORMAT);
        return 0;
    }
    look_at(t, n);
    if (!t->sealed)
        write_again(t);
    gradc_tensors_free(t);
    return 0;
}
