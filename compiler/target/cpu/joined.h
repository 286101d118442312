/* An object that is being joined. */
#ifndef GRADC_TARGET_CPU_JOINED_H
#define GRADC_TARGET_CPU_JOINED_H

#include "../../base/intern.h"
#include "../elf.h"
#include "join.h"

typedef struct JoinedSection {
    const char *name; /* interned, as all names here */
    uint32_t type;
    uint64_t flags, entsize, align;
    Text bytes;        /* NOBITS: none ... */
    uint64_t size;     /* ... of so many */
    int32_t symbol;    /* that stands for the section, or -1 */
    VEC(ElfRela) rela; /* their symbols are indices of Joined.symbol */
} JoinedSection;

typedef struct JoinedSymbol {
    const char *name;
    uint8_t info, other;
    uint16_t special; /* ELF_ABS and the like; 0: see section */
    int32_t section;  /* -1: undefined, or special */
    uint64_t value, size;
} JoinedSymbol;

typedef struct Joined {
    Arena *arena;
    Interns names;
    ElfHeader head; /* machine, flags */
    VEC(JoinedSection) section;
    VEC(JoinedSymbol) symbol;
} Joined;

/* The section of these properties, made if it is not there. */
int32_t joined_section(Joined *j, const char *name, uint32_t type, uint64_t flags,
                       uint64_t entsize);
int32_t joined_section_symbol(Joined *j, int32_t section);
void joined_relocate(Joined *j, int32_t section, uint64_t offset, uint32_t type, int32_t symbol,
                     int64_t addend);

/* join_write.c */
void joined_write(Joined *j, const unsigned char **bytes, size_t *n);

/* join_lines.c: code of [from, to) of a section, which is the same for all, in order. */
typedef struct CodeLine {
    int32_t section;
    uint64_t from, to;
    const char *path;
    int line;
} CodeLine;
void joined_lines(Joined *j, const JoinLines *lines, const CodeLine *code, int n);

#endif
