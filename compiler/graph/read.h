/* Between read.c and read_attr.c: a text of a graph, and how far it has been read. */
#ifndef GRADC_GRAPH_READ_H
#define GRADC_GRAPH_READ_H

#include "op.h"

typedef struct Reader {
    Ctx *cx;
    Graph *g;
    const char *text;
    int32_t at, end, source;
    VEC(Ref) label;   /* by number: what it stands for */
    int32_t n_inputs; /* made of types */
    int depth;
    bool failed; /* reported */
} Reader;

bool read_error(Reader *r, const char *expected); /* reports once; false */
bool read_token(Reader *r, const char *token);    /* takes it if it is next */
bool read_expect(Reader *r, const char *token);
const char *read_word(Reader *r); /* letters, digits, _; interned; may be "" */
bool read_int(Reader *r, int64_t *out);
const char *read_string(Reader *r);
bool read_type(Reader *r, DType dtype, Type *t); /* "[2,3]", behind its dtype */
Graph *read_body(Reader *r);
/* The value of attribute i of an op, into attr[i]; earlier attributes are known. */
void read_attr(Reader *r, const Op *op, int i, Attr *attr);

#endif
