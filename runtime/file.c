/* Reading files. */
#include "file.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "hooks.h"

int gr_open(Input *in, const char *path, gradc_error *e)
{
    struct stat st;
    if (path == NULL)
        return gr_fail(e, GRADC_BAD_ARGUMENT, "no path given");
    /* O_NONBLOCK: opening a FIFO must not wait for a writer; regular files do not care */
    int fd = gr_file_ops.open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0);
    if (fd < 0)
        return gr_fail_system(e, errno, "cannot open %s", path);
    if (gr_file_ops.fstat(fd, &st) != 0) {
        int status = gr_fail_system(e, errno, "cannot ask the size of %s", path);
        gr_file_ops.close(fd);
        return status;
    }
    if (!S_ISREG(st.st_mode)) {
        gr_file_ops.close(fd);
        return gr_fail(e, GRADC_IO, "%s is not a regular file", path);
    }
    *in = (Input){.fd = fd, .size = (int64_t)st.st_size, .path = path};
    return GRADC_OK;
}

int gr_read(Input *in, void *bytes, int64_t n, gradc_error *e)
{
    enum { MOST = 1 << 30 }; /* Linux reads at most 2 GiB in one call */
    char *p = bytes;
    while (n > 0) {
        ssize_t k = gr_file_ops.read(in->fd, p, (size_t)(n < MOST ? n : MOST));
        if (k < 0 && errno == EINTR)
            continue;
        if (k < 0)
            return gr_fail_system(e, errno, "cannot read %s", in->path);
        if (k == 0)
            return gr_fail(e, GRADC_FORMAT, "%s ends %lld bytes too early", in->path, (long long)n);
        p += k;
        n -= k;
    }
    return GRADC_OK;
}

void gr_close(Input *in)
{
    gr_file_ops.close(in->fd);
    in->fd = -1;
}

static int read_whole(Input *in, uint8_t **bytes, gradc_error *e)
{
    *bytes = NULL;
    if (in->size == 0)
        return GRADC_OK;
    *bytes = gr_alloc(in->size);
    if (*bytes == NULL)
        return gr_fail_memory(e, in->path, in->size);
    int status = gr_read(in, *bytes, in->size, e);
    if (status != GRADC_OK) {
        gr_free(*bytes);
        *bytes = NULL;
    }
    return status;
}

int gr_read_all(const char *path, uint8_t **bytes, int64_t *n, gradc_error *e)
{
    Input in;
    uint8_t *unpacked;
    *bytes = NULL;
    *n = 0;
    int status = gr_open(&in, path, e);
    if (status != GRADC_OK)
        return status;
    status = read_whole(&in, bytes, e);
    gr_close(&in);
    if (status != GRADC_OK)
        return status;
    *n = in.size;
    if (*n < 2 || (*bytes)[0] != 0x1f || (*bytes)[1] != 0x8b)
        return GRADC_OK;
    status =
        gr_gunzip(path, *bytes, *n, GRADC_MAX_UNPACKED, GRADC_MAX_UNPACK_RATIO, &unpacked, n, e);
    gr_free(*bytes);
    *bytes = status == GRADC_OK ? unpacked : NULL;
    return status;
}
