/* Stands in for libFuzzer where it is missing: runs a fuzz target once on each
 * file named on the command line. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static int replay(const char *path)
{
    FILE *f = fopen(path, "rb");
    if (f == NULL) {
        perror(path);
        return 1;
    }
    size_t cap = 1u << 20, n = 0;
    uint8_t *data = malloc(cap);
    if (data != NULL)
        n = fread(data, 1, cap, f);
    fclose(f);
    if (data == NULL)
        return 1;
    LLVMFuzzerTestOneInput(data, n);
    free(data);
    return 0;
}

int main(int argc, char **argv)
{
    int failed = 0;
    for (int i = 1; i < argc; i++)
        failed |= replay(argv[i]);
    printf("%d inputs\n", argc - 1);
    return failed;
}
