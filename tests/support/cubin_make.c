/* A small writer of ELF. */
#include "cubin_make.h"

#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "../../compiler/target/elf.h"

enum { MOST_SECTIONS = 4 + 3 * MADE_KERNELS, NAMES_BYTES = 1 << 15, NV_INFO = 0x70000000 };

typedef struct Maker {
    unsigned char *to;
    size_t at;
    ElfSection section[MOST_SECTIONS];
    int n;
    char names[NAMES_BYTES]; /* of sections and symbols */
    size_t n_names;
} Maker;

static void put(Maker *m, const void *p, size_t n)
{
    assert(m->at + n <= MADE_BYTES);
    memcpy(m->to + m->at, p, n);
    m->at += n;
}

static void put_word(Maker *m, uint32_t x)
{
    put(m, &x, sizeof x);
}

static uint32_t add_name(Maker *m, const char *prefix, const char *name)
{
    size_t from = m->n_names, n = strlen(prefix) + strlen(name) + 1;
    assert(from + n <= NAMES_BYTES);
    snprintf(m->names + from, n, "%s%s", prefix, name);
    m->n_names += n;
    return (uint32_t)from;
}

/* A section that begins here. */
static ElfSection *begin(Maker *m, const char *prefix, const char *name, uint32_t type)
{
    assert(m->n < MOST_SECTIONS);
    ElfSection *s = &m->section[m->n++];
    *s = (ElfSection){.name = add_name(m, prefix, name), .type = type, .offset = m->at};
    return s;
}

/* An attribute of .nv.info with two words. */
static void put_resource(Maker *m, unsigned kind, uint32_t symbol, uint32_t value)
{
    put_word(m, 4 | kind << 8 | 8u << 16);
    put_word(m, symbol);
    put_word(m, value);
}

static void put_code(Maker *m, const MadeKernel *k)
{
    ElfSection *s = begin(m, ".text.", k->name, ELF_PROGBITS);
    for (unsigned i = 0; i < k->loads + k->stores + k->beside; i++) {
        uint32_t op = i < k->loads ? 0x983 : i < k->loads + k->stores ? 0x387 : 0x918;
        for (int j = 0; j < 4; j++)
            put_word(m, j == 0 ? 0x7000 | op : 0);
    }
    s->size = m->at - s->offset;
}

static void put_arguments(Maker *m, const MadeKernel *k)
{
    ElfSection *s = begin(m, ".nv.info.", k->name, NV_INFO);
    put_word(m, 0x3504 | 4u << 16); /* something else, with a size ... */
    put_word(m, 0);
    put_word(m, 0x1903 | 8 * k->n_arguments << 16); /* ... and without */
    for (unsigned i = k->n_arguments; i-- > 0;) {
        put_word(m, 0x1704 | 12u << 16);
        put_word(m, 0);
        put_word(m, i | 8 * i << 16);
        put_word(m, 8u << 18 | 0xf000);
    }
    s->size = m->at - s->offset;
}

static void put_kernel(Maker *m, int arch, const MadeKernel *k)
{
    put_code(m, k);
    put_arguments(m, k);
    ElfSection *s = begin(m, ".nv.shared.", k->name, ELF_NOBITS);
    s->size = k->shared_bytes + (arch >= 90 ? 1024 : 0);
}

/* Sections 1 and 2, after the null one; the strings follow at the end. */
static void put_symbols(Maker *m, const MadeKernel *k, int n)
{
    ElfSymbol none = {0};
    begin(m, "", ".strtab", ELF_STRTAB);
    ElfSection *s = begin(m, "", ".symtab", ELF_SYMTAB);
    put(m, &none, sizeof none);
    for (int i = 0; i < n; i++) {
        ElfSymbol x = {.name = add_name(m, "", k[i].name), .info = 0x12, .section = 1};
        put(m, &x, sizeof x);
    }
    s->size = m->at - s->offset;
    s->link = 1;
    s->entsize = sizeof none;
}

static void put_resources(Maker *m, const MadeKernel *k, int n)
{
    ElfSection *s = begin(m, "", ".nv.info", NV_INFO);
    for (int i = 0; i < n; i++) {
        put_resource(m, 0x2f, (uint32_t)i + 1, k[i].registers);
        put_resource(m, 0x11, (uint32_t)i + 1, k[i].frame_bytes);
        put_resource(m, 0x12, (uint32_t)i + 1, k[i].frame_bytes);
    }
    s->size = m->at - s->offset;
}

size_t make_cubin(int arch, const MadeKernel *k, int n, unsigned char *to)
{
    static const unsigned char ident[16] = {0x7f, 'E', 'L', 'F', 2, 1, 1, 0x41, 8};
    Maker m = {.to = to, .at = sizeof(ElfHeader)};
    assert(n <= MADE_KERNELS);
    begin(&m, "", "", ELF_NONE);
    put_symbols(&m, k, n);
    put_resources(&m, k, n);
    for (int i = 0; i < n; i++)
        put_kernel(&m, arch, &k[i]);
    m.section[1].offset = m.at;
    m.section[1].size = m.n_names;
    put(&m, m.names, m.n_names);
    ElfHeader head = {.type = 2,
                      .machine = ELF_CUDA,
                      .version = 1,
                      .shoff = m.at,
                      .flags = (uint32_t)arch << 8 | 4,
                      .ehsize = sizeof head,
                      .shentsize = sizeof(ElfSection),
                      .shnum = (uint16_t)m.n,
                      .shstrndx = 1};
    memcpy(head.ident, ident, sizeof ident);
    put(&m, m.section, (size_t)m.n * sizeof *m.section);
    memcpy(to, &head, sizeof head);
    return m.at;
}
