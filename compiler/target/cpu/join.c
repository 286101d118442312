/* Reads the parts of an object, and puts what they have of each section behind one another. */
#include <string.h>
#include "joined.h"

enum { MOST_NOBITS = 1 << 20 };

typedef struct Reader {
    Joined *j;
    const JoinPart *part;
    bool first;
    ElfHeader head;
    ElfSection *section;
    int32_t *to;    /* by section: in the joined object; -1: it is left out */
    uint64_t *base; /* ... and where it begins there */
    ElfSymbol *symbol;
    uint64_t n_symbols;
    const char *strings;
    int32_t *symbol_to; /* by symbol */
    int32_t text;       /* in the joined object, or -1; its code lies there ... */
    uint64_t from, until;
} Reader;

/* ---- the joined object ------------------------------------------------------------------- */

int32_t joined_section(Joined *j, const char *name, uint32_t type, uint64_t flags, uint64_t entsize)
{
    name = intern(&j->names, name);
    for (int i = 0; i < j->section.n; i++) {
        const JoinedSection *s = &j->section.at[i];
        if (s->name == name && s->type == type && s->flags == flags && s->entsize == entsize)
            return i;
    }
    JoinedSection s = {.name = name, .type = type, .flags = flags, .entsize = entsize};
    s.align = 1;
    s.symbol = -1;
    text_init(&s.bytes, j->arena);
    vec_push(j->arena, &j->section, s);
    return j->section.n - 1;
}

int32_t joined_section_symbol(Joined *j, int32_t section)
{
    if (j->section.at[section].symbol < 0) {
        JoinedSymbol s = {.name = "", .info = ELF_SECTION, .section = section};
        j->section.at[section].symbol = j->symbol.n;
        vec_push(j->arena, &j->symbol, s);
    }
    return j->section.at[section].symbol;
}

void joined_relocate(Joined *j, int32_t section, uint64_t offset, uint32_t type, int32_t symbol,
                     int64_t addend)
{
    ElfRela r = {offset, (uint64_t)symbol << 32 | type, addend};
    vec_push(j->arena, &j->section.at[section].rela, r);
}

static int32_t find_global(const Joined *j, const char *name)
{
    for (int i = 0; i < j->symbol.n; i++)
        if (j->symbol.at[i].name == name && j->symbol.at[i].info >> 4 != ELF_LOCAL)
            return i;
    return -1;
}

/* ---- a part as it was read ------------------------------------------------------------------ */

static bool lies_in(const Reader *r, uint64_t offset, uint64_t size)
{
    return offset <= r->part->n && size <= r->part->n - offset;
}

/* A copy: entries in the file need not be aligned. */
static void *table(const Reader *r, uint64_t offset, uint64_t n, size_t entry)
{
    if (n > r->part->n || !lies_in(r, offset, n * entry))
        return NULL;
    void *copy = arena_alloc(r->j->arena, (size_t)n * entry);
    memcpy(copy, r->part->bytes + offset, (size_t)n * entry);
    return copy;
}

/* Of a string table, which ends with a NUL. */
static const char *string(const Reader *r, const ElfSection *table, uint64_t at)
{
    if (table->type != ELF_STRTAB || !lies_in(r, table->offset, table->size) || at >= table->size)
        return NULL;
    const char *s = (const char *)r->part->bytes + table->offset;
    return s[table->size - 1] == 0 ? s + at : NULL;
}

static const char *read_head(Reader *r)
{
    static const unsigned char ident[] = {0x7f, 'E', 'L', 'F', 2, 1, 1};
    if (r->part->n < sizeof r->head)
        return "it is cut short";
    memcpy(&r->head, r->part->bytes, sizeof r->head);
    const ElfHeader *h = &r->head;
    if (memcmp(h->ident, ident, sizeof ident) != 0 || h->type != ELF_RELOCATABLE ||
        h->shentsize != sizeof(ElfSection))
        return "it is no object of this kind";
    if (r->first)
        r->j->head = *h;
    if (h->machine != r->j->head.machine || h->flags != r->j->head.flags)
        return "it is for another machine";
    r->section = table(r, h->shoff, h->shnum, sizeof *r->section);
    return r->section == NULL || h->shstrndx >= h->shnum ? "its sections are beyond its end" : NULL;
}

/* Lines come from the model, for the part is kept for any: only how to unwind it stays. */
static bool is_wanted(const Reader *r, const ElfSection *s, const char *name)
{
    switch (s->type) {
    case ELF_NONE:
    case ELF_SYMTAB:
    case ELF_STRTAB:
    case ELF_RELA:
    case ELF_ADDRSIG:
        return false;
    default:
        return r->first || strncmp(name, ".debug_", 7) != 0 || strcmp(name, ".debug_frame") == 0;
    }
}

static void pad(const Joined *j, JoinedSection *to, uint64_t align)
{
    to->align = align > to->align ? align : to->align;
    char fill = (to->flags & ELF_EXEC) != 0 && j->head.machine == ELF_X86_64 ? '\xcc' : 0;
    uint64_t gap = (uint64_t)align_up((int64_t)to->size, (int64_t)align) - to->size;
    to->size += gap;
    for (uint64_t i = 0; i < gap && to->type != ELF_NOBITS; i++)
        text_char(&to->bytes, fill);
}

static const char *read_section(Reader *r, int i)
{
    const ElfSection *s = &r->section[i];
    const char *name = string(r, &r->section[r->head.shstrndx], s->name);
    r->to[i] = -1;
    if (name == NULL)
        return "a section has no name";
    if (!is_wanted(r, s, name))
        return NULL;
    uint64_t align = s->align > 0 ? s->align : 1;
    if ((align & (align - 1)) != 0 || align > 4096)
        return "a section is aligned strangely";
    if (s->type == ELF_NOBITS ? s->size > MOST_NOBITS : !lies_in(r, s->offset, s->size))
        return "a section is beyond its end";
    r->to[i] = joined_section(r->j, name, s->type, s->flags, s->entsize);
    JoinedSection *to = &r->j->section.at[r->to[i]];
    pad(r->j, to, align);
    r->base[i] = to->size;
    to->size += s->size;
    if ((s->flags & ELF_EXEC) != 0) {
        r->text = r->to[i];
        r->from = r->base[i];
        r->until = to->size;
    }
    if (s->type != ELF_NOBITS)
        text_put(&to->bytes, (const char *)r->part->bytes + s->offset, (size_t)s->size);
    return NULL;
}

/* ---- symbols -------------------------------------------------------------------------------- */

static int32_t add_symbol(Joined *j, const JoinedSymbol *s)
{
    if (s->info >> 4 == ELF_LOCAL) {
        vec_push(j->arena, &j->symbol, *s);
        return j->symbol.n - 1;
    }
    int32_t known = find_global(j, s->name);
    if (known < 0) {
        vec_push(j->arena, &j->symbol, *s);
        return j->symbol.n - 1;
    }
    JoinedSymbol *k = &j->symbol.at[known];
    if (s->section < 0)
        return known;
    if (k->section >= 0)
        return -1;
    *k = *s;
    return known;
}

/* Symbols of what is left out are left out, as are the names of the parts' files. */
static bool is_left_out(const Reader *r, const ElfSymbol *s)
{
    bool in_section = s->section != ELF_NONE && s->section < ELF_RESERVED;
    return (in_section && r->to[s->section] < 0) || (!r->first && (s->info & 15) == ELF_FILE);
}

/* Labels of constants are numbered anew: each part has its own of these names, and where LLVM links
 * objects by RuntimeDyld, as LLVM 16 does for x86-64, one name is one symbol. */
static const char *name_of(Reader *r, const ElfSymbol *s, const char *name)
{
    if (r->part->as != NULL && strcmp(name, r->part->defines) == 0)
        name = r->part->as;
    else if (!r->first && s->info >> 4 == ELF_LOCAL && strncmp(name, ".L", 2) == 0)
        name = arena_printf(r->j->arena, ".L%d", r->j->symbol.n);
    return intern(&r->j->names, name);
}

static const char *read_symbol(Reader *r, const ElfSection *names, uint64_t i)
{
    const ElfSymbol *s = &r->symbol[i];
    bool in_section = s->section != ELF_NONE && s->section < ELF_RESERVED;
    r->symbol_to[i] = -1;
    if (in_section && s->section >= r->head.shnum)
        return "a symbol is in no section";
    if (i == 0 || is_left_out(r, s))
        return NULL;
    if ((s->info & 15) == ELF_SECTION) {
        r->symbol_to[i] = in_section ? joined_section_symbol(r->j, r->to[s->section]) : -1;
        return NULL;
    }
    const char *name = string(r, names, s->name);
    if (name == NULL)
        return "a symbol has no name";
    JoinedSymbol x = {.name = name_of(r, s, name), .info = s->info, .other = s->other};
    x.section = in_section ? r->to[s->section] : -1;
    x.special = s->section >= ELF_RESERVED ? s->section : 0;
    x.value = s->value + (in_section ? r->base[s->section] : 0);
    x.size = s->size;
    r->symbol_to[i] = add_symbol(r->j, &x);
    return r->symbol_to[i] < 0 ? "it defines what another part defines" : NULL;
}

static const char *read_symbols(Reader *r)
{
    for (int i = 0; i < r->head.shnum; i++) {
        const ElfSection *s = &r->section[i];
        if (s->type != ELF_SYMTAB)
            continue;
        r->n_symbols = s->size / sizeof *r->symbol;
        r->symbol = table(r, s->offset, r->n_symbols, sizeof *r->symbol);
        if (r->symbol == NULL || s->link >= r->head.shnum)
            return "its symbols are beyond its end";
        r->symbol_to = NEW_ARRAY(r->j->arena, int32_t, r->n_symbols);
        const char *wrong = NULL;
        for (uint64_t k = 0; k < r->n_symbols && wrong == NULL; k++)
            wrong = read_symbol(r, &r->section[s->link], k);
        return wrong;
    }
    return "it has no symbols";
}

/* ---- relocations ------------------------------------------------------------------------------
 */

static const char *read_relocation(Reader *r, int section, const ElfRela *x)
{
    uint64_t symbol = x->info >> 32;
    if (symbol >= r->n_symbols || r->symbol_to[symbol] < 0 || x->offset >= r->section[section].size)
        return "a relocation is of nothing that is here";
    const ElfSymbol *s = &r->symbol[symbol];
    int64_t moved = (s->info & 15) == ELF_SECTION ? (int64_t)r->base[s->section] : 0;
    joined_relocate(r->j, r->to[section], r->base[section] + x->offset, (uint32_t)x->info,
                    r->symbol_to[symbol], x->addend + moved);
    return NULL;
}

static const char *read_relocations(Reader *r, const ElfSection *s)
{
    if (s->info >= r->head.shnum)
        return "relocations are of no section";
    if (r->to[s->info] < 0)
        return NULL;
    uint64_t n = s->size / sizeof(ElfRela);
    const ElfRela *x = table(r, s->offset, n, sizeof *x);
    if (x == NULL)
        return "its relocations are beyond its end";
    const char *wrong = NULL;
    for (uint64_t i = 0; i < n && wrong == NULL; i++)
        wrong = read_relocation(r, (int)s->info, &x[i]);
    return wrong;
}

/* ---- parts -------------------------------------------------------------------------------------
 */

static const char *read_part(Reader *r)
{
    const char *wrong = read_head(r);
    if (wrong != NULL)
        return wrong;
    int n = r->head.shnum;
    r->to = NEW_ARRAY(r->j->arena, int32_t, n);
    r->base = NEW_ARRAY(r->j->arena, uint64_t, n);
    for (int i = 0; i < n && wrong == NULL; i++)
        wrong = read_section(r, i);
    if (wrong == NULL)
        wrong = read_symbols(r);
    for (int i = 0; i < n && wrong == NULL; i++)
        if (r->section[i].type == ELF_RELA)
            wrong = read_relocations(r, &r->section[i]);
    return wrong;
}

static void hide(Joined *j)
{
    for (int i = 0; i < j->symbol.n; i++) {
        JoinedSymbol *s = &j->symbol.at[i];
        if (s->info >> 4 == ELF_GLOBAL && (s->other & 3) == ELF_HIDDEN && s->section >= 0) {
            s->info = (uint8_t)(ELF_LOCAL << 4 | (s->info & 15));
            s->other = 0;
        }
    }
}

/* Hidden symbols are those of the object's own parts. */
static const char *missing(const Joined *j)
{
    for (int i = 0; i < j->symbol.n; i++)
        if (j->symbol.at[i].section < 0 && (j->symbol.at[i].other & 3) == ELF_HIDDEN)
            return j->symbol.at[i].name;
    return NULL;
}

const char *join_parts(const JoinPart *part, int n, const JoinLines *lines, Arena *arena,
                       const unsigned char **bytes, size_t *n_bytes)
{
    Joined j = {.arena = arena, .names = {.arena = arena}};
    CodeLine *code = NEW_ARRAY(arena, CodeLine, n);
    int n_code = 0;
    for (int i = 0; i < n; i++) {
        Reader r = {.j = &j, .part = &part[i], .first = i == 0, .text = -1};
        const char *wrong = read_part(&r);
        if (wrong != NULL)
            return arena_printf(arena, "part %d, %s: %s", i, part[i].defines, wrong);
        if (part[i].path != NULL && r.until > r.from)
            code[n_code++] = (CodeLine){r.text, r.from, r.until, part[i].path, part[i].line};
    }
    const char *name = missing(&j);
    if (name != NULL)
        return arena_printf(arena, "no part defines %s", name);
    hide(&j);
    if (lines != NULL && n_code > 0)
        joined_lines(&j, lines, code, n_code);
    joined_write(&j, bytes, n_bytes);
    return NULL;
}
