/* Runs the suites: gradc-tests [--list] [SUITE ...].
 *
 * Every file of tests/unit, and every tests/X.c but this one, is a suite: it
 * defines `Suite *suite_X(void)`, and the build lists it here by itself. A test
 * that can't run prints a line "skipped: what: why" and returns. */
#include <check.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SUITE(name) Suite *suite_##name(void);
#include "suites.def"
#undef SUITE

typedef struct Entry {
    const char *name;
    Suite *(*make)(void);
} Entry;

static const Entry entry[] = {
#define SUITE(name) {#name, suite_##name},
#include "suites.def"
#undef SUITE
    {NULL, NULL},
};

static const Entry *find(const char *name)
{
    for (const Entry *e = entry; e->name != NULL; e++)
        if (strcmp(e->name, name) == 0)
            return e;
    return NULL;
}

static int list(void)
{
    for (const Entry *e = entry; e->name != NULL; e++)
        puts(e->name);
    return EXIT_SUCCESS;
}

/* All suites, or those named; NULL after a message about an unknown one. */
static SRunner *choose(int n, char **name)
{
    SRunner *runner = srunner_create(NULL);
    for (const Entry *e = entry; n == 0 && e->name != NULL; e++)
        srunner_add_suite(runner, e->make());
    for (int i = 0; i < n; i++) {
        const Entry *e = find(name[i]);
        if (e == NULL) {
            fprintf(stderr, "gradc-tests: no suite %s (see --list)\n", name[i]);
            srunner_free(runner);
            return NULL;
        }
        srunner_add_suite(runner, e->make());
    }
    return runner;
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--list") == 0)
        return list();
    setenv("CK_DEFAULT_TIMEOUT", "60", 0); /* seconds; machines are shared */
    SRunner *runner = choose(argc - 1, argv + 1);
    if (runner == NULL)
        return 2;
    setvbuf(stdout, NULL, _IOLBF, 0);
    srunner_run_all(runner, CK_ENV);
    int run = srunner_ntests_run(runner), failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    printf("passed=%d failed=%d skipped=0\n", run - failed, failed);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
