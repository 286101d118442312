/* Files for the emulator to read. */
#ifndef GRADC_TESTS_CUDA_WRITE_H
#define GRADC_TESTS_CUDA_WRITE_H

#include <stdio.h>
#include <stdlib.h>

/* A file of the folder, to be written; else a sentence, and the program ends with status 3. */
static inline FILE *create(const char *folder, const char *name)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "wb");
    if (f == NULL) {
        fprintf(stderr, "%s cannot be written\n", path);
        exit(3);
    }
    return f;
}

#endif
