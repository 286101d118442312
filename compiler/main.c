/* Options and exit status; the only caller of exit(). */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"

static bool wants_color(const Cli *c)
{
    const char *when = cli_value(c, OPT_COLOR, "auto");
    if (strcmp(when, "always") == 0)
        return true;
    const char *term = getenv("TERM"), *no = getenv("NO_COLOR");
    bool dumb = term != NULL && strcmp(term, "dumb") == 0;
    return strcmp(when, "auto") == 0 && isatty(2) && !dumb && (no == NULL || *no == 0);
}

int main(int argc, char **argv)
{
    Ctx cx;
    ctx_init(&cx);
    arena_on_exhaustion(say_exhausted);
    Cli c = {.cx = &cx};
    bool done;
    int status = cli_parse(&c, argc, argv, &done);
    if (status == EXIT_OK && !done) {
        cx.json = cli_has(&c, OPT_JSON);
        cx.color = wants_color(&c);
        cx.verify |= cli_has(&c, OPT_VERIFY);
        cx.dump = cli_value(&c, OPT_DUMP, NULL);
        cx.dump_to = stdout;
        status = c.command->run(&c);
    }
    bool written = fflush(stdout) == 0 && ferror(stdout) == 0;
    if (!written && status == EXIT_OK) {
        say("cannot write to standard output");
        status = EXIT_FILE;
    }
    ctx_free(&cx);
    exit(status);
}
