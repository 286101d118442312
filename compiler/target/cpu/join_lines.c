/* Debug information of parts: a unit with a line for the code of each. Debuggers and profilers ask
 * no more of it than to name a line of the .model.
 * source: DWARF Debugging Information Format, version 4, sections 6.2 and 7.5 */
#include <string.h>
#include "joined.h"

enum {
    TAG_COMPILE_UNIT = 0x11,
    AT_NAME = 0x03,
    AT_STMT_LIST = 0x10,
    AT_LOW_PC = 0x11,
    AT_HIGH_PC = 0x12,
    AT_LANGUAGE = 0x13,
    AT_COMP_DIR = 0x1b,
    AT_PRODUCER = 0x25,
    FORM_ADDR = 0x01,
    FORM_DATA2 = 0x05,
    FORM_DATA8 = 0x07,
    FORM_STRING = 0x08,
    FORM_SEC_OFFSET = 0x17,
    LANG_C99 = 0x0c,
    LNS_COPY = 1,
    LNS_ADVANCE_PC = 2,
    LNS_ADVANCE_LINE = 3,
    LNS_SET_FILE = 4,
    LNE_END_SEQUENCE = 1,
    LNE_SET_ADDRESS = 2,
    VERSION = 4,
    OPCODE_BASE = 13
};

typedef struct Dwarf {
    Joined *j;
    int32_t section; /* that is written to */
    Text *to;
    int32_t text;
    VEC(const char *) path; /* of the files, the unit's first */
} Dwarf;

/* ---- bytes -------------------------------------------------------------------------------- */

static void put(Dwarf *d, uint64_t x, int bytes)
{
    for (int i = 0; i < bytes; i++)
        text_char(d->to, (char)(x >> 8 * i));
}

static void put_string(Dwarf *d, const char *s, size_t n)
{
    text_put(d->to, s, n);
    text_char(d->to, 0);
}

static void put_unsigned(Dwarf *d, uint64_t x)
{
    for (; x >= 0x80; x >>= 7)
        text_char(d->to, (char)(x | 0x80));
    text_char(d->to, (char)x);
}

static void put_signed(Dwarf *d, int64_t x)
{
    for (; x < -64 || x > 63; x >>= 7)
        text_char(d->to, (char)(x | 0x80));
    text_char(d->to, (char)(x & 0x7f));
}

/* An address in `section`, of 8 bytes or of 4. */
static void put_address(Dwarf *d, int32_t section, uint64_t at, int bytes)
{
    bool x86 = d->j->head.machine == ELF_X86_64;
    uint32_t type = bytes == 8 ? (x86 ? ELF_X86_64_64 : ELF_AARCH64_ABS64)
                               : (x86 ? ELF_X86_64_32 : ELF_AARCH64_ABS32);
    int32_t symbol = joined_section_symbol(d->j, section);
    joined_relocate(d->j, d->section, d->to->n, type, symbol, (int64_t)at);
    put(d, 0, bytes);
}

/* A length of 4 bytes that stands at `at` and counts what follows it. */
static void put_length(Dwarf *d, size_t at)
{
    uint32_t n = (uint32_t)(d->to->n - at - 4);
    for (int i = 0; i < 4; i++)
        d->to->at[at + (size_t)i] = (char)(n >> 8 * i);
}

/* Writes to the section; gives where that begins. The section as LLVM makes it, too. */
static uint64_t begin(Dwarf *d, const char *name)
{
    d->section = joined_section(d->j, name, ELF_PROGBITS, 0, 0);
    d->to = &d->j->section.at[d->section].bytes;
    return d->to->n;
}

static void end(Dwarf *d)
{
    d->j->section.at[d->section].size = d->to->n;
}

/* ---- files --------------------------------------------------------------------------------- */

static size_t folder_bytes(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? (size_t)(slash - path) : 0;
}

static const char *file_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

static void put_folder(Dwarf *d, const char *path)
{
    size_t n = folder_bytes(path);
    put_string(d, n > 0 ? path : ".", n > 0 ? n : 1);
}

static uint64_t file_number(Dwarf *d, const char *path)
{
    for (int i = 0; i < d->path.n; i++)
        if (strcmp(d->path.at[i], path) == 0)
            return (uint64_t)i + 1;
    vec_push(d->j->arena, &d->path, path);
    return (uint64_t)d->path.n;
}

/* ---- sections ------------------------------------------------------------------------------- */

static uint64_t write_abbreviations(Dwarf *d)
{
    static const unsigned char form[] = {
        AT_PRODUCER,     FORM_STRING, AT_LANGUAGE, FORM_DATA2, AT_NAME,   FORM_STRING, AT_STMT_LIST,
        FORM_SEC_OFFSET, AT_COMP_DIR, FORM_STRING, AT_LOW_PC,  FORM_ADDR, AT_HIGH_PC,  FORM_DATA8,
    };
    uint64_t at = begin(d, ".debug_abbrev");
    put(d, 1, 1);
    put(d, TAG_COMPILE_UNIT, 1);
    put(d, 0, 1); /* no children */
    text_put(d->to, (const char *)form, sizeof form);
    put(d, 0, 3); /* ends the entry, and the table */
    end(d);
    return at;
}

static void put_line(Dwarf *d, const CodeLine *c)
{
    put(d, 0, 1);
    put_unsigned(d, 9);
    put(d, LNE_SET_ADDRESS, 1);
    put_address(d, d->text, c->from, 8);
    put(d, LNS_SET_FILE, 1);
    put_unsigned(d, file_number(d, c->path));
    put(d, LNS_ADVANCE_LINE, 1);
    put_signed(d, c->line - 1);
    put(d, LNS_COPY, 1);
    put(d, LNS_ADVANCE_PC, 1);
    put_unsigned(d, c->to - c->from);
    put(d, 0, 1);
    put_unsigned(d, 1);
    put(d, LNE_END_SEQUENCE, 1);
}

/* Each file has its folder, as the first one has, which is the unit's. */
static void put_files(Dwarf *d)
{
    for (int i = 0; i < d->path.n; i++)
        put_folder(d, d->path.at[i]);
    put(d, 0, 1);
    for (int i = 0; i < d->path.n; i++) {
        const char *name = file_of(d->path.at[i]);
        put_string(d, name, strlen(name));
        /* Folder 0 is the unit's; others are relative to it, unless they are absolute. */
        bool same = folder_bytes(d->path.at[i]) == folder_bytes(d->path.at[0]) &&
                    strncmp(d->path.at[i], d->path.at[0], folder_bytes(d->path.at[0])) == 0;
        put_unsigned(d, same ? 0 : (uint64_t)i + 1);
        put(d, 0, 2); /* no time, no size */
    }
    put(d, 0, 1);
}

static uint64_t write_lines(Dwarf *d, const CodeLine *code, int n)
{
    static const unsigned char operands[OPCODE_BASE - 1] = {0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1};
    for (int i = 0; i < n; i++)
        file_number(d, code[i].path);
    uint64_t at = begin(d, ".debug_line");
    put(d, 0, 4);
    put(d, VERSION, 2);
    size_t head = d->to->n;
    put(d, 0, 4);
    put(d, 1, 1);    /* addresses advance by bytes */
    put(d, 1, 1);    /* operations of one */
    put(d, 1, 1);    /* lines are of statements */
    put(d, 0xfb, 1); /* special opcodes: lines from -5 on, */
    put(d, 14, 1);   /* 14 of them; none is used */
    put(d, OPCODE_BASE, 1);
    text_put(d->to, (const char *)operands, sizeof operands);
    put_files(d);
    put_length(d, head);
    for (int i = 0; i < n; i++)
        put_line(d, &code[i]);
    put_length(d, (size_t)at);
    end(d);
    return at;
}

static void write_unit(Dwarf *d, const JoinLines *lines, uint64_t abbreviations, int32_t line_table,
                       uint64_t line_at, uint64_t from, uint64_t to)
{
    const char *name = file_of(lines->path);
    int32_t abbrev = d->section;
    uint64_t at = begin(d, ".debug_info");
    put(d, 0, 4);
    put(d, VERSION, 2);
    put_address(d, abbrev, abbreviations, 4);
    put(d, 8, 1);
    put(d, 1, 1);
    put_string(d, lines->producer, strlen(lines->producer));
    put(d, LANG_C99, 2);
    put_string(d, name, strlen(name));
    put_address(d, line_table, line_at, 4);
    put_folder(d, lines->path);
    put_address(d, d->text, from, 8);
    put(d, to - from, 8);
    put_length(d, (size_t)at);
    end(d);
}

void joined_lines(Joined *j, const JoinLines *lines, const CodeLine *code, int n)
{
    Dwarf d = {.j = j, .text = code[0].section};
    file_number(&d, lines->path);
    uint64_t line_at = write_lines(&d, code, n);
    int32_t line_table = d.section;
    uint64_t abbreviations = write_abbreviations(&d);
    write_unit(&d, lines, abbreviations, line_table, line_at, code[0].from, code[n - 1].to);
}
