/* ELF objects of 64 bits, little-endian, as far as LLVM and NVRTC write them here.
 * source: System V Application Binary Interface, chapters 4 and 5 */
#ifndef GRADC_TARGET_ELF_H
#define GRADC_TARGET_ELF_H

#include <stdint.h>

enum {
    ELF_RELOCATABLE = 1,
    ELF_X86_64 = 62,
    ELF_AARCH64 = 183,
    ELF_CUDA = 190,
    ELF_NONE = 0,     /* sh_type: unused; st_shndx: undefined */
    ELF_ABS = 0xfff1, /* st_shndx from here on: no section */
    ELF_RESERVED = 0xff00,
    /* sh_type */
    ELF_PROGBITS = 1,
    ELF_SYMTAB = 2,
    ELF_STRTAB = 3,
    ELF_RELA = 4,
    ELF_NOBITS = 8,
    ELF_ADDRSIG = 0x6fff4c03, /* hints of LLVM to linkers, which need not be there */
    /* sh_flags */
    ELF_ALLOC = 2,
    ELF_EXEC = 4,
    ELF_INFO_LINK = 0x40,
    /* st_info: binding << 4 | type; st_other: visibility */
    ELF_LOCAL = 0,
    ELF_GLOBAL = 1,
    ELF_NOTYPE = 0,
    ELF_SECTION = 3,
    ELF_FILE = 4,
    ELF_HIDDEN = 2,
    /* relocations: an address, and 32 bits of one */
    ELF_X86_64_64 = 1,
    ELF_X86_64_32 = 10,
    ELF_AARCH64_ABS64 = 257,
    ELF_AARCH64_ABS32 = 258
};

typedef struct ElfHeader {
    unsigned char ident[16];
    uint16_t type, machine;
    uint32_t version;
    uint64_t entry, phoff, shoff;
    uint32_t flags;
    uint16_t ehsize, phentsize, phnum, shentsize, shnum, shstrndx;
} ElfHeader;

typedef struct ElfSection {
    uint32_t name, type;
    uint64_t flags, addr, offset, size;
    uint32_t link, info;
    uint64_t align, entsize;
} ElfSection;

typedef struct ElfSymbol {
    uint32_t name;
    uint8_t info, other;
    uint16_t section;
    uint64_t value, size;
} ElfSymbol;

typedef struct ElfRela {
    uint64_t offset, info; /* info: symbol << 32 | type */
    int64_t addend;
} ElfRela;

_Static_assert(sizeof(ElfHeader) == 64 && sizeof(ElfSection) == 64 && sizeof(ElfSymbol) == 24 &&
                   sizeof(ElfRela) == 24,
               "as in the file");

#endif
