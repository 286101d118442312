/* Statuses with words. */
#include "internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *gradc_strerror(int status)
{
    static const char *const words[] = {
        [GRADC_OK] = "success",
        [GRADC_BAD_ARGUMENT] = "an argument is not possible",
        [GRADC_BAD_ABI] = "header, object and library are of different versions",
        [GRADC_TOO_SMALL] = "the block is too small for the model",
        [GRADC_MISALIGNED] = "the block is not aligned as the model needs",
        [GRADC_CPU] = "this processor lacks an instruction set of the object",
        [GRADC_RANGE] = "a value is outside its range",
        [GRADC_NONFINITE] = "NaN or infinity",
        [GRADC_BAD_STATE] = "calls out of order, or the handle is in use",
        [GRADC_IO] = "a file operation failed",
        [GRADC_FORMAT] = "a file is not what it should be",
        [GRADC_MEMORY] = "no memory",
        [GRADC_MISMATCH] = "a file and a model disagree",
        [GRADC_OFFLOAD] = "offloaded values have no place, or could not be moved",
        [GRADC_NO_GPU] = "no GPU that the object can use",
        [GRADC_DEVICE] = "the GPU or its driver failed",
    };
    int known = (int)(sizeof words / sizeof words[0]);
    return status >= 0 && status < known ? words[status] : "not a status of gradc";
}

uint32_t gradc_abi_version(void)
{
    return GRADC_ABI;
}

const char *gradc_version(void)
{
    return GRADC_VERSION;
}

/* Names in messages come from files: no control character may reach a terminal, and a text that
 * was cut must not end inside a UTF-8 character. */
static void make_printable(char *text, size_t room)
{
    size_t n = strlen(text);
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c < 0x20 || c == 0x7f)
            text[i] = '?';
    }
    if (n + 1 < room)
        return;
    while (n > 0 && ((unsigned char)text[n - 1] & 0xC0) == 0x80)
        n--;
    if (n > 0 && (unsigned char)text[n - 1] >= 0xC0)
        n--;
    text[n] = '\0';
}

static void fill(gradc_error *e, int status, const char *format, va_list args)
{
    e->status = status;
    e->system = 0;
    e->position = -1;
    e->column = 0;
    vsnprintf(e->text, sizeof e->text, format, args);
    make_printable(e->text, sizeof e->text);
}

int gr_fail(gradc_error *e, int status, const char *format, ...)
{
    if (e == NULL)
        return status;
    va_list args;
    va_start(args, format);
    fill(e, status, format, args);
    va_end(args);
    return status;
}

int gr_fail_at(gradc_error *e, int status, int64_t position, const char *format, ...)
{
    if (e == NULL)
        return status;
    va_list args;
    va_start(args, format);
    fill(e, status, format, args);
    va_end(args);
    e->position = position;
    return status;
}

/* strerror_r comes in two kinds: glibc's returns the text, POSIX's fills the buffer. */
static void system_words(int error_number, char *out, size_t size)
{
#ifdef __GLIBC__
    char buffer[128];
    snprintf(out, size, "%s", strerror_r(error_number, buffer, sizeof buffer));
#else
    if (strerror_r(error_number, out, size) != 0)
        snprintf(out, size, "error %d", error_number);
#endif
}

int gr_fail_system(gradc_error *e, int error_number, const char *format, ...)
{
    if (e == NULL)
        return GRADC_IO;
    va_list args;
    va_start(args, format);
    fill(e, GRADC_IO, format, args);
    va_end(args);
    char words[128];
    size_t n = strlen(e->text);
    system_words(error_number, words, sizeof words);
    snprintf(e->text + n, sizeof e->text - n, ": %s", words);
    e->system = error_number;
    return GRADC_IO;
}

int gr_fail_memory(gradc_error *e, const char *what, int64_t bytes)
{
    return gr_fail(e, GRADC_MEMORY, "no memory for %s (%lld bytes)", what, (long long)bytes);
}

int gr_check_size(size_t have, size_t want, const char *what, gradc_error *e)
{
    if (have >= want)
        return GRADC_OK;
    return gr_fail(e, GRADC_BAD_ABI, "a %s of %lu bytes, where this library has %lu", what,
                   (unsigned long)have, (unsigned long)want);
}

int gr_ok(gradc_error *e)
{
    if (e != NULL)
        *e = (gradc_error){.status = GRADC_OK, .position = -1};
    return GRADC_OK;
}
