/* Images as files: --emit ptx, cubin, sass. */
#include "images.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

bool has_images(const CudaImages *m, ImageKind kind)
{
    for (int i = 0; i < m->n; i++)
        if (m->items[i].kind == kind)
            return true;
    return false;
}

const char *text_of_ptx(const CudaImages *m, Arena *a)
{
    Text t;
    text_init(&t, a);
    for (int i = 0; i < m->n; i++) {
        const CudaImage *x = &m->items[i];
        if (x->kind != IMAGE_PTX)
            continue;
        text_add(&t, "// program %d of %d, compute_%d\n", x->program, m->n_programs, x->arch);
        text_put(&t, (const char *)x->bytes, x->size - 1);
    }
    return t.at;
}

/* ---- cubins --------------------------------------------------------------------------------- */

static int count_cubins(const CudaImages *m)
{
    int n = 0;
    for (int i = 0; i < m->n; i++)
        n += m->items[i].kind == IMAGE_CUBIN;
    return n;
}

int add_cubins(const Cli *c, const CudaImages *m, const char *path, Arena *a, Files *f)
{
    bool out = strcmp(path, "-") == 0;
    if (out && count_cubins(m) > 1)
        return usage_error(c, "--emit cubin=- is for one cubin, and there are %d", count_cubins(m));
    const char *base = replace_suffix(a, path, ".cubin", "");
    for (int i = 0; i < m->n; i++) {
        const CudaImage *x = &m->items[i];
        if (x->kind != IMAGE_CUBIN)
            continue;
        const char *number = m->n_programs > 1 ? arena_printf(a, ".%d", x->program) : "";
        const char *name = arena_printf(a, "%s.sm_%d%s.cubin", base, x->arch, number);
        files_add(f, out ? "-" : name, x->bytes, x->size);
    }
    return EXIT_OK;
}

/* ---- nvdisasm -----------------------------------------------------------------------------------
 */

/* A file without a name, which nvdisasm opens as /dev/fd/N. */
static int open_nameless(const CudaImage *x)
{
    const char *folder = getenv("TMPDIR");
    char path[4096];
    snprintf(path, sizeof path, "%s/gradc-XXXXXX", folder != NULL ? folder : "/tmp");
    int fd = mkstemp(path);
    if (fd < 0)
        return -1;
    unlink(path);
    const unsigned char *p = x->bytes;
    for (size_t n = x->size; n > 0;) {
        ssize_t k = write(fd, p, n);
        if (k < 0 && errno == EINTR)
            continue;
        if (k <= 0) {
            close(fd);
            return -1;
        }
        p += k;
        n -= (size_t)k;
    }
    return fd;
}

/* Its output, until it ends; false: it could not be started, and errno says why. */
static bool spawn(const char *tool, int cubin, Text *t, int *status)
{
    char path[32], *const argv[] = {(char *)(uintptr_t)tool, "-c", path, NULL};
    int out[2], failed;
    char buffer[65536];
    pid_t pid;
    posix_spawn_file_actions_t actions;
    snprintf(path, sizeof path, "/dev/fd/%d", cubin);
    if (pipe(out) != 0)
        return false;
    fcntl(out[0], F_SETFD, FD_CLOEXEC);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
    posix_spawn_file_actions_addclose(&actions, out[1]);
    failed = posix_spawnp(&pid, tool, &actions, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(out[1]);
    for (ssize_t k = 1; failed == 0 && k != 0;) {
        k = read(out[0], buffer, sizeof buffer);
        if (k > 0)
            text_put(t, buffer, (size_t)k);
        else if (k < 0 && errno != EINTR)
            break;
    }
    close(out[0]);
    if (failed == 0)
        while (waitpid(pid, status, 0) < 0 && errno == EINTR)
            ;
    errno = failed;
    return failed == 0;
}

/* The cubin's instructions, behind what is there. */
static int disassemble(const char *tool, const CudaImage *x, Text *t)
{
    int cubin = open_nameless(x), status = 0;
    if (cubin < 0) {
        say("a temporary file for nvdisasm: %s", strerror(errno));
        return EXIT_FILE;
    }
    bool ran = spawn(tool, cubin, t, &status);
    close(cubin);
    if (!ran) {
        say("--emit sass needs nvdisasm, of the CUDA toolkit, on the PATH or named by "
            "GRADC_NVDISASM; %s: %s",
            tool, strerror(errno));
        return EXIT_NO_GPU;
    }
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return EXIT_OK;
    say("%s does not read a cubin for sm_%d: it ends with %s %d", tool, x->arch,
        WIFEXITED(status) ? "status" : "signal",
        WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
    return EXIT_NO_GPU;
}

int text_of_sass(const CudaImages *m, Arena *a, const char **text)
{
    const char *own = getenv("GRADC_NVDISASM");
    const char *tool = own != NULL && own[0] != 0 ? own : "nvdisasm";
    int status = EXIT_OK;
    Text t;
    text_init(&t, a);
    for (int i = 0; i < m->n && status == EXIT_OK; i++) {
        const CudaImage *x = &m->items[i];
        if (x->kind != IMAGE_CUBIN)
            continue;
        text_add(&t, "// program %d of %d, sm_%d\n", x->program, m->n_programs, x->arch);
        status = disassemble(tool, x, &t);
    }
    *text = t.at;
    return status;
}
