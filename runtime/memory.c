/* Allocation and growing text. Sizes are int64_t here and checked on the way to size_t. */
#include "internal.h"

#include <string.h>
#include <sys/mman.h>

#include "hooks.h"

/* Beyond what any file or model may ask for, not even the system is asked. */
static bool fits(int64_t bytes)
{
    return bytes > 0 && bytes <= 2 * GRADC_MAX_TENSOR_BYTES && (uint64_t)bytes <= SIZE_MAX;
}

void *gr_alloc(int64_t bytes)
{
    return fits(bytes) ? gr_mem_ops.alloc((size_t)bytes) : NULL;
}

void *gr_new(int64_t count, int64_t bytes)
{
    int64_t total;
    if (!size_mul(count, bytes, &total))
        return NULL;
    void *memory = gr_alloc(total);
    if (memory != NULL)
        memset(memory, 0, (size_t)total);
    return memory;
}

void *gr_aligned(int64_t bytes, int64_t align)
{
    return fits(bytes) ? gr_mem_ops.aligned((size_t)align, (size_t)bytes) : NULL;
}

void *gr_resize(void *old, int64_t bytes)
{
    return fits(bytes) ? gr_mem_ops.resize(old, (size_t)bytes) : NULL;
}

void gr_free(void *memory)
{
    if (memory != NULL)
        gr_mem_ops.release(memory);
}

/* Rows of a large matrix are pages of 4 KiB apart, more of them than a processor looks up quickly.
 * Where the system knows no larger ones, nothing is lost. */
static void ask_large_pages(void *memory, int64_t bytes)
{
#ifdef MADV_HUGEPAGE
    (void)madvise(memory, (size_t)bytes, MADV_HUGEPAGE);
#else
    (void)memory, (void)bytes;
#endif
}

void *gradc_alloc(int64_t bytes, int64_t align)
{
    enum { LINE = 64, LARGE_PAGE = 2 << 20 };
    if (bytes < 0 || align < 0 || (align & (align - 1)) != 0)
        return NULL;
    if (align < LINE)
        align = LINE;
    if (bytes == 0)
        bytes = 1;
    bool large = bytes >= 2 * LARGE_PAGE;
    if (large && align < LARGE_PAGE)
        align = LARGE_PAGE;
    void *memory = gr_aligned(bytes, align);
    if (memory != NULL && large)
        ask_large_pages(memory, bytes);
    if (memory != NULL)
        memset(memory, 0, (size_t)bytes);
    return memory;
}

void gradc_free(void *memory)
{
    gr_free(memory);
}

/* Makes room for n more bytes and the NUL. */
static bool text_reserve(Text *t, int64_t n)
{
    int64_t need;
    if (t->failed || !size_add(t->n, n, &need) || !size_add(need, 1, &need)) {
        t->failed = true;
        return false;
    }
    if (need <= t->room)
        return true;
    int64_t room = t->room < 256 ? 256 : t->room;
    while (room < need && size_mul(room, 2, &room))
        continue;
    char *bytes = gr_resize(t->bytes, room < need ? need : room);
    if (bytes == NULL) {
        t->failed = true;
        return false;
    }
    t->bytes = bytes;
    t->room = room < need ? need : room;
    return true;
}

void gr_text_add(Text *t, const char *bytes, int64_t n)
{
    if (n < 0 || !text_reserve(t, n))
        return;
    memcpy(t->bytes + t->n, bytes, (size_t)n);
    t->n += n;
    t->bytes[t->n] = '\0';
}

void gr_text_puts(Text *t, const char *s)
{
    gr_text_add(t, s, (int64_t)strlen(s));
}

void gr_text_int(Text *t, int64_t value)
{
    char digits[32];
    int n = snprintf(digits, sizeof digits, "%lld", (long long)value);
    gr_text_add(t, digits, n);
}

/* Escapes as serde_json does, so that files compare equal with those of the reference. */
void gr_text_json(Text *t, const char *s)
{
    static const char hex[] = "0123456789abcdef";
    gr_text_puts(t, "\"");
    for (; *s != '\0'; s++) {
        unsigned char c = (unsigned char)*s;
        const char *named = c < 0x20 ? strchr("\bb\tt\nn\ff\rr", c) : NULL;
        if (c == '"' || c == '\\') {
            char pair[2] = {'\\', (char)c};
            gr_text_add(t, pair, 2);
        } else if (named != NULL) {
            char pair[2] = {'\\', named[1]};
            gr_text_add(t, pair, 2);
        } else if (c < 0x20) {
            char code[6] = {'\\', 'u', '0', '0', hex[c >> 4], hex[c & 15]};
            gr_text_add(t, code, 6);
        } else {
            gr_text_add(t, s, 1);
        }
    }
    gr_text_puts(t, "\"");
}

void gr_text_free(Text *t)
{
    gr_free(t->bytes);
    *t = (Text){0};
}
