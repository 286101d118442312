/* A library under NVRTC's name, which does as it is told: images of the kernels that a text has, an
 * error of any call, answers that can't be. gradc takes it by GRADC_NVRTC.
 *
 *   FAKE_FAIL=CALL:CODE   this call ends with the code: nvrtcCompileProgram:6
 *   FAKE_VERSION=12.1     default: 13.9
 *   FAKE_ODD=WHAT         see odd()
 *   FAKE_LOG=FILE         gets a line for each program that is compiled: its architecture
 *   FAKE_SLEEP=MS         ... and how long that takes
 *
 * With -DWITHOUT_CUBIN one function is not there. */
#define _GNU_SOURCE
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../support/cubin_make.h"

typedef struct Fake {
    char *text;
    int arch;
    bool ptx;
    unsigned char *image;
    size_t size;
} Fake;

enum { MOST_IMAGE = 1 << 20 };

/* Whether answers are odd in this way: no_archs, many_archs, wild_archs, no_error; cubin (rubbish),
 * cubin_cut, cubin_arch, cubin_kernel, cubin_arguments, cubin_empty, cubin_huge; ptx (rubbish),
 * ptx_zero, ptx_kernel; log_huge. */
static bool odd(const char *what)
{
    const char *is = getenv("FAKE_ODD");
    return is != NULL && strcmp(is, what) == 0;
}

static int result(const char *call)
{
    const char *fail = getenv("FAKE_FAIL");
    size_t n = strlen(call);
    return fail != NULL && strncmp(fail, call, n) == 0 && fail[n] == ':' ? atoi(fail + n + 1) : 0;
}

const char *nvrtcGetErrorString(int code);
const char *nvrtcGetErrorString(int code)
{
    static const char *const name[] = {"NVRTC_SUCCESS", "NVRTC_ERROR_OUT_OF_MEMORY",
                                       "NVRTC_ERROR_PROGRAM_CREATION_FAILURE"};
    if (odd("no_error"))
        return NULL;
    return code >= 0 && code < 3 ? name[code] : "NVRTC_ERROR_OF_SOME_KIND";
}

int nvrtcVersion(int *major, int *minor);
int nvrtcVersion(int *major, int *minor)
{
    const char *version = getenv("FAKE_VERSION");
    if (sscanf(version != NULL ? version : "13.9", "%d.%d", major, minor) != 2)
        return 1;
    return result("nvrtcVersion");
}

int nvrtcGetNumSupportedArchs(int *n);
int nvrtcGetNumSupportedArchs(int *n)
{
    *n = odd("no_archs") ? 0 : odd("many_archs") ? 1 << 30 : 4;
    return result("nvrtcGetNumSupportedArchs");
}

int nvrtcGetSupportedArchs(int *arch);
int nvrtcGetSupportedArchs(int *arch)
{
    static const int known[] = {80, 121, 90, 86}, wild[] = {-1, 0, 1 << 30, 30};
    memcpy(arch, odd("wild_archs") ? wild : known, sizeof known);
    return result("nvrtcGetSupportedArchs");
}

int nvrtcCreateProgram(Fake **p, const char *text, const char *name, int n,
                       const char *const *headers, const char *const *names);
int nvrtcCreateProgram(Fake **p, const char *text, const char *name, int n,
                       const char *const *headers, const char *const *names)
{
    (void)headers;
    (void)names;
    if (name == NULL || n != 0 || result("nvrtcCreateProgram") != 0)
        return result("nvrtcCreateProgram");
    *p = calloc(1, sizeof **p);
    (*p)->text = strdup(text);
    (*p)->image = malloc(MOST_IMAGE);
    return 0;
}

/* ---- images ------------------------------------------------------------------------------------
 */

/* The kernels of the text: "__launch_bounds__(N)\nNAME(ARGUMENTS)". */
static int find_kernels(const Fake *p, MadeKernel *k)
{
    static const char before[] = "__launch_bounds__(";
    int n = 0;
    for (const char *s = p->text; (s = strstr(s, before)) != NULL && n < MADE_KERNELS; n++) {
        s = strchr(s, '\n') + 1;
        size_t length = strcspn(s, "(");
        unsigned arguments = s[length + 1] != ')';
        for (const char *a = s + length; *a != ')'; a++)
            arguments += *a == ',';
        k[n] = (MadeKernel){strndup(s, length), 32, 0, 1024, arguments, 0, 0, 4};
    }
    return n;
}

static void make_ptx(Fake *p, const MadeKernel *k, int n)
{
    char *to = (char *)p->image;
    int at = sprintf(to, ".version 9.9\n.target sm_%d\n", p->arch);
    for (int i = odd("ptx_kernel"); i < n; i++)
        at += sprintf(to + at, ".visible .entry %s(\n)\n{\n}\n", k[i].name);
    p->size = (size_t)at + 1;
    if (odd("ptx"))
        memset(to, 0xa5, p->size);
    if (odd("ptx_zero"))
        to[at / 2] = 0;
}

static void make_image(Fake *p)
{
    MadeKernel k[MADE_KERNELS];
    int n = find_kernels(p, k);
    if (p->ptx) {
        make_ptx(p, k, n);
    } else {
        k[n - 1].n_arguments += odd("cubin_arguments");
        p->size = make_cubin(p->arch + odd("cubin_arch"), k, n - odd("cubin_kernel"), p->image);
        if (odd("cubin"))
            memset(p->image, 0xa5, p->size);
        p->size = odd("cubin_cut") ? p->size / 2 : p->size;
    }
    for (int i = 0; i < n; i++)
        free((char *)(uintptr_t)k[i].name);
}

static void note(const Fake *p)
{
    const char *path = getenv("FAKE_LOG"), *ms = getenv("FAKE_SLEEP");
    FILE *f = path == NULL ? NULL : fopen(path, "a");
    if (f != NULL) {
        fprintf(f, "%d\n", p->arch);
        fclose(f);
    }
    if (ms != NULL)
        nanosleep(&(struct timespec){.tv_nsec = atol(ms) * 1000000}, NULL);
}

int nvrtcCompileProgram(Fake *p, int n, const char *const *options);
int nvrtcCompileProgram(Fake *p, int n, const char *const *options)
{
    for (int i = 0; i < n; i++)
        if (sscanf(options[i], "--gpu-architecture=sm_%d", &p->arch) == 1)
            p->ptx = false;
        else if (sscanf(options[i], "--gpu-architecture=compute_%d", &p->arch) == 1)
            p->ptx = true;
    note(p);
    make_image(p);
    return result("nvrtcCompileProgram");
}

static const char said[] = "m.model(4): error: first of all\n\nm.model(5): error: then\n"
                           "m.model(6): error: third\n4 errors\nno more of this is shown\n";

int nvrtcGetProgramLogSize(Fake *p, size_t *n);
int nvrtcGetProgramLogSize(Fake *p, size_t *n)
{
    (void)p;
    *n = odd("log_huge") ? SIZE_MAX : sizeof said;
    return result("nvrtcGetProgramLogSize");
}

int nvrtcGetProgramLog(Fake *p, char *to);
int nvrtcGetProgramLog(Fake *p, char *to)
{
    (void)p;
    memcpy(to, said, sizeof said);
    return result("nvrtcGetProgramLog");
}

int nvrtcGetCUBINSize(Fake *p, size_t *n);
int nvrtcGetCUBINSize(Fake *p, size_t *n)
{
    *n = p->ptx || odd("cubin_empty") ? 0 : odd("cubin_huge") ? SIZE_MAX : p->size;
    return result("nvrtcGetCUBINSize");
}

#ifndef WITHOUT_CUBIN
int nvrtcGetCUBIN(Fake *p, char *to);
int nvrtcGetCUBIN(Fake *p, char *to)
{
    memcpy(to, p->image, p->size);
    return result("nvrtcGetCUBIN");
}
#endif

int nvrtcGetPTXSize(Fake *p, size_t *n);
int nvrtcGetPTXSize(Fake *p, size_t *n)
{
    *n = p->size;
    return result("nvrtcGetPTXSize");
}

int nvrtcGetPTX(Fake *p, char *to);
int nvrtcGetPTX(Fake *p, char *to)
{
    memcpy(to, p->image, p->size);
    return result("nvrtcGetPTX");
}

int nvrtcDestroyProgram(Fake **p);
int nvrtcDestroyProgram(Fake **p)
{
    free((*p)->text);
    free((*p)->image);
    free(*p);
    *p = NULL;
    return result("nvrtcDestroyProgram");
}
