#include "cli.h"

#include "../../runtime/gradc.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

typedef struct OptionSpec {
    const char *name;
    char letter;
    const char *value, *commands, *help;
} OptionSpec;

static const OptionSpec specs[N_OPTIONS] = {
#define OPTION(id, name, letter, value, commands, help) {name, letter, value, commands, help},
#include "options.def"
#undef OPTION
};

static const char compiling[] = "build check show plan explain run train test bench";

static bool word_in(const char *list, const char *word)
{
    size_t n = strlen(word);
    for (const char *p = list; *p != 0; p += strcspn(p, " ")) {
        p += strspn(p, " ");
        if (strncmp(p, word, n) == 0 && (p[n] == ' ' || p[n] == 0))
            return true;
    }
    return false;
}

static bool accepts(const Command *command, const OptionSpec *o)
{
    if (o->commands[0] == 0)
        return true;
    if (command == NULL)
        return false;
    const char *list = strcmp(o->commands, "*") == 0 ? compiling : o->commands;
    return word_in(list, command->name);
}

/* ---- help --------------------------------------------------------------- */

static void print_options(const Command *command)
{
    for (int i = 0; i < N_OPTIONS; i++) {
        const OptionSpec *o = &specs[i];
        if (!accepts(command, o))
            continue;
        char left[64];
        char letter[8] = "    ";
        if (o->letter != 0)
            snprintf(letter, sizeof letter, "-%c, ", o->letter);
        snprintf(left, sizeof left, "%s--%s%s%s", letter, o->name, o->value != NULL ? " " : "",
                 o->value != NULL ? o->value : "");
        printf("  %-28s %s\n", left, o->help);
    }
}

static void print_help(const Command *command)
{
    if (command != NULL) {
        printf("gradc %s %s\n  %s\n\nexamples:\n%s\noptions:\n", command->name, command->operands,
               command->summary, command->examples);
        print_options(command);
        return;
    }
    puts(
        "gradc: an ahead-of-time gradient compiler\n\n"
        "  gradc build mlp.model -o mlp.o       an object with the whole training step, and mlp.h\n"
        "  gradc train mlp.model --data x=x.npy --data y=y.npy\n"
        "  gradc run mlp.model --in x=1,2,3     loss, outputs, gradients\n\n"
        "commands:");
    for (int i = 0; i < n_commands; i++)
        printf("  %-8s %-16s %s\n", commands[i].name, commands[i].operands, commands[i].summary);
    puts("\n`gradc COMMAND --help` lists a command's options.");
}

/* ---- parsing ------------------------------------------------------------ */

static const Command *find_command(const char *name)
{
    for (int i = 0; i < n_commands; i++)
        if (strcmp(commands[i].name, name) == 0)
            return &commands[i];
    return NULL;
}

static int no_command(const Cli *c, const char *name)
{
    const char *names[32];
    for (int i = 0; i < n_commands; i++)
        names[i] = commands[i].name;
    const char *near = nearest(name, names, n_commands);
    if (near != NULL)
        return usage_error(c, "there is no command `%s`; did you mean `%s`?", name, near);
    return usage_error(c, "there is no command `%s`", name);
}

static int no_option(const Cli *c, const char *name)
{
    const char *names[N_OPTIONS];
    int n = 0;
    for (int i = 0; i < N_OPTIONS; i++)
        if (accepts(c->command, &specs[i]))
            names[n++] = specs[i].name;
    const char *near = nearest(name, names, n);
    if (near != NULL)
        return usage_error(c, "there is no option --%s here; did you mean --%s?", name, near);
    return usage_error(c, "there is no option --%s here", name);
}

static int find_option(const Cli *c, const char *name, size_t n, char letter)
{
    for (int i = 0; i < N_OPTIONS; i++) {
        bool is = letter != 0 ? specs[i].letter == letter
                              : strlen(specs[i].name) == n && strncmp(specs[i].name, name, n) == 0;
        if (is && accepts(c->command, &specs[i]))
            return i;
    }
    return -1;
}

/* Bytes of the NAME in "NAME=...", 0 if there is none. */
static size_t named(const char *value)
{
    const char *equals = strchr(value, '=');
    return equals != NULL ? (size_t)(equals - value) : 0;
}

/* A value that is a NAME=... may be given for each name, any other once: the earlier one would
 * be forgotten in silence. Kinds of --emit may go to several files. */
static int give(Cli *c, int id, const char *value)
{
    const OptionSpec *o = &specs[id];
    bool many = o->value != NULL && strchr(o->value, '=') != NULL;
    for (int i = 0; i < c->given.n && value != NULL && id != OPT_EMIT; i++) {
        const Given *g = &c->given.at[i];
        bool same = (int)g->id == id && (!many || named(g->value) == named(value));
        if (same && (!many || strncmp(g->value, value, named(value)) == 0))
            return usage_error(c, "--%s is given twice: `%s` and `%s`", o->name, g->value, value);
    }
    vec_push(&c->cx->perm, &c->given, ((Given){.id = (OptionId)id, .value = value}));
    return EXIT_OK;
}

/* --emit A,B=PATH is --emit A --emit B=PATH. A path may have commas. */
static int give_emits(Cli *c, const char *value)
{
    for (size_t n; value[n = strcspn(value, ",=")] == ','; value += n + 1)
        give(c, OPT_EMIT, arena_strndup(&c->cx->perm, value, n));
    return give(c, OPT_EMIT, value);
}

/* One argument that starts with '-'; *i moves over a value that stands apart. */
static int parse_option(Cli *c, int argc, char **argv, int *i)
{
    const char *arg = argv[*i];
    bool is_long = arg[1] == '-';
    const char *name = is_long ? arg + 2 : arg + 1;
    const char *equals = is_long ? strchr(name, '=') : NULL;
    size_t n = equals != NULL ? (size_t)(equals - name) : strlen(name);
    int id = is_long ? find_option(c, name, n, 0) : find_option(c, NULL, 0, name[0]);
    if (id < 0)
        return no_option(c, arena_strndup(&c->cx->perm, name, n));
    const OptionSpec *o = &specs[id];
    const char *value = equals != NULL ? equals + 1 : NULL;
    if (!is_long && name[1] != 0) {
        if (o->value == NULL)
            return usage_error(c, "-%c takes no value", o->letter);
        value = name + 1;
    }
    if (o->value == NULL && value != NULL)
        return usage_error(c, "--%s takes no value", o->name);
    if (o->value != NULL && value == NULL) {
        if (*i + 1 >= argc)
            return usage_error(c, "--%s needs a value: %s", o->name, o->value);
        value = argv[++*i];
    }
    return id == OPT_EMIT ? give_emits(c, value) : give(c, id, value);
}

static int check_operands(const Cli *c)
{
    const char *instead = cli_has(c, OPT_PROBLEM) ? "problem" : "placement";
    if (cli_has(c, OPT_PROBLEM) || cli_has(c, OPT_PLACEMENT)) {
        if (c->operand.n > 0)
            return usage_error(c, "--%s takes the place of a model: what is `%s`?", instead,
                               c->operand.at[0]);
        return EXIT_OK;
    }
    if (cli_has(c, OPT_DIFF) && c->operand.n != 2)
        return usage_error(c, "--diff needs two files, A.json and B.json");
    if (cli_has(c, OPT_DIFF))
        return EXIT_OK;
    if (c->operand.n < c->command->min_operands)
        return usage_error(c, "%s needs %s", c->command->name, c->command->operands);
    if (c->operand.n > c->command->max_operands)
        return usage_error(c, "%s does not take a second `%s`", c->command->name,
                           c->operand.at[c->operand.n - 1]);
    return EXIT_OK;
}

/* Known before anything can be wrong with what stands before it. */
static bool wants_json(int argc, char **argv)
{
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (strcmp(argv[i], "--json") == 0)
            return true;
    return false;
}

int cli_parse(Cli *c, int argc, char **argv, bool *done)
{
    bool options = true;
    *done = false;
    messages_as_json(wants_json(argc, argv));
    for (int i = 1; i < argc; i++) {
        int status = EXIT_OK;
        if (options && strcmp(argv[i], "--") == 0) {
            options = false;
        } else if (options && argv[i][0] == '-' && argv[i][1] != 0) {
            status = parse_option(c, argc, argv, &i);
        } else if (c->command == NULL) {
            c->command = find_command(argv[i]);
            if (c->command == NULL)
                status = no_command(c, argv[i]);
        } else {
            vec_push(&c->cx->perm, &c->operand, argv[i]);
        }
        if (status != EXIT_OK)
            return status;
    }
    *done = true;
    if (cli_has(c, OPT_VERSION)) {
        puts("gradc " GRADC_VERSION);
        return EXIT_OK;
    }
    if (cli_has(c, OPT_HELP) || argc == 1) {
        print_help(c->command);
        return EXIT_OK;
    }
    *done = false;
    if (c->command == NULL)
        return usage_error(c, "no command was given");
    return check_operands(c);
}

bool cli_has(const Cli *c, OptionId id)
{
    return cli_nth(c, id, 0) != NULL;
}

const char *cli_nth(const Cli *c, OptionId id, int n)
{
    for (int i = 0; i < c->given.n; i++)
        if (c->given.at[i].id == id && n-- == 0)
            return c->given.at[i].value == NULL ? "" : c->given.at[i].value;
    return NULL;
}

const char *cli_value(const Cli *c, OptionId id, const char *otherwise)
{
    for (int i = c->given.n; i-- > 0;)
        if (c->given.at[i].id == id)
            return c->given.at[i].value;
    return otherwise;
}

int cli_integer(const Cli *c, OptionId id, int64_t otherwise, int64_t lo, int64_t hi, int64_t *out)
{
    const char *s = cli_value(c, id, NULL);
    *out = otherwise;
    if (s == NULL)
        return EXIT_OK;
    char *end;
    errno = 0;
    long long v = strtoll(s, &end, 10);
    if (end == s || *end != 0 || errno != 0 || v < lo || v > hi)
        return usage_error(c, "--%s wants a whole number from %lld to %lld, not `%s`",
                           specs[id].name, (long long)lo, (long long)hi, s);
    *out = v;
    return EXIT_OK;
}

/* Decimal digits only, so that no locale matters. */
bool parse_bytes(const char *s, int64_t *bytes)
{
    static const struct {
        const char *suffix;
        int64_t unit;
    } units[] = {{"", 1},          {"B", 1},           {"KiB", 1 << 10},
                 {"MiB", 1 << 20}, {"GiB", 1LL << 30}, {"TiB", 1LL << 40}};
    double whole = 0, scale = 1;
    const char *p = s;
    if (!isdigit((unsigned char)*p))
        return false;
    for (; isdigit((unsigned char)*p); p++)
        whole = whole * 10 + (*p - '0');
    if (*p == '.')
        for (p++; isdigit((unsigned char)*p); p++)
            whole += (*p - '0') * (scale /= 10);
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (strcmp(p, units[i].suffix) == 0) {
            double total = whole * (double)units[i].unit;
            if (total < 1 || total > 9e15)
                return false;
            *bytes = (int64_t)total;
            return true;
        }
    return false;
}

int cli_budget(const Cli *c, BudgetAsked *b, PlanEffort *effort)
{
    const char *how = cli_value(c, OPT_PLAN_EFFORT, "default");
    *effort = strcmp(how, "max") == 0 ? EFFORT_MAX : EFFORT_DEFAULT;
    if (strcmp(how, "max") != 0 && strcmp(how, "default") != 0)
        return usage_error(c, "--plan-effort takes default and max, not `%s`", how);
    const char *s = cli_value(c, OPT_BUDGET, NULL);
    size_t n = s == NULL ? 0 : strlen(s);
    *b = (BudgetAsked){.kind = s == NULL ? BUDGET_NONE : BUDGET_BYTES};
    if (s == NULL || parse_bytes(s, &b->bytes))
        return EXIT_OK;
    b->kind = strcmp(s, "min") == 0     ? BUDGET_LEAST
              : strcmp(s, "light") == 0 ? BUDGET_LIGHT
                                        : BUDGET_SHARE;
    bool share = n > 1 && s[n - 1] == '%' && read_double(s, n - 1, &b->share) && b->share >= 0 &&
                 b->share <= 1e6;
    if (budget_is_least(b) || share)
        return EXIT_OK;
    return usage_error(c,
                       "--budget wants bytes such as 4096, 512KiB or 1.5GiB, a share such as "
                       "80%%, min or light, not `%s`",
                       s);
}
