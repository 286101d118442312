/* Writes a joined object: sections, each with its relocations behind it, symbols, names. */
#include <string.h>
#include "joined.h"

typedef struct Writer {
    Joined *j;
    Text out, names;
    Interns known; /* names that have a place */
    VEC(const char *) name;
    VEC(uint32_t) place;     /* ... by their order of appearance */
    VEC(ElfSection) section; /* headers */
    int32_t *number;         /* by section of j: its header */
    uint32_t *symbol;        /* by symbol of j: its index in the file */
} Writer;

static uint32_t name_place(Writer *w, const char *name)
{
    if (name[0] == 0)
        return 0;
    for (int i = w->name.n; i-- > 0;)
        if (w->name.at[i] == name)
            return w->place.at[i];
    uint32_t at = (uint32_t)w->names.n;
    text_put(&w->names, name, strlen(name) + 1);
    vec_push(w->j->arena, &w->name, name);
    vec_push(w->j->arena, &w->place, at);
    return at;
}

static void pad(Writer *w, uint64_t align)
{
    while (w->out.n % align != 0)
        text_char(&w->out, 0);
}

static ElfSection *add_header(Writer *w, const char *name, uint32_t type, uint64_t align)
{
    pad(w, align);
    ElfSection s = {.name = name_place(w, intern(&w->j->names, name)), .type = type};
    s.offset = w->out.n;
    s.align = align;
    vec_push(w->j->arena, &w->section, s);
    return &w->section.at[w->section.n - 1];
}

/* Local symbols stand before the others; gives how many there are with the null symbol. */
static uint32_t number_symbols(Writer *w)
{
    uint32_t n = 1, locals = 0;
    w->symbol = NEW_ARRAY(w->j->arena, uint32_t, w->j->symbol.n);
    for (int global = 0; global < 2; global++) {
        for (int i = 0; i < w->j->symbol.n; i++)
            if ((w->j->symbol.at[i].info >> 4 != ELF_LOCAL) == global)
                w->symbol[i] = n++;
        locals = global == 0 ? n : locals;
    }
    return locals;
}

static void write_section(Writer *w, int i)
{
    const JoinedSection *s = &w->j->section.at[i];
    ElfSection *h = add_header(w, s->name, s->type, s->align);
    h->flags = s->flags;
    h->size = s->size;
    h->entsize = s->entsize;
    text_put(&w->out, s->bytes.at, s->bytes.n);
    w->number[i] = w->section.n - 1;
}

static void write_relocations(Writer *w, int i, uint32_t symbols)
{
    const JoinedSection *s = &w->j->section.at[i];
    if (s->rela.n == 0)
        return;
    const char *name = arena_printf(w->j->arena, ".rela%s", s->name);
    ElfSection *h = add_header(w, name, ELF_RELA, 8);
    h->flags = ELF_INFO_LINK;
    h->size = (uint64_t)s->rela.n * sizeof(ElfRela);
    h->entsize = sizeof(ElfRela);
    h->link = symbols;
    h->info = (uint32_t)w->number[i];
    for (int k = 0; k < s->rela.n; k++) {
        ElfRela r = s->rela.at[k];
        r.info = (uint64_t)w->symbol[r.info >> 32] << 32 | (uint32_t)r.info;
        text_put(&w->out, (const char *)&r, sizeof r);
    }
}

static void write_symbols(Writer *w, uint32_t locals)
{
    const Joined *j = w->j;
    ElfSection *h = add_header(w, ".symtab", ELF_SYMTAB, 8);
    h->size = (uint64_t)(j->symbol.n + 1) * sizeof(ElfSymbol);
    h->entsize = sizeof(ElfSymbol);
    h->info = locals;
    h->link = (uint32_t)w->section.n;
    ElfSymbol *file = NEW_ARRAY(j->arena, ElfSymbol, j->symbol.n + 1);
    for (int i = 0; i < j->symbol.n; i++) {
        const JoinedSymbol *s = &j->symbol.at[i];
        int32_t section = s->section >= 0 ? w->number[s->section] : s->special;
        file[w->symbol[i]] = (ElfSymbol){.name = name_place(w, s->name),
                                         .info = s->info,
                                         .other = s->other,
                                         .section = (uint16_t)section,
                                         .value = s->value,
                                         .size = s->size};
    }
    text_put(&w->out, (const char *)file, (size_t)h->size);
}

static void write_names(Writer *w)
{
    ElfSection *h = add_header(w, ".strtab", ELF_STRTAB, 1);
    h->size = w->names.n;
    text_put(&w->out, w->names.at, w->names.n);
}

void joined_write(Joined *j, const unsigned char **bytes, size_t *n)
{
    Writer w = {.j = j};
    text_init(&w.out, j->arena);
    text_init(&w.names, j->arena);
    text_char(&w.names, 0);
    w.number = NEW_ARRAY(j->arena, int32_t, j->section.n);
    uint32_t locals = number_symbols(&w), symbols = 1;
    for (int i = 0; i < j->section.n; i++)
        symbols += j->section.at[i].rela.n > 0 ? 2 : 1;
    ElfHeader head = j->head;
    text_put(&w.out, (const char *)&head, sizeof head);
    ElfSection none = {0};
    vec_push(j->arena, &w.section, none);
    for (int i = 0; i < j->section.n; i++) {
        write_section(&w, i);
        write_relocations(&w, i, symbols);
    }
    write_symbols(&w, locals);
    write_names(&w);
    pad(&w, 8);
    head.shoff = w.out.n;
    head.shnum = (uint16_t)w.section.n;
    head.shstrndx = (uint16_t)(w.section.n - 1);
    text_put(&w.out, (const char *)w.section.at, (size_t)w.section.n * sizeof *w.section.at);
    memcpy(w.out.at, &head, sizeof head);
    *bytes = (const unsigned char *)w.out.at;
    *n = w.out.n;
}
