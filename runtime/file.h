/* file.h: reading files, and replacing them atomically. All calls go through hooks.h. */
#ifndef GRADC_FILE_H
#define GRADC_FILE_H

#include "internal.h"

/* A regular file open for reading. */
typedef struct Input {
    int fd;
    int64_t size;
    const char *path; /* the caller's */
} Input;

/* GRADC_IO unless `path` is a regular file that opens. A FIFO is not waited for. */
int gr_open(Input *in, const char *path, gradc_error *e);

/* Exactly n bytes; GRADC_FORMAT if the file ends before (it was cut while it was read). */
int gr_read(Input *in, void *bytes, int64_t n, gradc_error *e);
void gr_close(Input *in);

/* The whole file, unpacked if it is gzip: *bytes is gr_free'd by the caller (NULL if empty). */
int gr_read_all(const char *path, uint8_t **bytes, int64_t *n, gradc_error *e);

/* A file that is being written beside `path`; see reliability: temp, fsync, link, rename, fsync.
 *
 *     status = gr_save_begin(&s, path, e);
 *     if (status == GRADC_OK) status = gr_save_write(&s, ...);
 *     return gr_save_end(&s, status, keep_previous, e);
 *
 * gr_save_end commits if `status` is GRADC_OK and cleans up in any case. */
typedef struct Save {
    int fd, directory;
    char *path, *temp, *previous, *link; /* `link`: where the hard link to the old file begins */
    bool made;                           /* temp exists */
    bool moved;                          /* the old file is at `previous` only */
} Save;

int gr_save_begin(Save *s, const char *path, gradc_error *e);
int gr_save_write(Save *s, const void *bytes, int64_t n, gradc_error *e);
int gr_save_end(Save *s, int status, bool keep_previous, gradc_error *e);

/* Removes the temporary files that processes of this machine, now dead, left beside `path`.
 * Failures are ignored. */
void gr_remove_stale(const char *path);

/* `path` with ".prev" behind, by gr_alloc; NULL: no memory. */
char *gr_previous_name(const char *path);

#endif
