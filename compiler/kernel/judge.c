/* The judge: runs the entries of a Program with the interpreter. */
#include <assert.h>
#include <string.h>
#include "denormals.h"
#include "interp.h"
#include "program.h"

/* A value in the store. A copy out is made as late as it may be, one in spoils the buffer first,
 * so that who touches it in the meantime gives something else. */
typedef struct Stored {
    int64_t at; /* in the store of an entry; another one has other sizes there */
    size_t bytes;
    CallKind begun;
    void *data;
    double *tangent;
} Stored;

struct Judge {
    const Program *p;
    KMode mode;
    Arena *arena;
    KCode **code;     /* by kernel, decoded at first use */
    char *block;      /* K_EXACT: arena_bytes */
    void **data;      /* by buffer: its elements; NULL: not known yet */
    double **tangent; /* by buffer, K_DUAL */
    int64_t *reads;   /* by input: leading elements that the entry reads */
    int64_t valid;    /* rows of the run */
    int64_t *past;    /* by input: how far beyond its last valid row the loop is, in elements */
    int64_t index[MAX_LOOP_DEPTH];
    bool holds_inputs;
    VEC(Stored) stored;
};

/* ---- memory -------------------------------------------------------------------- */

/* The buffer that stands for all that share memory with b. */
static int32_t root_of(const Program *p, int32_t b)
{
    int32_t s = p->buffer.at[b].storage;
    if (s < 0)
        return b;
    for (int32_t i = 0; i < b; i++)
        if (p->buffer.at[i].storage == s)
            return i;
    return b;
}

/* Elements of the largest buffer that shares memory with b. */
static int64_t shared_elems(const Program *p, int32_t b)
{
    int64_t most = p->buffer.at[b].elems;
    for (int32_t i = 0; i < p->buffer.n; i++)
        if (p->buffer.at[b].storage >= 0 && p->buffer.at[i].storage == p->buffer.at[b].storage &&
            p->buffer.at[i].elems > most)
            most = p->buffer.at[i].elems;
    return most;
}

/* n elements of the ABI's dtype t as doubles or int64_t. */
static void widen(DType t, const void *from, int64_t n, void *to)
{
    double *d = to;
    int64_t *l = to;
    for (int64_t i = 0; i < n; i++) {
        switch (t) {
        case F32:
            d[i] = ((const float *)from)[i];
            break;
        case F64:
            d[i] = ((const double *)from)[i];
            break;
        case F16:
            d[i] = f16_to_f32(((const uint16_t *)from)[i]);
            break;
        case BF16:
            d[i] = bf16_to_f32(((const uint16_t *)from)[i]);
            break;
        case I32:
            l[i] = ((const int32_t *)from)[i];
            break;
        case I64:
            l[i] = ((const int64_t *)from)[i];
            break;
        default:
            l[i] = ((const uint8_t *)from)[i];
            break;
        }
    }
}

static void open_exact(Judge *j)
{
    const Program *p = j->p;
    char *raw = arena_alloc(j->arena, (size_t)p->arena_bytes + BLOCK_ALIGN);
    j->block = raw + (BLOCK_ALIGN - (uintptr_t)raw % BLOCK_ALIGN) % BLOCK_ALIGN;
    if (p->arena_bytes > p->pinned_bytes)
        memset(j->block + p->pinned_bytes, 0xff, (size_t)(p->arena_bytes - p->pinned_bytes));
    for (int32_t i = 0; i < p->buffer.n; i++) {
        const Buffer *b = &p->buffer.at[i];
        if (b->offset >= 0)
            j->data[i] = j->block + b->offset;
        else if (b->role == ROLE_CONSTANT)
            j->data[i] = (void *)b->literal;
        else if (b->role != ROLE_INPUT)
            j->data[i] = arena_array(j->arena, (size_t)b->elems, (size_t)dtype_bytes(b->dtype));
    }
}

static void open_wide(Judge *j)
{
    const Program *p = j->p;
    for (int32_t i = 0; i < p->buffer.n; i++) {
        const Buffer *b = &p->buffer.at[i];
        int32_t root = root_of(p, i);
        if (root != i) {
            j->data[i] = j->data[root];
            j->tangent[i] = j->tangent[root];
            continue;
        }
        int64_t n = shared_elems(p, i);
        j->data[i] = NEW_ARRAY(j->arena, double, n);
        j->tangent[i] = j->mode == K_DUAL ? NEW_ARRAY(j->arena, double, n) : NULL;
        if (b->role == ROLE_CONSTANT)
            widen(b->dtype, b->literal, b->elems, j->data[i]);
    }
}

Judge *judge_open(const Program *p, KMode mode, Arena *arena)
{
    Judge *j = NEW(arena, Judge);
    *j = (Judge){.p = p, .mode = mode, .arena = arena};
    j->code = NEW_ARRAY(arena, KCode *, p->kernel.n);
    j->data = NEW_ARRAY(arena, void *, p->buffer.n);
    j->tangent = NEW_ARRAY(arena, double *, p->buffer.n);
    j->reads = NEW_ARRAY(arena, int64_t, p->input.n);
    j->past = NEW_ARRAY(arena, int64_t, p->input.n);
    if (mode == K_EXACT)
        open_exact(j);
    else
        open_wide(j);
    return j;
}

void *judge_data(Judge *j, int32_t buffer)
{
    return j->data[buffer];
}

double *judge_tangent(Judge *j, int32_t buffer)
{
    return dtype_is_float(j->p->buffer.at[buffer].dtype) ? j->tangent[buffer] : NULL;
}

void judge_hold_inputs(Judge *j)
{
    assert(j->mode != K_EXACT);
    j->holds_inputs = true;
}

/* ---- inputs --------------------------------------------------------------------- */

/* Counts into j->reads how far into each input the calls reach. */
static void find_reads(Judge *j, const Call *call, int32_t n, int depth, const int64_t *last)
{
    for (const Call *c = call; n-- > 0; c++) {
        if (c->kind != CALL_KERNEL) {
            int64_t inner[MAX_LOOP_DEPTH];
            memcpy(inner, last, sizeof inner);
            if (c->kind == CALL_LOOP)
                inner[depth] = c->count - 1;
            find_reads(j, c->body, c->n_body, depth + (c->kind == CALL_LOOP), inner);
            continue;
        }
        const Kernel *k = j->p->kernel.at[c->kernel];
        for (int32_t i = 0, o = 0; i < k->buf.n; i++) {
            if (k->buf.at[i].mode == K_LOCAL)
                continue;
            const Operand *x = &c->op[o++];
            const Buffer *b = &j->p->buffer.at[x->buffer];
            int64_t end = x->base + k->buf.at[i].elems;
            for (int d = 0; d < depth; d++)
                end += x->step[d] > 0 ? x->step[d] * last[d] : 0;
            if (b->role == ROLE_INPUT && end > j->reads[b->input])
                j->reads[b->input] = end;
        }
    }
}

/* Elements of one row of an input that has rows. */
static int64_t row_elems(const Input *in)
{
    return in->rows > 0 ? in->elems / in->rows : 0;
}

/* Rows of a full call of the entry that find_reads() has looked at, however few it reads. */
static int64_t full_rows(const Judge *j, const Entry *e)
{
    int64_t rows = program_rows(j->p, e);
    for (int i = 0; i < j->p->input.n; i++) {
        int64_t each = row_elems(&j->p->input.at[i]);
        int64_t n = each > 0 ? (j->reads[i] + each - 1) / each : 0;
        rows = n > rows ? n : rows;
    }
    return rows;
}

/* Elements of an input that the caller must have, when `rows` rows are valid. */
static int64_t valid_elems(const Judge *j, int input, int64_t rows)
{
    int64_t each = row_elems(&j->p->input.at[input]), n = j->reads[input];
    return each > 0 && rows * each < n ? rows * each : n;
}

static bool in_range(const Input *in, const void *data, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        int64_t v;
        widen(in->dtype, (const char *)data + i * dtype_bytes(in->dtype), 1, &v);
        if (v < in->lo || v >= in->hi)
            return false;
    }
    return true;
}

static int check_inputs(const Judge *j, const void *const *in, int64_t rows)
{
    for (int i = 0; i < j->p->input.n; i++) {
        const Input *x = &j->p->input.at[i];
        int64_t n = valid_elems(j, i, rows);
        if (n > 0 && (in == NULL || in[i] == NULL))
            return RUN_BAD_ARGUMENT;
        if (x->ranged && !in_range(x, n > 0 ? in[i] : NULL, n))
            return RUN_RANGE;
    }
    return RUN_OK;
}

/* The copy that an input short of rows is staged in. */
static int32_t staging_of(const Program *p, int input, int64_t elems)
{
    for (int32_t i = 0; i < p->buffer.n; i++) {
        const Buffer *b = &p->buffer.at[i];
        if (b->role == ROLE_STAGING && b->input == input && b->elems >= elems)
            return i;
    }
    return -1;
}

/* Rows that are missing are the last valid one: what they give is left out, and no slope there is
 * infinite that is finite for every valid row. Of `all` elements of `size` bytes n are valid, in
 * rows of so many; less than a row is all that is read. */
static void repeat_last_row(void *data, int64_t n, int64_t row, int64_t all, size_t size)
{
    char *at = data;
    for (int64_t i = n; i < all && row > 0 && row <= n; i++)
        memcpy(at + (size_t)i * size, at + (size_t)(i - row) * size, size);
}

/* Where the kernels of an exact run find input i. */
static const void *place_exact(Judge *j, int i, const void *from, int64_t n)
{
    if (n == j->reads[i] || j->p->input.at[i].by_row)
        return from;
    int32_t s = staging_of(j->p, i, j->reads[i]);
    assert(s >= 0 && "an input with rows has a staging buffer");
    size_t each = (size_t)dtype_bytes(j->p->input.at[i].dtype);
    memcpy(j->data[s], from, (size_t)n * each);
    repeat_last_row(j->data[s], n, row_elems(&j->p->input.at[i]), j->reads[i], each);
    return j->data[s];
}

static void place_inputs(Judge *j, const void *const *in, int64_t rows)
{
    for (int32_t b = 0; b < j->p->buffer.n; b++) {
        const Buffer *x = &j->p->buffer.at[b];
        if (x->role != ROLE_INPUT || j->reads[x->input] == 0 || j->holds_inputs)
            continue;
        int64_t n = valid_elems(j, x->input, rows);
        const void *from = in[x->input];
        if (j->mode == K_EXACT) {
            j->data[b] = (void *)place_exact(j, x->input, from, n);
            continue;
        }
        int64_t here = n < x->elems ? n : x->elems;
        widen(x->dtype, from, here, j->data[b]);
        repeat_last_row(j->data[b], here, row_elems(&j->p->input.at[x->input]), x->elems, 8);
    }
}

/* Tells the kernels how many rows are valid. */
static void place_rows(Judge *j, int64_t rows)
{
    int32_t b = j->p->rows;
    if (b >= 0 && b < j->p->buffer.n && j->p->buffer.at[b].role == ROLE_STATE &&
        j->p->buffer.at[b].dtype == I64)
        *(int64_t *)j->data[b] = rows;
}

/* ---- calls ---------------------------------------------------------------------- */

static int64_t element(const Judge *j, const Operand *o)
{
    int64_t at = o->base;
    for (int d = 0; d < MAX_LOOP_DEPTH; d++)
        at += o->step[d] * j->index[d];
    return at;
}

/* The memory that an operand of `elems` elements stands for. */
static KMem operand(const Judge *j, const Operand *o, int64_t elems)
{
    const Buffer *b = &j->p->buffer.at[o->buffer];
    int64_t at = element(j, o) - (b->role == ROLE_INPUT ? j->past[b->input] : 0);
    assert(at >= 0 && at + elems <= b->elems && j->data[o->buffer] != NULL);
    int64_t each = j->mode == K_EXACT ? dtype_bytes(b->dtype) : (int64_t)sizeof(double);
    double *tangent = j->tangent[o->buffer];
    return (KMem){(char *)j->data[o->buffer] + at * each, tangent != NULL ? tangent + at : NULL};
}

static void run_kernel(Judge *j, const Call *c)
{
    const Kernel *k = j->p->kernel.at[c->kernel];
    if (j->code[c->kernel] == NULL)
        j->code[c->kernel] = kcode_new(k, j->mode, j->arena);
    ArenaMark mark = arena_mark(j->arena);
    KMem *mem = NEW_ARRAY(j->arena, KMem, k->buf.n);
    int32_t o = 0;
    for (int i = 0; i < k->buf.n; i++)
        if (k->buf.at[i].mode != K_LOCAL)
            mem[i] = operand(j, &c->op[o++], k->buf.at[i].elems);
    assert(o == c->n_ops);
    kcode_run(j->code[c->kernel], mem, j->arena);
    arena_reset(j->arena, mark);
}

static bool flag_is_set(const Judge *j, const Operand *o)
{
    KMem m = operand(j, o, 1);
    return j->mode == K_EXACT ? *(uint8_t *)m.data != 0 : *(int64_t *)m.data != 0;
}

static Stored *stored_at(Judge *j, int64_t at, const Buffer *b, size_t each)
{
    for (int i = 0; i < j->stored.n; i++)
        if (j->stored.at[i].at == at && j->stored.at[i].bytes == (size_t)b->elems * each)
            return &j->stored.at[i];
    Stored s = {.at = at, .bytes = (size_t)b->elems * each};
    s.data = arena_array(j->arena, (size_t)b->elems, each);
    s.tangent = j->mode == K_DUAL ? NEW_ARRAY(j->arena, double, b->elems) : NULL;
    vec_push(j->arena, &j->stored, s);
    return &j->stored.at[j->stored.n - 1];
}

static void run_transfer(Judge *j, const Call *c)
{
    const Buffer *b = &j->p->buffer.at[c->op[0].buffer];
    size_t each = j->mode == K_EXACT ? (size_t)dtype_bytes(b->dtype) : sizeof(double);
    size_t bytes = (size_t)b->elems * each, dual = (size_t)b->elems * sizeof(double);
    KMem m = operand(j, &c->op[0], b->elems);
    Stored *s = stored_at(j, c->store, b, each);
    if (c->kind != CALL_WAIT) {
        s->begun = c->kind;
        if (c->kind == CALL_IN)
            memset(m.data, 0xff, bytes);
        return;
    }
    bool out = s->begun == CALL_OUT;
    memcpy(out ? s->data : m.data, out ? m.data : s->data, bytes);
    if (m.tangent != NULL && s->tangent != NULL)
        memcpy(out ? s->tangent : m.tangent, out ? m.tangent : s->tangent, dual);
}

/* Rows that are missing are the last valid one, where a loop reads them one by one. */
static void aim_rows(Judge *j, const Call *loop, int64_t turn)
{
    for (int32_t i = 0; i < j->p->input.n; i++) {
        int way = program_row_loop(j->p, loop, i);
        int64_t past = (way > 0 ? turn : loop->count - 1 - turn) - (j->valid - 1);
        j->past[i] = way != 0 && past > 0 ? past * row_elems(&j->p->input.at[i]) : 0;
    }
}

static void run_calls(Judge *j, const Call *call, int32_t n, int depth)
{
    for (const Call *c = call; n-- > 0; c++) {
        switch (c->kind) {
        case CALL_KERNEL:
            run_kernel(j, c);
            break;
        case CALL_LOOP:
            assert(depth < MAX_LOOP_DEPTH);
            for (int64_t i = 0; i < c->count; i++) {
                j->index[depth] = i;
                if (depth == 0)
                    aim_rows(j, c, i);
                run_calls(j, c->body, c->n_body, depth + 1);
            }
            j->index[depth] = 0;
            if (depth == 0)
                memset(j->past, 0, (size_t)j->p->input.n * sizeof *j->past);
            break;
        case CALL_OUT:
        case CALL_IN:
        case CALL_WAIT:
            run_transfer(j, c);
            break;
        case CALL_GUARD:
            if (flag_is_set(j, &c->flag))
                run_calls(j, c->body, c->n_body, depth);
            break;
        }
    }
}

int judge_run(Judge *j, const char *entry, const void *const *in, int64_t rows)
{
    const Entry *e = program_entry(j->p, entry);
    if (e == NULL || rows < 0)
        return RUN_BAD_ARGUMENT;
    const int64_t last[MAX_LOOP_DEPTH] = {0};
    memset(j->reads, 0, (size_t)j->p->input.n * sizeof *j->reads);
    find_reads(j, e->call, e->n_calls, 0, last);
    int64_t full = full_rows(j, e);
    rows = rows == 0 ? full : rows;
    if (rows > full || (rows < full && j->p->rows < 0))
        return RUN_BAD_ARGUMENT;
    int status = check_inputs(j, in, rows);
    if (status != RUN_OK)
        return status;
    j->valid = rows;
    place_inputs(j, in, rows);
    place_rows(j, rows);
    uint32_t mode = denormals_begin(j->p->flush && j->mode == K_EXACT);
    run_calls(j, e->call, e->n_calls, 0);
    denormals_end(mode);
    return RUN_OK;
}
