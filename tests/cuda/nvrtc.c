/* Compiles kernels with NVRTC, which is loaded at run time, as the target cuda asks for it.
 *
 *   nvrtc LIBRARY ARCH... -- FILE.cu...
 *
 * Says of each file and architecture how many kernels there are, and what the largest of them
 * take. The last line is "passed=N failed=N skipped=0": warnings and errors are failures.
 * source: NVRTC documentation, "User Interface"; ptxas -v for what a kernel takes. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef void *Program; /* nvrtcProgram; results are ints, 0 is success */

typedef struct Nvrtc {
    int (*version)(int *major, int *minor);
    int (*create)(Program *, const char *text, const char *name, int n, const char *const *headers,
                  const char *const *names);
    int (*compile)(Program, int n, const char *const *options);
    int (*log_size)(Program, size_t *);
    int (*log)(Program, char *);
    int (*cubin_size)(Program, size_t *);
    int (*destroy)(Program *);
} Nvrtc;

static void find(void *library, const char *name, void *to)
{
    *(void **)to = dlsym(library, name);
    if (*(void **)to == NULL) {
        fprintf(stderr, "no %s in the library\n", name);
        exit(3);
    }
}

static Nvrtc load(const char *path)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    Nvrtc n;
    if (library == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        exit(3);
    }
    find(library, "nvrtcVersion", &n.version);
    find(library, "nvrtcCreateProgram", &n.create);
    find(library, "nvrtcCompileProgram", &n.compile);
    find(library, "nvrtcGetProgramLogSize", &n.log_size);
    find(library, "nvrtcGetProgramLog", &n.log);
    find(library, "nvrtcGetCUBINSize", &n.cubin_size);
    find(library, "nvrtcDestroyProgram", &n.destroy);
    return n;
}

static char *read_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    char *text = NULL;
    size_t n = 0, got = 0;
    do {
        text = realloc(text, n + (1 << 16) + 1);
        got = f == NULL || text == NULL ? 0 : fread(text + n, 1, 1 << 16, f);
        n += got;
    } while (got > 0);
    if (n == 0) {
        fprintf(stderr, "%s cannot be read\n", path);
        exit(3);
    }
    fclose(f);
    text[n] = 0;
    return text;
}

/* The largest number that stands before `words` in the log, and how often it does. */
static long largest(const char *log, const char *words, int *count)
{
    long most = 0;
    *count = 0;
    for (const char *p = log; (p = strstr(p, words)) != NULL; p++, ++*count) {
        const char *digit = p;
        while (digit > log && digit[-1] >= '0' && digit[-1] <= '9')
            digit--;
        long x = strtol(digit, NULL, 10);
        most = x > most ? x : most;
    }
    return most;
}

static int compile(const Nvrtc *n, const char *path, const char *arch)
{
    char option[64], *text = read_file(path);
    snprintf(option, sizeof option, "--gpu-architecture=%s", arch);
    const char *const options[] = {option,
                                   "--fmad=false",
                                   "--ftz=false",
                                   "--prec-div=true",
                                   "--prec-sqrt=true",
                                   "--ptxas-options=-v"};
    Program p = NULL;
    size_t log_bytes = 0, bytes = 0;
    int status = n->create(&p, text, path, 0, NULL, NULL);
    if (status == 0)
        status = n->compile(p, sizeof options / sizeof *options, options);
    char *log = NULL;
    if (n->log_size(p, &log_bytes) == 0 && (log = calloc(1, log_bytes + 1)) != NULL)
        n->log(p, log);
    int ok = status == 0 && log != NULL && strstr(log, "warning") == NULL &&
             n->cubin_size(p, &bytes) == 0 && bytes > 0;
    const char *name = strrchr(path, '/') != NULL ? strrchr(path, '/') + 1 : path;
    if (ok) {
        int kernels;
        long registers = largest(log, " registers", &kernels);
        long stack = largest(log, " bytes stack frame", &kernels);
        long spilled = largest(log, " bytes spill stores", &kernels);
        printf("%s, %s: %d kernels, %zu bytes; at most %ld registers, %ld bytes of stack, %ld of "
               "them spilled\n",
               name, arch, kernels, bytes, registers, stack, spilled);
        ok = kernels > 0;
    } else {
        printf("FAILED: %s, %s: NVRTC ends with %d\n%.4000s\n", name, arch, status,
               log != NULL ? log : "");
    }
    n->destroy(&p);
    free(log);
    free(text);
    return ok;
}

int main(int argc, char **argv)
{
    int files = 2, passed = 0, failed = 0, major = 0, minor = 0;
    while (files < argc && strcmp(argv[files], "--") != 0)
        files++;
    if (argc < 3 || files >= argc)
        return 2;
    Nvrtc n = load(argv[1]);
    n.version(&major, &minor);
    printf("NVRTC %d.%d\n", major, minor);
    for (int f = files + 1; f < argc; f++)
        for (int a = 2; a < files; a++)
            *(compile(&n, argv[f], argv[a]) ? &passed : &failed) += 1;
    printf("passed=%d failed=%d skipped=0\n", passed, failed);
    return failed != 0;
}
