/* Forms of a program under a budget, tried one after the other. */
#ifndef GRADC_COMPILE_FORMS_H
#define GRADC_COMPILE_FORMS_H

#include "compile.h"

/* A form that keeps to the budget, and what it is predicted to take. */
typedef struct Rival {
    Form form;
    int64_t cost; /* ns */
} Rival;

/* What is known of one entry, with keeps_light or without. */
typedef struct LightWay {
    int64_t takes;   /* ns, but no less than without a budget; 0: no plan was found */
    int64_t least;   /* bytes: PlanBudget.least, or what it needs; 0: none was looked for */
    int64_t bound;   /* ns: no plan of these steps within the budget takes less, ... */
    bool is_bound;   /* ... which is proved */
    bool impossible; /* there is no such plan */
} LightWay;

typedef struct Forms {
    Ctx *cx;
    int32_t source;
    Options o; /* of the form that is in `out` */
    Output *out;
    int n_diags, n_warnings; /* of the graphs, which every form has again */
    bool counts_rows;        /* partial batches are taken */
    Form first;              /* as without a budget; and what the entries cost then: */
    int64_t once[N_ENTRIES];
    bool has_light;               /* keeps_light is tried, too, ... */
    bool has_forms;               /* ... and others, of which nothing is proved */
    LightWay light[N_ENTRIES][2]; /* of the first form: without keeps_light, and with it */
    Form best;                    /* the cheapest that fits, else the one that needs least */
    int64_t best_cost;            /* INT64_MAX: none has fitted */
    int64_t best_bytes;           /* that it needs */
    bool has_program;             /* the best form compiles; it is in `out`, or */
    bool is_kept;                 /* here: */
    Output kept;
    int64_t least;            /* bytes: the smallest peak that some form was found to have */
    int64_t whole[N_ENTRIES]; /* what they cost in the best form that does not split a batch */
    VEC(int64_t) split;       /* how a batch may be split, ascending */
    char hash[65];            /* of the model in its first form */
    VEC(Rival) rival;         /* that fit, where programs are timed */
} Forms;

static inline bool same_form(const Form *a, const Form *b)
{
    return a->scan_levels == b->scan_levels && a->kept == b->kept && a->slices == b->slices &&
           a->split == b->split && a->keeps_light == b->keeps_light &&
           a->remakes_light == b->remakes_light;
}

/* Plans one form, in place of what is in `out`; the best so far is kept.
 * fails: false: there is no program of this form, but a report, or it is too dear, or not one in
 * which every step runs once. */
bool forms_plan(Forms *f, Form form);
/* What is said of the form in its plans. */
void forms_describe(const Forms *f);
/* In ns: what a plan in `out` takes, but where no batch is split no less than without a budget. */
int64_t forms_cost(const Forms *f, int e);
/* The best form, in `out`; where none has fitted, with the reports of the one that needs least. */
void forms_bring_back(Forms *f);
void forms_drop_kept(Forms *f);

/* What is in `out`, planned or too dear for that, is noted if it is the first form but for
 * keeps_light. */
void light_note(Forms *f);
/* The bytes that would do and the bound of an entry in the best form: those of all plans with
 * keeps_light or without. */
void light_describe(const Forms *f, int e, PlanBudget *b);
/* Entries that are better with keeps_light; each may have it or not. */
int32_t light_choose(const Forms *f);
/* Sets Options.exists.   gives: whether the best form has a proof that says too much. */
bool light_exists(Forms *f);

/* Those that are predicted to take little more than the best may be faster. */
#define RIVAL_COST 1.15

/* The fastest of the programs that keep to the budget, in `out`, as far as they are timed: what
 * is there, its nearest rivals, and those that were timed before.
 * requires: a timer; what is in `out` keeps to the budget.   fails: false, after a report. */
bool forms_measure(Forms *f, BudgetKind asked);

#endif
