/* Reading a cubin. Offsets and sizes are the file's: each is checked before it is followed, and all
 * sections together are not read for more bytes than the file has a few times over. */
#include "cubin.h"

#include <string.h>

#include "../elf.h"
#include "../../base/vec.h"

enum {
    OP_MASK = 0xfff,
    OP_LDL = 0x983,
    OP_STL = 0x387,
    INSTRUCTION_BYTES = 16,
    /* attributes of .nv.info; a first byte of ATTR_SIZED says that a size follows */
    ATTR_SIZED = 4,
    ATTR_FRAME = 0x11,
    ATTR_ARGUMENT = 0x17,
    ATTR_REGISTERS = 0x2f,
    ABI_OF_12 = 7,      /* the architecture is in the low byte of the flags; later in the next */
    RESERVED_FROM = 90, /* architectures that count what the system reserves */
    RESERVED_BYTES = 1024,
    MOST_ARGUMENTS = 4096,
    MOST_READ = 4 /* times the file's bytes */
};

typedef struct Reader {
    const unsigned char *at;
    uint64_t size, read;
    Arena *arena;
    ElfHeader head;
    const ElfSection *section;
    const char **name; /* by section */
    VEC(CubinKernel) kernel;
    const char *wrong;
} Reader;

/* [offset, offset + n) lies in the file. */
static bool is_within(const Reader *r, uint64_t offset, uint64_t n)
{
    return offset <= r->size && n <= r->size - offset;
}

static bool fail(Reader *r, const char *wrong)
{
    r->wrong = wrong;
    return false;
}

static uint32_t word(const unsigned char *p)
{
    uint32_t x;
    memcpy(&x, p, sizeof x);
    return x;
}

static uint16_t half(const unsigned char *p)
{
    uint16_t x;
    memcpy(&x, p, sizeof x);
    return x;
}

/* ---- header, sections, names ----------------------------------------------------------------- */

static bool read_head(Reader *r)
{
    static const unsigned char magic[] = {0x7f, 'E', 'L', 'F', 2, 1};
    if (r->size < sizeof r->head || memcmp(r->at, magic, sizeof magic) != 0)
        return fail(r, "it is no ELF file of 64 bits");
    memcpy(&r->head, r->at, sizeof r->head);
    if (r->head.machine != ELF_CUDA)
        return fail(r, "it is not for a machine of CUDA");
    if (r->head.shentsize != sizeof(ElfSection) || r->head.shnum == 0 ||
        !is_within(r, r->head.shoff, (uint64_t)r->head.shnum * sizeof(ElfSection)))
        return fail(r, "its sections lie outside of the file");
    ElfSection *s = NEW_ARRAY(r->arena, ElfSection, r->head.shnum);
    memcpy(s, r->at + r->head.shoff, r->head.shnum * sizeof *s);
    r->section = s;
    return true;
}

/* The string at this place of a section; NULL: it does not end there. */
static const char *string_at(const Reader *r, uint32_t section, uint32_t offset)
{
    if (section >= r->head.shnum)
        return NULL;
    const ElfSection *s = &r->section[section];
    if (s->type != ELF_STRTAB || !is_within(r, s->offset, s->size) || offset >= s->size)
        return NULL;
    const unsigned char *from = r->at + s->offset + offset;
    const unsigned char *end = memchr(from, 0, s->size - offset);
    return end == NULL ? NULL : (const char *)from;
}

static bool read_names(Reader *r)
{
    r->name = NEW_ARRAY(r->arena, const char *, r->head.shnum);
    for (uint32_t i = 0; i < r->head.shnum; i++) {
        r->name[i] = string_at(r, r->head.shstrndx, r->section[i].name);
        if (r->name[i] == NULL)
            return fail(r, "a section has no name");
    }
    return true;
}

/* What follows `prefix` in the section's name, or NULL. */
static const char *name_of(const Reader *r, uint32_t section, const char *prefix)
{
    size_t n = strlen(prefix);
    return strncmp(r->name[section], prefix, n) == 0 ? r->name[section] + n : NULL;
}

/* The bytes of a section; NULL: they are not there, or too many have been read. */
static const unsigned char *bytes_of(Reader *r, const ElfSection *s)
{
    if (!is_within(r, s->offset, s->size) || s->size > MOST_READ * r->size - r->read) {
        fail(r, "a section lies outside of the file");
        return NULL;
    }
    r->read += s->size;
    return r->at + s->offset;
}

/* ---- code ----------------------------------------------------------------------------------- */

static CubinKernel *find_kernel(Reader *r, const char *name)
{
    for (int i = 0; i < r->kernel.n; i++)
        if (strcmp(r->kernel.at[i].name, name) == 0)
            return &r->kernel.at[i];
    return NULL;
}

static bool read_code(Reader *r, const ElfSection *s, const char *name)
{
    CubinKernel k = {.name = arena_strdup(r->arena, name), .registers = -1};
    const unsigned char *code = bytes_of(r, s);
    if (code == NULL)
        return false;
    if (find_kernel(r, name) != NULL)
        return fail(r, "two kernels have one name");
    for (uint64_t i = 0; i + INSTRUCTION_BYTES <= s->size; i += INSTRUCTION_BYTES) {
        uint32_t op = word(code + i) & OP_MASK;
        k.loads += op == OP_LDL;
        k.stores += op == OP_STL;
        k.instructions++;
    }
    vec_push(r->arena, &r->kernel, k);
    return true;
}

static bool read_all_code(Reader *r)
{
    for (uint32_t i = 0; i < r->head.shnum; i++) {
        const char *name = name_of(r, i, ".text.");
        if (name != NULL && r->section[i].type == ELF_PROGBITS &&
            !read_code(r, &r->section[i], name))
            return false;
    }
    return true;
}

static void read_shared(Reader *r)
{
    for (uint32_t i = 0; i < r->head.shnum; i++) {
        const char *name = name_of(r, i, ".nv.shared.");
        CubinKernel *k = name == NULL ? NULL : find_kernel(r, name);
        if (k != NULL && r->section[i].size <= INT32_MAX)
            k->shared_bytes = (int64_t)r->section[i].size;
    }
}

/* ---- attributes ------------------------------------------------------------------------------ */

typedef struct Attribute {
    int kind;
    uint64_t size; /* of what follows */
    const unsigned char *at;
} Attribute;

/* The next one, from *at on; false at the end, or after a failure. */
static bool next_attribute(Reader *r, const unsigned char **at, const unsigned char *end,
                           Attribute *a)
{
    const unsigned char *p = *at;
    if (p == end)
        return false;
    if (end - p < 4)
        return fail(r, "its attributes are cut off");
    *a = (Attribute){.kind = p[0] == ATTR_SIZED ? p[1] : -1, .at = p + 4};
    a->size = p[0] == ATTR_SIZED ? half(p + 2) : 0;
    if (a->size > (uint64_t)(end - a->at))
        return fail(r, "an attribute is cut off");
    *at = a->at + a->size;
    return true;
}

/* The kernel of a symbol, or NULL: it may be a function's. */
static CubinKernel *kernel_of_symbol(Reader *r, const ElfSection *symbols, uint32_t i)
{
    ElfSymbol s;
    if (symbols == NULL || i >= symbols->size / sizeof s ||
        !is_within(r, symbols->offset, symbols->size))
        return NULL;
    memcpy(&s, r->at + symbols->offset + i * sizeof s, sizeof s);
    const char *name = string_at(r, symbols->link, s.name);
    return name == NULL ? NULL : find_kernel(r, name);
}

static bool read_resources(Reader *r, const ElfSection *s, const ElfSection *symbols)
{
    const unsigned char *at = bytes_of(r, s), *end = at == NULL ? NULL : at + s->size;
    Attribute a;
    while (at != end && next_attribute(r, &at, end, &a)) {
        if ((a.kind != ATTR_REGISTERS && a.kind != ATTR_FRAME) || a.size != 8)
            continue;
        CubinKernel *k = kernel_of_symbol(r, symbols, word(a.at));
        uint32_t value = word(a.at + 4);
        if (k != NULL && value <= INT32_MAX)
            *(a.kind == ATTR_REGISTERS ? &k->registers : &k->frame_bytes) = (int32_t)value;
    }
    return r->wrong == NULL;
}

/* An argument's record: index, ordinal and offset of 16 bits, size from bit 18 on. */
static bool read_argument(Reader *r, CubinKernel *k, const Attribute *a)
{
    int32_t ordinal = half(a->at + 4), size = (int32_t)(word(a->at + 8) >> 18);
    if (ordinal >= k->n_arguments)
        return fail(r, "an argument's ordinal is out of range");
    if (k->argument[ordinal].size != 0)
        return fail(r, "an argument is there twice");
    if (size == 0)
        return fail(r, "an argument has no size");
    k->argument[ordinal] = (CubinArgument){half(a->at + 6), size};
    return true;
}

static int32_t count_arguments(Reader *r, const unsigned char *at, const unsigned char *end)
{
    Attribute a;
    int32_t n = 0;
    while (next_attribute(r, &at, end, &a))
        n += a.kind == ATTR_ARGUMENT && a.size == 12;
    return n;
}

static bool read_arguments(Reader *r, const ElfSection *s, CubinKernel *k)
{
    const unsigned char *at = bytes_of(r, s), *end = at == NULL ? NULL : at + s->size;
    if (at == NULL)
        return false;
    k->n_arguments = count_arguments(r, at, end);
    if (r->wrong != NULL || k->n_arguments > MOST_ARGUMENTS)
        return fail(r, r->wrong != NULL ? r->wrong : "a kernel has too many arguments");
    k->argument = NEW_ARRAY(r->arena, CubinArgument, k->n_arguments);
    Attribute a;
    while (next_attribute(r, &at, end, &a))
        if (a.kind == ATTR_ARGUMENT && a.size == 12 && !read_argument(r, k, &a))
            return false;
    for (int32_t i = 0; i < k->n_arguments; i++) {
        int32_t until = k->argument[i].offset + k->argument[i].size;
        k->argument_bytes = until > k->argument_bytes ? until : k->argument_bytes;
    }
    return true;
}

static const ElfSection *find_symbols(const Reader *r)
{
    for (uint32_t i = 0; i < r->head.shnum; i++)
        if (r->section[i].type == ELF_SYMTAB)
            return &r->section[i];
    return NULL;
}

static bool read_attributes(Reader *r)
{
    const ElfSection *symbols = find_symbols(r);
    for (uint32_t i = 0; i < r->head.shnum; i++) {
        const char *name = name_of(r, i, ".nv.info");
        CubinKernel *k = name == NULL || name[0] != '.' ? NULL : find_kernel(r, name + 1);
        bool ok = true;
        if (name != NULL && name[0] == 0)
            ok = read_resources(r, &r->section[i], symbols);
        else if (k != NULL && k->argument != NULL)
            ok = fail(r, "a kernel's attributes are there twice");
        else if (k != NULL)
            ok = read_arguments(r, &r->section[i], k);
        if (!ok)
            return false;
    }
    return true;
}

/* ---- all of it ---------------------------------------------------------------------------------
 */

static bool finish(Reader *r, Cubin *c)
{
    bool old = r->head.ident[8] <= ABI_OF_12;
    *c = (Cubin){.arch = (int)((old ? r->head.flags : r->head.flags >> 8) & 0xff),
                 .n = r->kernel.n,
                 .kernel = r->kernel.at};
    for (int i = 0; i < c->n; i++) {
        CubinKernel *k = &c->kernel[i];
        if (k->registers < 0)
            return fail(r, "it does not say how many registers a kernel has");
        if (c->arch >= RESERVED_FROM && k->shared_bytes >= RESERVED_BYTES)
            k->shared_bytes -= RESERVED_BYTES;
    }
    return true;
}

const char *cubin_read(const unsigned char *bytes, size_t size, Arena *arena, Cubin *c)
{
    Reader r = {.at = bytes, .size = size, .arena = arena};
    *c = (Cubin){0};
    if (!read_head(&r) || !read_names(&r) || !read_all_code(&r))
        return r.wrong;
    read_shared(&r);
    if (!read_attributes(&r) || !finish(&r, c))
        return r.wrong;
    return NULL;
}

const CubinKernel *cubin_kernel(const Cubin *c, const char *name)
{
    for (int i = 0; i < c->n; i++)
        if (strcmp(c->kernel[i].name, name) == 0)
            return &c->kernel[i];
    return NULL;
}
