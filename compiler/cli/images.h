/* What the target cuda has to show: images as files, kernels as a table. */
#ifndef GRADC_CLI_IMAGES_H
#define GRADC_CLI_IMAGES_H

#include "../target/cuda/images.h"
#include "cli.h"

/* PTX of all programs, one after another, each with a line that says what it is. */
const char *text_of_ptx(const CudaImages *m, Arena *a);
/* A file each: of "m.cubin" m.sm_80.0.cubin, m.sm_80.1.cubin, ...; without the number where there
 * is one program. EXIT_USAGE after a message: standard output takes one. */
int add_cubins(const Cli *c, const CudaImages *m, const char *path, Arena *a, Files *f);
/* nvdisasm's text of the cubins, one after another: GRADC_NVDISASM names it, or it is on the PATH.
 * An exit status, after a message. */
int text_of_sass(const CudaImages *m, Arena *a, const char **text);
bool has_images(const CudaImages *m, ImageKind kind);

/* show --kernels; an exit status, after messages. */
int show_kernels(Cli *c, bool json);

#endif
