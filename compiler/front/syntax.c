/* What is said about a mistake of syntax: what was expected, in the user's words,
 * what came instead, and what was probably meant. */
#include <string.h>

#include "model.tab.h"
#include "parse.h"

/* What the grammar could go on with. */
typedef struct Expected {
    const char *const *name;
    int n;
} Expected;

static bool has(Expected e, const char *name)
{
    for (int i = 0; i < e.n; i++)
        if (strcmp(e.name[i], name) == 0)
            return true;
    return false;
}

static bool is_one_of(const char *name, const char *const *list)
{
    while (*list != NULL && strcmp(*list, name) != 0)
        list++;
    return *list != NULL;
}

/* ---- what was expected --------------------------------------------------- */

static const char *const operand[] = {"a name", "a number", "a string", "'('",     "'['",   "'-'",
                                      "'+'",    "`not`",    "`true`",   "`false`", "`inf`", NULL};
static const char *const operators[] = {
    "'+'",  "'-'",  "'*'",  "'/'",   "`//`", "'%'", "'@'", "'^'", "'<'",  "'>'",     "`==`",
    "`!=`", "`<=`", "`>=`", "`and`", "`or`", "'.'", "'('", "'['", "`as`", "`share`", NULL};
static const char *const statement[] = {
    "`use`",    "`const`",  "`model`",  "`fn`",        "`block`",   "`train`",  "`input`",
    "`param`",  "`state`",  "`keep`",   "`recompute`", "`offload`", "`budget`", "`loss`",
    "`output`", "`metric`", "`return`", "`emit`",      "`for`",     "`if`",     NULL};

/* "'('" in the grammar is "`(`" to the user. */
static const char *spoken(Parser *p, const char *name)
{
    if (name[0] == '\'' && name[1] != '\0' && name[2] == '\'')
        return arena_printf(p->arena, "`%c`", name[1]);
    return name;
}

typedef struct Phrases {
    const char *at[8];
    int n;
} Phrases;

static void phrase(Phrases *to, const char *text)
{
    if (to->n < 8)
        to->at[to->n++] = text;
}

static Phrases phrases(Parser *p, Expected e)
{
    Phrases to = {.n = 0};
    bool operand_here = has(e, "a number");
    bool operator_here = has(e, "'*'");
    bool statement_here = has(e, "`loss`");
    bool binding_here = has(e, "`<-`") && has(e, "'='");
    if (binding_here) { /* what else could stand here is rarely meant */
        phrase(&to, "`=`");
        return to;
    }
    for (int i = 0; i < e.n; i++) {
        const char *name = e.name[i];
        bool told = (has(e, "'{'") && strcmp(name, "the end of the line") == 0) ||
                    (operand_here && is_one_of(name, operand)) ||
                    (operator_here && is_one_of(name, operators)) ||
                    (statement_here && (is_one_of(name, statement) || strcmp(name, "a name") == 0));
        if (!told)
            phrase(&to, spoken(p, name));
    }
    if (operand_here)
        phrase(&to, "an expression");
    if (operator_here)
        phrase(&to, "an operator");
    if (statement_here)
        phrase(&to, p->open.n == 0 ? "a definition" : "a statement");
    return to;
}

static const char *expectation(Parser *p, Expected e)
{
    Phrases list = phrases(p, e);
    Text t;
    text_init(&t, p->arena);
    for (int i = 0; i < list.n; i++)
        text_add(&t, "%s%s", i == 0 ? "" : i == list.n - 1 ? " or " : ", ", list.at[i]);
    return list.n == 0 ? "something else" : t.at;
}

/* ---- what came instead --------------------------------------------------- */

static const char *description(Parser *p, Token got, const char *name)
{
    enum { MOST = 40 };
    if (got.kind == T_NEWLINE)
        return p->before_brace ? "`}`" : "the end of the line";
    if (got.kind == 0)
        return "the end of the file";
    if (got.kind == T_STRING)
        return "a string";
    if (got.kind != T_NAME && got.kind != T_NUMBER)
        return spoken(p, name);
    int n = got.span.to - got.span.from;
    return arena_printf(p->arena, "`%.*s%s`", n > MOST ? MOST : n, p->text + got.span.from,
                        n > MOST ? "..." : "");
}

/* ---- what was probably meant --------------------------------------------- */

/* Words of other languages, at the start of a statement. */
static const char *foreign_word(const char *word, size_t n)
{
    static const struct {
        const char *word, *help;
    } known[] = {
        {"let", "a name is bound by `name = value` alone"},
        {"var", "a name is bound by `name = value` alone"},
        {"def", "functions begin with `fn`, or `block` if they own parameters"},
        {"function", "functions begin with `fn`, or `block` if they own parameters"},
        {"class", "what owns parameters is a `block`"},
        {"import", "libraries are named by `use`"},
        {"while", "a loop runs over constants (`for`) or along an axis (`scan`)"},
        {"elif", "write `else if` on the line of the `}`"},
        {"print", "values leave a model by `output` and `metric`"},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strlen(known[i].word) == n && memcmp(known[i].word, word, n) == 0)
            return known[i].help;
    return NULL;
}

/* The word that begins the line of a byte. */
static const char *line_word(const Parser *p, int32_t at, size_t *n)
{
    while (at > 0 && p->text[at - 1] != '\n')
        at--;
    const char *s = p->text + at + strspn(p->text + at, " \t");
    *n = strcspn(s, " \t(=,[:\n");
    return s;
}

static bool is_keyword(int kind)
{
    return kind >= T_USE && kind <= T_INF;
}

/* The nearest of the words that could have stood here. */
static const char *meant_word(Parser *p, Expected e, const char *word)
{
    const char *near = NULL, *candidate[16];
    int n = 0;
    for (int i = 0; i < e.n && n < 16; i++)
        if (e.name[i][0] == '`' && e.name[i][1] >= 'a' && e.name[i][1] <= 'z')
            candidate[n++] = arena_strndup(p->arena, e.name[i] + 1, strlen(e.name[i]) - 2);
    near = nearest(word, candidate, n);
    return near == NULL ? NULL : arena_printf(p->arena, "did you mean `%s`?", near);
}

static const char *help_at_binding(Parser *p, Token got, Expected e)
{
    if (!has(e, "'='") || !has(e, "`<-`"))
        return NULL;
    size_t n;
    const char *word = line_word(p, got.span.from, &n);
    const char *help = foreign_word(word, n);
    if (help != NULL)
        return help;
    if (got.kind == '(' || got.kind == '.')
        return "a statement binds what it computes: `y = f(x)`";
    if (got.kind == T_EQ)
        return "`=` binds a name, `==` compares";
    if (strchr("+-*/@", got.kind) != NULL && p->text[got.span.to] == '=')
        return "write it out: `x = x + y`";
    return NULL;
}

static bool follows_word(const Parser *p, Token got, const char *word)
{
    int32_t at = got.span.from, n = (int32_t)strlen(word);
    while (at > 0 && p->text[at - 1] == ' ')
        at--;
    return at >= n && memcmp(p->text + at - n, word, (size_t)n) == 0;
}

/* The word begins a line, and a `=` follows it. */
static bool is_bound(const Parser *p, Token got)
{
    size_t n;
    const char *next = p->text + got.span.to;
    next += strspn(next, " \t");
    return line_word(p, got.span.from, &n) == p->text + got.span.from && *next == '=';
}

static const char *help_for(Parser *p, Token got, Expected e)
{
    const char *help = help_at_binding(p, got, e);
    if (help != NULL)
        return help;
    if (got.kind == '*' && got.span.from > 0 && p->text[got.span.from - 1] == '*')
        return "powers are written `x^2`";
    if (got.kind == T_DOTDOT && has(e, "':'"))
        return "places of an axis are written `x[from:to]`";
    if (got.kind == '=' && has(e, "`==`"))
        return "`==` compares";
    if (got.kind == '.' && (follows_word(p, got, ")") || follows_word(p, got, "]")))
        return "values have no members; a function stands before what it takes: `f(x)`";
    if ((got.kind == T_AS || got.kind == T_SHARE) && !is_bound(p, got))
        return "only a call of a block is named: `f(x) as name`";
    if (got.kind == T_ELSE)
        return "`else` stands on the line of the `}` before it, once";
    if (follows_word(p, got, "scan"))
        return "a scan stands alone on the right of a binding";
    if (is_keyword(got.kind) && (has(e, "a name") || is_bound(p, got)))
        return "this is a word of the language: it cannot be a name";
    return got.kind == T_NAME ? meant_word(p, e, got.text) : NULL;
}

/* ---- reports ------------------------------------------------------------- */

static int line_of(const Parser *p, Span at)
{
    int line, column;
    source_position(p->cx->source.at[p->file], at.from, &line, &column);
    return line;
}

bool syntax_told(const Parser *p, Span at)
{
    for (int i = 0; i < p->cx->diag.n; i++) {
        const Diag *d = p->cx->diag.at[i];
        if (!d->warning && d->span.file == p->file && line_of(p, d->span) == line_of(p, at))
            return true;
    }
    return false;
}

bool syntax_told_any(const Parser *p)
{
    return p->cx->n_errors > p->told_before;
}

void syntax_error(Parser *p, Token got, const char *got_name, const char *const *expected, int n)
{
    if (p->stopped || syntax_told(p, got.span))
        return;
    if (p->unclosed.file >= 0) {
        if (syntax_told(p, p->unclosed))
            return;
        diag_error(p->cx, E0103, p->unclosed, "this `%c` is never closed",
                   p->text[p->unclosed.from]);
        return;
    }
    Expected e = {expected, n};
    Diag *d = diag_error(p->cx, E0101, got.span, "expected %s, got %s", expectation(p, e),
                         description(p, got, got_name));
    const char *help = help_for(p, got, e);
    if (help != NULL)
        diag_help(p->cx, d, "%s", help);
    if (p->cx->n_errors > MAX_ERRORS)
        lex_stop(p);
}

void syntax_too_deep(Parser *p, Span at)
{
    if (!p->stopped)
        diag_error(p->cx, E0901, at, "nested too deep: at most %d brackets, %d operators",
                   MAX_NESTING, MAX_EXPR_DEPTH);
    lex_stop(p);
}

void syntax_missing_brace(Parser *p, Span line_end)
{
    if (!p->stopped && !syntax_told(p, line_end))
        diag_error(p->cx, E0101, line_end, "expected `{`, got the end of the line");
    lex_push_brace(p, line_end);
}

/* What braces enclose is not known from here on, so this is the last report. */
void syntax_stray(Parser *p, const Stmt *s)
{
    if (p->stopped || syntax_told_any(p)) {
        lex_stop(p);
    } else if (p->extra.file >= 0) {
        Diag *d = diag_error(p->cx, E0104, p->extra, "this `}` is one too many");
        diag_note(p->cx, d, s->span, "what follows is in no definition");
        lex_stop(p);
    } else {
        Diag *d = diag_error(p->cx, E0105, s->span, "a statement outside of a definition");
        diag_help(p->cx, d, "statements stand inside of a `model`, `block` or `fn`");
    }
}
