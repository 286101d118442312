/* The words of a kernel's text, for read.c. */
#ifndef GRADC_KERNEL_READ_H
#define GRADC_KERNEL_READ_H

#include "kernel.h"

typedef struct Name {
    const char *text; /* "%12" or "i", interned */
    Val v;
} Name;

typedef struct Reader {
    Ctx *cx;
    int32_t file;
    const char *text;
    int32_t from, to; /* the token: bytes [from, to); empty at the end */
    bool failed;      /* one diagnostic a kernel */
    Kernel *k;
    VEC(Name) name;
} Reader;

void ktoken_next(Reader *r);
bool ktoken_is(const Reader *r, const char *word);
const char *ktoken_word(Reader *r);
/* One diagnostic a kernel: what is expected; another complaint, about the bytes [from, to). */
void ktoken_fail(Reader *r, const char *wanted);
void ktoken_refuse(Reader *r, int32_t from, int32_t to, const char *text);
bool ktoken_accept(Reader *r, const char *what);
void ktoken_expect(Reader *r, const char *what);
bool ktoken_at_digit(const Reader *r);
/* An integer without sign, at most `limit`. */
uint64_t ktoken_natural(Reader *r, uint64_t limit);
int64_t ktoken_size(Reader *r);
int64_t ktoken_integer(Reader *r);
double ktoken_number(Reader *r, DType t);
DType ktoken_dtype(Reader *r);
/* Position of the word in a table, with what it is called in a message. */
int ktoken_choice(Reader *r, const char *const *table, int n, const char *wanted);

#endif
