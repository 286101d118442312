/* The graph: builders, types, what is refused and in which words, text in and out. */
#include <check.h>
#include <stdio.h>
#include <string.h>

#include "graph/op.h"
#include "support/eval.h"

static Ctx cx;
static Graph *g;

static void start(void)
{
    ctx_init(&cx);
    g = graph_new(&cx, "test");
}

static void stop(void)
{
    graph_free(g);
    ctx_free(&cx);
}

static Ref input(const char *type)
{
    char *call = arena_printf(&cx.perm, "neg(%s)", type);
    Graph *t = graph_read_example(&cx, call, strlen(call));
    ck_assert_ptr_nonnull(t);
    Type made = *type_of(t, 1);
    graph_free(t);
    return g_input(g, count_inputs(g), made);
}

static void has_type(Ref r, const char *type)
{
    if (r == NONE)
        diag_print(&cx, stdout);
    ck_assert_uint_ne(r, NONE);
    ck_assert_str_eq(type_text(&cx.perm, type_of(g, r)), type);
}

/* r was refused with this message. */
static void refused(Ref r, const char *message)
{
    ck_assert_uint_eq(r, NONE);
    ck_assert_int_gt(cx.diag.n, 0);
    ck_assert_str_eq(cx.diag.at[cx.diag.n - 1]->text, message);
}

/* ---- types -------------------------------------------------------------------------- */

START_TEST(sizes_are_checked)
{
    const int64_t big = (int64_t)1 << 40;
    Type t = type_make(F32, 1, (int64_t[]){big});
    ck_assert(type_fits(&t));
    t = type_make(F32, 1, (int64_t[]){big + 1});
    ck_assert(!type_fits(&t));
    t = type_make(F32, 2, (int64_t[]){big, 33});
    ck_assert(!type_fits(&t));
    t = type_make(F32, 8, (int64_t[]){big, big, big, big, big, big, big, big});
    ck_assert(!type_fits(&t)); /* the product is 2^320 */
    t = type_make(U8, 3, (int64_t[]){big, 0, big});
    ck_assert(!type_fits(&t)); /* an extent of 0 hides nothing */
    t = type_make(U8, 2, (int64_t[]){0, 3});
    ck_assert(type_fits(&t) && type_elems(&t) == 0);
    t = type_make(F32, 2, (int64_t[]){-1, 3});
    ck_assert(!type_fits(&t));
}
END_TEST

START_TEST(broadcast_types_and_text)
{
    has_type(input("f32"), "f32");
    has_type(input("bf16[2,3]"), "bf16[2,3]");
    Ref x = input("f32[3]");
    has_type(g_broadcast(g, x, 3, (int64_t[]){4, 2, 3}), "f32[4,2,3]");
    has_type(g_sum_all(g, x), "f32");
    Ref wide = g_broadcast(g, x, 3, (int64_t[]){4, 2, 3});
    has_type(g_sum_to(g, wide, type_of(g, x)), "f32[3]");
}
END_TEST

/* ---- builders ------------------------------------------------------------------------- */

START_TEST(matmul_follows_numpy)
{
    const char *const shape[][3] = {
        {"f32[3]", "f32[3]", "f32"},
        {"f32[2,3]", "f32[3]", "f32[2]"},
        {"f32[3]", "f32[3,4]", "f32[4]"},
        {"f32[2,3]", "f32[3,4]", "f32[2,4]"},
        {"f32[5,2,3]", "f32[3,4]", "f32[5,2,4]"},
        {"f32[5,1,2,3]", "f32[7,3,4]", "f32[5,7,2,4]"},
        {"f32[3]", "f32[5,3,4]", "f32[5,4]"},
        {"f32[0,3]", "f32[3,4]", "f32[0,4]"},
    };
    for (size_t i = 0; i < sizeof shape / sizeof *shape; i++) {
        Ref x = input(shape[i][0]), y = input(shape[i][1]);
        has_type(g_matmul(g, x, y), shape[i][2]);
    }
}
END_TEST

START_TEST(convolutions_have_the_usual_sizes)
{
    const int64_t one[] = {1, 1}, two[] = {2, 2}, none[] = {0, 0};
    Ref x = input("f32[2,3,28,28]"), w = input("f32[8,3,3,3]"), d = input("f32[6,1,5,5]");
    has_type(g_conv(g, x, w, one, none, none, one, 1), "f32[2,8,26,26]");
    has_type(g_conv(g, x, w, two, one, one, one, 1), "f32[2,8,14,14]");
    has_type(g_conv(g, x, w, one, two, two, two, 1), "f32[2,8,28,28]");
    has_type(g_conv(g, x, d, one, none, none, one, 3), "f32[2,6,24,24]");
}
END_TEST

START_TEST(reports_state_both_facts)
{
    const int64_t one[] = {1, 1}, none[] = {0, 0}, back[] = {-1, 1};
    Ref x = input("f32[64,128]"), y = input("f32[64,10]"), i = input("i32[4]"), s = input("f32");
    Ref image = input("f32[2,3,8,8]"), w = input("f32[4,2,3,3]"), h = input("f16[64,128]");
    refused(g_matmul(g, x, y),
            "cannot multiply f32[64,128] by f32[64,10]: inner sizes 128 and 64 differ");
    Ref b = input("f32[3,2,5]"), c = input("f32[4,5,2]");
    refused(g_matmul(g, b, c),
            "cannot multiply f32[3,2,5] by f32[4,5,2]: batch sizes 3 and 4 differ");
    refused(g_matmul(g, s, x),
            "cannot multiply f32 by f32[64,128]: `@` takes matrices, not scalars");
    refused(g_add(g, x, y), "operands of `+` are f32[64,128] and f32[64,10]");
    refused(g_add(g, x, h), "operands of `+` are f32[64,128] and f16[64,128]");
    refused(g_unary(g, OP_exp, i), "`exp` takes floats, and this is i32[4]");
    refused(g_reduce(g, OP_sum, x, 2, false), "f32[64,128] has no axis 2");
    refused(g_reshape(g, x, 2, (int64_t[]){64, 12}),
            "cannot reshape f32[64,128] of 8192 elements to [64,12] of 768");
    refused(g_broadcast(g, y, 2, (int64_t[]){64, 20}), "cannot repeat f32[64,10] to [64,20]");
    refused(g_slice(g, i, 0, 2, 3, 1),
            "3 elements from 2 on by 1 do not lie in the 4 of axis 0 of i32[4]");
    refused(g_gather(g, x, s), "the index of `gather` is i32 or i64, not f32");
    refused(g_where(g, x, x, x), "the condition of `where` is bool, not f32[64,128]");
    refused(
        g_conv(g, image, w, one, none, none, one, 1),
        "cannot convolve f32[2,3,8,8] with f32[4,2,3,3] in 1 groups: 3 channels in, 4 out, and the "
        "weight takes 2");
    Ref w3 = input("f32[4,3,9,9]");
    refused(g_conv(g, image, w3, one, none, none, one, 1),
            "a kernel of 9 taps, 1 apart, does not fit into 8 elements");
    refused(g_conv(g, image, w3, one, back, none, one, 1),
            "stride and dilation are at least 1, padding at least 0, not 1, 1, -1 and 0");
    refused(g_full(g, type_make(F32, 2, (int64_t[]){1 << 30, 1 << 30}), 0),
            "f32[1073741824,1073741824] is more than 128 TiB, or has an axis of more than 2^40");
    refused(g_argmax(g, input("f32[2,0]"), 1),
            "`argmax` of axis 1 of f32[2,0]: there is no element to choose");
    refused(g_einsum(g, "ij,jk->ik", x, y), "`ij,jk->ik` does not fit f32[64,128] and f32[64,10]");
    int before = cx.diag.n; /* what is made of what was refused is silent */
    ck_assert_uint_eq(g_add(g, NONE, x), NONE);
    ck_assert_uint_eq(g_matmul(g, NONE, x), NONE);
    ck_assert_uint_eq(g_sum_all(g, NONE), NONE);
    ck_assert_int_eq(cx.diag.n, before);
}
END_TEST

/* One cast up and one down, around all axes. */
START_TEST(halves_are_summed_in_f32)
{
    Ref x = input("bf16[2,3,4]");
    Ref from = (Ref)g->node.n;
    has_type(g_sum_all(g, x), "bf16");
    ck_assert_int_eq(g->node.n - (int)from, 5);
    Type t = type_make(BF16, 2, (int64_t[]){1, 4});
    has_type(g_sum_to(g, x, &t), "bf16[1,4]");
    has_type(g_reduce(g, OP_reduce_max, x, 1, true), "bf16[2,1,4]");
    const Attr axis[] = {{.kind = ATTR_INT}, {.kind = ATTR_BOOL}};
    refused(g_node(g, OP_sum, &x, 1, axis),
            "`sum` is done in f32, and this is bf16[2,3,4]; cast it first");
}
END_TEST

START_TEST(copies_of_what_is_not_there_are_errors)
{
    Ref x = input("f32[2]"), y = g_add(g, x, x);
    Graph *to = graph_new(&cx, "to");
    Ref map[3] = {NONE};
    refused(graph_copy_node(to, g, y, map), "test: %2 is made of what is not there yet");
    map[x] = g_input(to, 0, *type_of(g, x));
    ck_assert_uint_ne(graph_copy_node(to, g, y, map), NONE);
    graph_free(to);
}
END_TEST

START_TEST(powers_become_products)
{
    Ref x = input("f32[3]");
    const double n[] = {2, 3, 4, 16, -1, -2, 0.5, 0, 17, 1.5};
    const int products[] = {1, 2, 2, 4, 0, 0, 0, 0, 0, 0};
    const int pows[] = {0, 0, 0, 0, 0, 1, 0, 0, 1, 1};
    for (int i = 0; i < 10; i++) {
        Ref y = g_full(g, *type_of(g, x), n[i]);
        Ref from = (Ref)g->node.n;
        ck_assert_uint_ne(g_pow(g, x, y), NONE);
        int muls = 0, general = 0;
        for (Ref r = from; r < (Ref)g->node.n; r++) {
            muls += op_of(g, r) == OP_mul;
            general += op_of(g, r) == OP_pow;
        }
        ck_assert_int_eq(muls, products[i]);
        ck_assert_int_eq(general, pows[i]);
    }
}
END_TEST

START_TEST(paths_name_block_calls)
{
    const Origin model = {.span = NO_SPAN}, h = {.span = NO_SPAN, .parent = &model, .name = "h.3"};
    const Origin call = {.span = NO_SPAN, .parent = &h};
    const Origin attn = {.span = NO_SPAN, .parent = &call, .name = "attn"};
    const Origin line = {.span = NO_SPAN, .parent = &attn};
    ck_assert_str_eq(origin_path(&cx.perm, &line), "h.3.attn");
    ck_assert_str_eq(origin_path(&cx.perm, &model), "");
    ck_assert_ptr_eq(origin_instance(&line), &attn);
    ck_assert_ptr_null(origin_instance(&model));
}
END_TEST

START_TEST(scan_is_checked)
{
    Ref h = input("f32[3]"), xs = input("f32[5,3]");
    Graph *b = g_body(g);
    Ref a = g_body_arg(b, 0, *type_of(g, h));
    Ref wrong = g_sum_all(b, a);
    graph_root(b, ROOT_RESULT, NULL, wrong, -1, -1);
    refused(g_scan(g, b, (Ref[]){h, xs}, 2,
                   (Scan){.carries = 1, .sequences = 1, .count = 5, .down = false}),
            "a value of `scan` begins as f32[3] and comes back as f32");
    refused(g_scan(g, b, (Ref[]){h, xs}, 2,
                   (Scan){.carries = 1, .sequences = 1, .count = 4, .down = false}),
            "`scan` runs 4 times, and a sequence is f32[5,3]");
    refused(g_scan(g, b, (Ref[]){h}, 1,
                   (Scan){.carries = 1, .sequences = 1, .count = 4, .down = false}),
            "`scan` of 1 values and 1 sequences has 1 operands");
    b->root.at[0].ref = a;
    Ref s = g_scan(g, b, (Ref[]){h, xs}, 2,
                   (Scan){.carries = 1, .sequences = 1, .count = 5, .down = false});
    ck_assert_int_eq(tuple_size(g, s), 1);
    has_type(g_pick(g, s, 0), "f32[3]");
    refused(g_pick(g, s, 1), "a tuple of 1 values has no value 1");
}
END_TEST

/* ---- text -------------------------------------------------------------------------------- */

static const char full[] =
    "# every kind of attribute\n"
    "graph \"a \\\"name\\\"\" {\n"
    "  %1 = input(index = 0, dtype = f32, shape = [2,3]) : f32[2,3]\n"
    "  %7 = slot(index = 3, dtype = f32, shape = [3, 4])\n"
    "  %2 = contract(%1, %7, extent = [2,4,3], out = 2, x = [i0, i2], y = [-i2+2, i1])\n"
    "  %3 = pad(%2, axis = 0, lo = 1, value = -inf)\n"
    "  %4 = literal(dtype = bf16, shape = [3], data = [1, -0.5, 0.1])\n"
    "  %5 = sum(cast(exp(%4), dtype = f32), axis = 0)\n"
    "  %6 = const(dtype = i64, value = -9223372036854775808)\n"
    "  reverse\n"
    "  %8 = scan(%1, carries = 1, count = 3, down = true, lean = false, body = {\n"
    "    %1 = arg(dtype = f32, shape = [2,3]) %2 = cast(%1, dtype = f16)\n"
    "    %3 = cast(%2, dtype = f32) result %3 result \"named\" %2 })\n"
    "  %9 = pick(%8, index = 1) : f16[3,2,3]\n"
    "  output \"y\" %3\n"
    "  gradient \"w\" %7 slot 3\n"
    "  assign %7 slot 3 guarded\n"
    "}\n";

static Graph *read_text(const char *text)
{
    return graph_read(&cx, source_add(&cx, "test.gir", text, strlen(text), false));
}

START_TEST(text_reads_back)
{
    Graph *first = read_text(full);
    diag_print(&cx, stdout);
    ck_assert_ptr_nonnull(first);
    ck_assert_ptr_null(graph_verify(first, &cx.perm));
    Text one, two;
    text_init(&one, &cx.perm);
    text_init(&two, &cx.perm);
    graph_print(first, &one);
    Graph *second = read_text(one.at);
    ck_assert_msg(second != NULL, "%s", one.at);
    graph_print(second, &two);
    ck_assert_str_eq(one.at, two.at);
    ck_assert_ptr_nonnull(strstr(one.at, "y = [-i2+2, i1]"));
    ck_assert_ptr_nonnull(strstr(one.at, "value = -9223372036854775808"));
    ck_assert_ptr_nonnull(strstr(one.at, "assign %2 slot 3 guarded"));
    ck_assert_uint_eq(first->n_primal, second->n_primal);
    graph_free(first);
    graph_free(second);
}
END_TEST

static const struct {
    const char *text, *message;
    int line, column;
} bad[] = {
    {"", "expected graph", 1, 1},
    {"graph g {}", "expected \"", 1, 7},
    {"graph \"g\" {", "expected `%1 = op(...)`, a root or `}`", 1, 12},
    {"graph \"g\" {}\n x", "expected nothing more", 2, 2},
    {"graph \"g\" { %1 = nothing(f32) }", "expected the name of an op before this", 1, 25},
    {"graph \"g\" { %1 = exp(%2) }", "expected a value that has been defined above", 1, 24},
    {"graph \"g\" { %1 = exp(f32)\n %1 = exp(f32) }", "expected a label that is not taken", 2, 16},
    {"graph \"g\" { %1 = exp(f32, size = 3) }", "expected an attribute of this op before `=`", 1,
     34},
    {"graph \"g\" { %1 = exp(f32[2]) : f32[3] }", "expected f32[2]", 1, 39},
    {"graph \"g\" { %1 = exp(i32) }", "`exp` takes floats, and this is i32", 1, 13},
    {"graph \"g\" { %1 = input(dtype = f99) }", "expected an element type before this", 1, 35},
    {"graph \"g\" { %1 = input(shape = [1 2]) }", "expected ,", 1, 35},
    {"graph \"g\" { %1 = sum(f32[2], keep = maybe) }", "expected true or false before this", 1, 42},
    {"graph \"g\" { %1 = const(dtype = f32, value = x) }", "expected a number", 1, 45},
    {"graph \"g\" { %1 = const(dtype = i32, value = 99999999999999999999) }",
     "expected a smaller integer", 1, 63},
    {"graph \"g\" { %1 = contract(f32, f32, x = [i99]) }", "expected an index from i0 to i15", 1,
     45},
    {"graph \"g\" { %1 = scan(f32, carries = 1, count = 1) }", "expected a body in front of this",
     1, 52},
    {"graph \"g\" { loss \"x }", "expected \"", 1, 22},
    {"graph \"g\" { loss %1 }", "expected a value that has been defined above", 1, 21},
};

START_TEST(mistakes_in_text_are_located)
{
    ck_assert_ptr_null(read_text(bad[_i].text));
    ck_assert_int_eq(cx.diag.n, 1);
    const Diag *d = cx.diag.at[0];
    int line, column;
    ck_assert_str_eq(d->text, bad[_i].message);
    source_position(cx.source.at[d->span.file], d->span.from, &line, &column);
    ck_assert_msg(line == bad[_i].line && column == bad[_i].column, "at %d:%d", line, column);
}
END_TEST

/* Damaged texts are refused, or give a graph that verifies and prints. */
START_TEST(damaged_texts_do_no_harm)
{
    static const char alphabet[] = "%0123456789=(),[]{}\"-*iabcdefghijklmnopqrstuvwxyz_ \n#";
    uint64_t s = 11;
    int read = 0;
    for (int k = 0; k < 4000; k++) {
        Ctx own;
        ctx_init(&own);
        char text[sizeof full];
        memcpy(text, full, sizeof full);
        size_t n = strlen(text);
        for (int change = next_int(&s, 1, 3); change > 0; change--) {
            size_t at = (size_t)next_int(&s, 0, (int)n - 1);
            if (next_int(&s, 0, 2) == 0) {
                memmove(text + at, text + at + 1, n - at);
                n--;
            } else {
                text[at] = alphabet[next_int(&s, 0, (int)sizeof alphabet - 2)];
            }
        }
        Graph *got = graph_read(&own, source_add(&own, "damaged", text, n, false));
        if (got != NULL) {
            Text t;
            text_init(&t, &own.perm);
            graph_print(got, &t);
            read++;
            graph_free(got);
        } else {
            ck_assert_int_gt(own.diag.n, 0);
        }
        ctx_free(&own);
    }
    ck_assert_int_gt(read, 100);
}
END_TEST

/* ---- verification -------------------------------------------------------------------------- */

static void broken(Graph *b, const char *what)
{
    const char *found = graph_verify(b, &cx.perm);
    ck_assert_msg(found != NULL && strstr(found, what) != NULL, "%s: %s", what,
                  found == NULL ? "not found" : found);
}

START_TEST(damage_is_found)
{
    Graph *b = read_text(full);
    ck_assert_ptr_nonnull(b);
    Ref c = 3;
    ck_assert_int_eq(op_of(b, c), OP_contract);
    Node kept = b->node.at[c];
    b->node.at[c].type.dim[0] = 5;
    broken(b, "its type is f32[5,4], and should be f32[2,4]");
    b->node.at[c] = kept;
    b->node.at[c].op = N_OPS;
    broken(b, "there is no such op");
    b->node.at[c] = kept;
    Ref *operand = &b->arg.at[kept.args];
    *operand = c;
    broken(b, "an operand does not come before it");
    *operand = NONE;
    broken(b, "an operand does not come before it");
    *operand = 1;
    b->node.at[c].attr = NULL;
    broken(b, "it has no attributes");
    b->node.at[c] = kept;
    b->node.at[c].n_args = 1000;
    broken(b, "its operands lie outside of the graph");
    b->node.at[c] = kept;
    Root root = b->root.at[0];
    b->root.at[0].ref = 999;
    broken(b, "a root `output` is no node");
    b->root.at[0] = root;
    b->root.at[0].kind = ROOT_LOSS;
    broken(b, "the loss is not one float");
    b->root.at[0] = root;
    b->root.at[1].slot = -1;
    broken(b, "a gradient is of one slot or one input");
    b->root.at[1].slot = 3;
    b->root.at[1].ref = 1;
    broken(b, "it is not of the type of the slot it is for");
    b->root.at[1].ref = 2;
    Ref scan = NONE;
    for (Ref r = 1; r < (Ref)b->node.n; r++)
        if (op_of(b, r) == OP_scan)
            scan = r;
    Graph *body = attr(b, scan, SCAN_BODY)->body;
    body->root.at[0].ref = 2;
    broken(b, "a value of `scan` begins as f32[2,3] and comes back as f16[2,3]");
    body->root.at[0].ref = 3;
    body->outer = NULL;
    broken(b, "its body belongs to another graph");
    body->outer = b;
    ck_assert_ptr_null(graph_verify(b, &cx.perm));
    graph_free(b);
}
END_TEST

/* ---- other forms ------------------------------------------------------------------------------
 */

/* Brackets outside of strings are balanced. */
static bool is_balanced(const char *s)
{
    char open[64];
    int n = 0;
    bool quoted = false;
    for (; *s != '\0'; s++) {
        if (*s == '\\' && quoted)
            s++;
        else if (*s == '"')
            quoted = !quoted;
        else if (!quoted && strchr("{[", *s) != NULL && n < 64)
            open[n++] = *s;
        else if (!quoted && strchr("}]", *s) != NULL &&
                 (n == 0 || open[--n] != (*s == '}' ? '{' : '[')))
            return false;
    }
    return n == 0 && !quoted;
}

START_TEST(json_and_dot_are_well_formed)
{
    Graph *b = read_text(full);
    Text json, dot;
    text_init(&json, &cx.perm);
    text_init(&dot, &cx.perm);
    graph_json(b, &json);
    graph_dot(b, &dot);
    ck_assert(is_balanced(json.at));
    ck_assert(is_balanced(dot.at));
    ck_assert_ptr_nonnull(
        strstr(json.at, "\"op\": \"contract\", \"type\": \"f32[2,4]\", \"args\": [1, 2]"));
    ck_assert_ptr_nonnull(strstr(json.at, "\"value\": \"-inf\""));
    ck_assert_ptr_nonnull(strstr(dot.at, "n1 -> n3;"));
    graph_free(b);
}
END_TEST

Suite *suite_graph(void);
Suite *suite_graph(void)
{
    Suite *s = suite_create("graph");
    TCase *c = tcase_create("graph");
    tcase_add_checked_fixture(c, start, stop);
    tcase_set_timeout(c, 120);
    tcase_add_test(c, sizes_are_checked);
    tcase_add_test(c, broadcast_types_and_text);
    tcase_add_test(c, matmul_follows_numpy);
    tcase_add_test(c, convolutions_have_the_usual_sizes);
    tcase_add_test(c, reports_state_both_facts);
    tcase_add_test(c, halves_are_summed_in_f32);
    tcase_add_test(c, copies_of_what_is_not_there_are_errors);
    tcase_add_test(c, powers_become_products);
    tcase_add_test(c, paths_name_block_calls);
    tcase_add_test(c, scan_is_checked);
    tcase_add_test(c, text_reads_back);
    tcase_add_loop_test(c, mistakes_in_text_are_located, 0, (int)(sizeof bad / sizeof *bad));
    tcase_add_test(c, damaged_texts_do_no_harm);
    tcase_add_test(c, damage_is_found);
    tcase_add_test(c, json_and_dot_are_well_formed);
    suite_add_tcase(s, c);
    return s;
}
