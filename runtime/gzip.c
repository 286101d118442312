/* gzip files in memory, unpacked within limits. source: RFC 1952. */
#include "internal.h"

#include <string.h>
#include <zlib.h>

/* zlib's own allocations go by the table too. */
static voidpf zlib_alloc(voidpf opaque, uInt items, uInt size)
{
    (void)opaque;
    return gr_new((int64_t)items, (int64_t)size);
}

static void zlib_free(voidpf opaque, voidpf memory)
{
    (void)opaque;
    gr_free(memory);
}

typedef struct Unpack {
    const char *name;
    const uint8_t *packed;
    int64_t n, at; /* packed bytes, and how many are used */
    int64_t most;  /* unpacked bytes allowed */
    uint8_t *out;
    int64_t size, room; /* unpacked so far */
    gradc_error *e;
} Unpack;

/* The last four bytes of the file are the unpacked size modulo 2^32: a guess for the first
 * allocation, no more. The bytes on top keep an exact guess from looking full. */
static int64_t size_hint(const Unpack *u)
{
    int64_t hint = 0;
    if (u->n >= 18)
        for (int i = 0; i < 4; i++)
            hint |= (int64_t)u->packed[u->n - 4 + i] << (8 * i);
    return hint + 64;
}

static int too_much(const Unpack *u)
{
    return gr_fail_at(u->e, GRADC_FORMAT, u->at,
                      "%s unpacks to more than the %lld bytes that its size allows", u->name,
                      (long long)u->most);
}

/* More room, up to one byte more than is allowed: that byte tells "all" from "too much". */
static int grow(Unpack *u)
{
    int64_t room = u->room == 0 ? size_hint(u) : u->room;
    if (u->size > u->most)
        return too_much(u);
    if (u->room > 0 && !size_mul(room, 2, &room))
        room = u->most + 1;
    if (room > u->most)
        room = u->most + 1;
    uint8_t *out = gr_resize(u->out, room);
    if (out == NULL)
        return gr_fail_memory(u->e, u->name, room);
    u->out = out;
    u->room = room;
    return GRADC_OK;
}

static uInt portion(int64_t n)
{
    return n < (INT64_C(1) << 30) ? (uInt)n : (uInt)1 << 30;
}

static int bad_data(const Unpack *u, const z_stream *z, int code)
{
    if (code == Z_MEM_ERROR)
        return gr_fail_memory(u->e, u->name, 1 << 15);
    if (code == Z_BUF_ERROR || code == Z_OK)
        return gr_fail_at(u->e, GRADC_FORMAT, u->at, "%s: the gzip data end too early", u->name);
    return gr_fail_at(u->e, GRADC_FORMAT, u->at, "%s: damaged gzip data near byte %lld: %s",
                      u->name, (long long)u->at, z->msg != NULL ? z->msg : "cannot be unpacked");
}

/* One member from u->at on. */
static int unpack_member(Unpack *u, z_stream *z)
{
    for (;;) {
        int status = u->size == u->room ? grow(u) : GRADC_OK;
        if (status != GRADC_OK)
            return status;
        uInt in = portion(u->n - u->at), room = portion(u->room - u->size);
        z->next_in = (Bytef *)(uintptr_t)(u->packed + u->at);
        z->avail_in = in;
        z->next_out = u->out + u->size;
        z->avail_out = room;
        int code = inflate(z, Z_NO_FLUSH);
        bool stuck = z->avail_in == in && z->avail_out == room;
        u->at += in - z->avail_in;
        u->size += room - z->avail_out;
        if (code == Z_STREAM_END)
            return u->size > u->most ? too_much(u) : GRADC_OK;
        if (code != Z_OK || stuck)
            return bad_data(u, z, code);
    }
}

static int unpack_all(Unpack *u)
{
    z_stream z = {.zalloc = zlib_alloc, .zfree = zlib_free};
    enum { GZIP_ONLY = 16 + MAX_WBITS };
    if (inflateInit2(&z, GZIP_ONLY) != Z_OK)
        return gr_fail_memory(u->e, u->name, 1 << 15);
    int status;
    do { /* a file may be several members, one after another */
        status = unpack_member(u, &z);
    } while (status == GRADC_OK && u->at < u->n && inflateReset(&z) == Z_OK);
    inflateEnd(&z);
    return status;
}

int gr_gunzip(const char *name, const uint8_t *packed, int64_t n, int64_t limit, int64_t ratio,
              uint8_t **out, int64_t *out_n, gradc_error *e)
{
    Unpack u = {.name = name, .packed = packed, .n = n, .most = limit, .e = e};
    int64_t by_ratio;
    *out = NULL;
    *out_n = 0;
    if (size_mul(n, ratio, &by_ratio) && by_ratio < limit)
        u.most = by_ratio;
    int status = unpack_all(&u);
    if (status != GRADC_OK) {
        gr_free(u.out);
        return status;
    }
    *out = u.out;
    *out_n = u.size;
    return GRADC_OK;
}
