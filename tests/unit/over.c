/* Scans that stack results over their sequences: where that is done, where it must not be, and
 * that values are right either way, by an evaluator that shares no memory. */
#include "front_run.h"

typedef struct Case {
    const char *text;
    int over; /* stacks of grad that lie over a sequence */
} Case;

enum { CARRY = 64 /* bytes of the largest one below; what is stacked has more */ };

#define HEAD                                                                                       \
    "use nn\n"                                                                                     \
    "model m(batch = 3, steps = 5, n = 4) {\n"                                                     \
    "    input x : f32[steps, batch, n]\n"                                                         \
    "    param v, w : f32[n, n] = normal(std = 0.5)\n"
#define DRIVE "    drive = x @ v\n"
#define FIRST "h = zeros([batch, n])"

static const Case cases[] = {
    /* states over what drives them, cotangents of that over states */
    {HEAD DRIVE "    h = scan u in drive, " FIRST " {\n"
                "        h = tanh(u + h @ w)\n"
                "    }\n"
                "    loss mean(h * h)\n}\n",
     2},
    /* ... which others read later */
    {HEAD DRIVE "    h = scan u in drive, " FIRST " {\n"
                "        h = tanh(u + h @ w)\n"
                "    }\n"
                "    loss mean(h * h) + mean(drive^2)\n}\n",
     1},
    /* ... which is a result */
    {HEAD DRIVE "    h = scan u in drive, " FIRST " {\n"
                "        h = tanh(u + h @ w)\n"
                "    }\n"
                "    output drive\n"
                "    loss mean(h * h)\n}\n",
     1},
    /* ... which is the caller's */
    {HEAD "    h = scan u in x, " FIRST " {\n"
          "        h = tanh(u @ v + h @ w)\n"
          "    }\n"
          "    loss mean(h * h)\n}\n",
     0},
    /* a slice that is read when the state is there: only what is made of it lies over it */
    {HEAD DRIVE "    ys, h = scan u in drive, " FIRST " {\n"
                "        h = tanh(u + h @ w)\n"
                "        emit u * sum(h @ v, axis = 1, keep = true)\n"
                "    }\n"
                "    loss mean(h * h) + mean(ys^2)\n}\n",
     1},
    /* the slice itself is stacked, too */
    {HEAD DRIVE "    us, hs, h = scan u in drive, " FIRST " {\n"
                "        h = tanh(u + h @ w)\n"
                "        emit u, h\n"
                "    }\n"
                "    loss mean(h * h) + mean(us^2) + mean(hs)\n}\n",
     1},
    /* columns in another order: some would be written before they are read */
    {HEAD DRIVE "    ys, h = scan u in drive, " FIRST " {\n"
                "        h = cos(h @ w)\n"
                "        emit u[:, ::-1]\n"
                "    }\n"
                "    loss mean(h * h) + mean(ys^3)\n}\n",
     0},
    /* rows of a slice are summed before any is written */
    {HEAD DRIVE "    ys, h = scan u in drive, " FIRST " {\n"
                "        h = tanh(u + h @ w)\n"
                "        emit softmax(u @ v, axis = 1)\n"
                "    }\n"
                "    loss mean(h * h) + mean(ys^2)\n}\n",
     1},
    /* one drive of two scans: the second has it */
    {HEAD DRIVE "    a = scan u in drive, " FIRST " {\n"
                "        h = tanh(u + h @ w)\n"
                "    }\n"
                "    b = scan u in drive, " FIRST " {\n"
                "        h = tanh(u - h @ w)\n"
                "    }\n"
                "    loss mean(a * b)\n}\n",
     3},
    /* a scan over what another one stacks */
    {HEAD DRIVE "    hs, h = scan u in drive, " FIRST " {\n"
                "        h = tanh(u + h @ w)\n"
                "        emit h\n"
                "    }\n"
                "    gs, g = scan u in hs, g = h {\n"
                "        g = tanh(u + g @ v)\n"
                "        emit g\n"
                "    }\n"
                "    loss mean(gs * gs) + mean(g)\n}\n",
     3},
    /* ... in the other order of steps, and a carry that begins with the last of them */
    {HEAD DRIVE "    hs, h = scan u in drive, " FIRST " {\n"
                "        h = tanh(u + h @ w)\n"
                "        emit h\n"
                "    }\n"
                "    gs, g = scan u in hs[::-1], g = hs[0] {\n"
                "        g = tanh(u + g @ v)\n"
                "        emit g\n"
                "    }\n"
                "    loss mean(gs * gs) + mean(g)\n}\n",
     4},
    /* carries that change places */
    {HEAD DRIVE "    cs, a, b = scan u in drive, a = zeros([batch, n]), b = drive[0] {\n"
                "        c = tanh(u + a @ w)\n"
                "        a = b\n"
                "        b = c\n"
                "        emit c\n"
                "    }\n"
                "    loss mean(a * b) + mean(cs^2)\n}\n",
     1},
    /* a scan in a scan */
    {HEAD DRIVE "    h = scan u in drive, " FIRST " {\n"
                "        e = u @ w\n"
                "        k = scan r in e, k = zeros([n]) {\n"
                "            k = tanh(r + k @ v)\n"
                "        }\n"
                "        h = tanh(u + h * k)\n"
                "    }\n"
                "    loss mean(h * h)\n}\n",
     1},
    {HEAD "    loss mean((nn.rnn(x, 4) as a)^2)\n}\n", 2},
    {HEAD "    loss mean((nn.gru(x, 4) as a)^2)\n}\n", 1},
    {HEAD "    loss mean((nn.lstm(x, 4) as a)^2)\n}\n", 1},
    {HEAD "    loss mean((nn.lstm(nn.rnn(x, 4) as a, 4) as b)^2)\n}\n", 3},
};

static void compile_case(Run *r, const char *text)
{
    memset(r, 0, sizeof *r);
    ctx_init(&r->cx);
    r->cx.verify = true;
    r->out.arena = &r->arena;
    Options o = {.entry = {[ENTRY_INIT] = true, [ENTRY_GRAD] = true}, .threads_max = 1};
    o.target = (TargetOptions){.target = "cpu", .cpu = "baseline", .threads_max = 1};
    int32_t source = source_add(&r->cx, "m.model", text, strlen(text), false);
    r->fine =
        compile_graphs(&r->cx, source, &o, false, &r->out) && compile_program(&r->cx, &o, &r->out);
    ck_assert_msg(r->fine, "%s\n%s", text, run_messages(r));
    run_init(r, 1);
    run_inputs(r, 7);
}

/* Ranges that a scan opens in the storage of others, but for carries. */
static int count_over(const Plan *p, int64_t carry_bytes)
{
    int n = 0;
    for (int32_t i = 0; i < p->n_ranges; i++) {
        const PlanRange *r = &p->range[i];
        n += r->storage != i && p->step[r->from].body != NULL &&
             p->value[r->value].bytes > carry_bytes;
    }
    return n;
}

/* Both runs begin with the same numbers, of f32. */
static float *rounded(Value *v, float *to)
{
    for (int64_t i = 0; i < v->n; i++)
        v->x[i] = to[i] = (float)v->x[i];
    return to;
}

static Judge *run_exact(Run *r)
{
    const Program *p = r->out.program;
    Judge *j = judge_open(p, K_EXACT, &r->arena);
    const void **in = NEW_ARRAY(&r->arena, const void *, p->input.n);
    for (int i = 0; i < p->tensor.n; i++)
        if (p->tensor.at[i].role == ROLE_PARAM)
            rounded(&r->slot[p->tensor.at[i].buffer], judge_data(j, p->tensor.at[i].buffer));
    for (int i = 0; i < p->input.n; i++)
        in[i] = rounded(&r->input[i], NEW_ARRAY(&r->arena, float, r->input[i].n));
    ck_assert_int_eq(judge_run(j, "grad", in, 0), RUN_OK);
    return j;
}

static void same(const float *is, const Value *want, const char *text)
{
    for (int64_t i = 0; i < want->n; i++)
        ck_assert_msg(fabs((double)is[i] - want->x[i]) < 1e-5, "%s\n%g instead of %g", text,
                      (double)is[i], want->x[i]);
}

/* The buffer of a result or of a gradient, or -1. */
static int32_t buffer_of(const Program *p, const Root *r)
{
    const Entry *e = program_entry(p, "grad");
    for (int i = 0; i < e->n_results && r->kind != ROOT_GRADIENT; i++)
        if (strcmp(e->result[i].name, r->name) == 0)
            return e->result[i].buffer;
    for (int t = 0; t < p->tensor.n && r->kind == ROOT_GRADIENT; t++)
        if (p->tensor.at[t].role == ROLE_GRADIENT && strcmp(p->tensor.at[t].name, r->name) == 0)
            return p->tensor.at[t].buffer;
    return -1;
}

START_TEST(stacks_lie_over_sequences)
{
    const Case *c = &cases[_i];
    Run r;
    compile_case(&r, c->text);
    const Program *p = r.out.program;
    Judge *j = run_exact(&r);
    Value *want = run_entry(&r, ENTRY_GRAD);
    const Graph *g = r.out.graph[ENTRY_GRAD];
    ck_assert_int_ge(g->root.n, 3);
    for (int i = 0; i < g->root.n; i++) {
        int32_t b = buffer_of(p, &g->root.at[i]);
        ck_assert_int_ge(b, 0);
        same(judge_data(j, b), &want[g->root.at[i].ref], c->text);
    }
    ck_assert_msg(count_over(r.out.plan[ENTRY_GRAD], CARRY) == c->over, "%s\n%d", c->text,
                  count_over(r.out.plan[ENTRY_GRAD], CARRY));
    run_close(&r);
}
END_TEST

Suite *suite_over(void);
Suite *suite_over(void)
{
    Suite *s = suite_create("over");
    TCase *t = tcase_create("over");
    tcase_add_loop_test(t, stacks_lie_over_sequences, 0, (int)(sizeof cases / sizeof *cases));
    suite_add_tcase(s, t);
    return s;
}
