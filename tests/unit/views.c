/* Builders of views. */
#include <check.h>
#include <string.h>

#include "graph/op.h"

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

START_TEST(axes_of_one_element_move_by_a_reshape)
{
    const struct {
        int64_t dim[4];
        int perm[4];
        bool still; /* nothing moves in memory */
    } form[] = {
        {{1, 12, 3, 2}, {1, 0, 2, 3}, true},  {{1, 1, 3, 2}, {2, 1, 3, 0}, true},
        {{4, 12, 1, 2}, {2, 0, 1, 3}, true},  {{4, 0, 1, 2}, {2, 0, 1, 3}, true},
        {{4, 12, 3, 2}, {0, 1, 2, 3}, true},  {{4, 12, 1, 2}, {1, 0, 2, 3}, false},
        {{1, 12, 3, 2}, {2, 0, 1, 3}, false}, {{4, 3, 1, 2}, {3, 2, 0, 1}, false},
    };
    for (size_t i = 0; i < sizeof form / sizeof *form; i++) {
        Ref x = g_input(g, (int)i, type_make(F32, 4, form[i].dim));
        Ref y = g_move_axes(g, x, form[i].perm);
        for (int a = 0; a < 4; a++)
            ck_assert_int_eq(dim(g, y, a), form[i].dim[form[i].perm[a]]);
        ck_assert((op_of(g, y) == OP_transpose) == !form[i].still);
    }
}
END_TEST

Suite *suite_views(void);
Suite *suite_views(void)
{
    Suite *s = suite_create("views");
    TCase *c = tcase_create("views");
    tcase_add_checked_fixture(c, start, stop);
    tcase_add_test(c, axes_of_one_element_move_by_a_reshape);
    suite_add_tcase(s, c);
    return s;
}
