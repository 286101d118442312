/* Messages that are no diagnostics: usage, files, data, memory. Text, or under --json an
 * object of the same shape as a diagnostic, without a code and a place. */
#include "cli.h"

#include <stdarg.h>

/* Set once, before the first message; fixed, for there may be no more memory. */
static bool as_json;

void messages_as_json(bool json)
{
    as_json = json;
}

static void put(bool warning, const char *help, const char *format, va_list ap)
{
    Arena a = {0};
    diag_message(as_json, warning, arena_vprintf(&a, format, ap), help, stderr);
    arena_free(&a);
}

void say(const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    put(false, NULL, format, ap);
    va_end(ap);
}

void remark(const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    put(true, NULL, format, ap);
    va_end(ap);
}

int usage_error(const Cli *c, const char *format, ...)
{
    char help[64];
    const char *name = c->command != NULL ? c->command->name : "";
    snprintf(help, sizeof help, "`gradc %s%s--help`", name, name[0] != 0 ? " " : "");
    va_list ap;
    va_start(ap, format);
    put(false, help, format, ap);
    va_end(ap);
    return EXIT_USAGE;
}

void say_exhausted(size_t bytes)
{
    fprintf(stderr,
            as_json ? "{\"severity\":\"error\",\"code\":null,\"file\":null,\"message\":\"out of "
                      "memory: a request for %zu bytes was refused\",\"ranges\":[],\"notes\":[],"
                      "\"calls\":[],\"help\":null}\n"
                    : "gradc: out of memory: a request for %zu bytes was refused\n",
            bytes);
    files_abandon();
}
