/* Checkpoints and weights into a model: all or nothing, whatever the file.
 *
 * First byte even: the rest is a file. Odd: the rest are edits (place, value) of a good file, whose
 * checksums are then set right again, so that what lies behind them is reached. */
#define _GNU_SOURCE 1
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/safetensors.h"
#include "support/runtime_help.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static uint8_t *good;
static int64_t good_n;
static Fake *into, *untouched;

static void set_up(void)
{
    char *d = help_directory();
    const char *path = help_path(d, "x");
    gradc_checkpoint info = {.struct_size = sizeof info, .step = 12, .seed = 34};
    Fake *f = fake_new(1);
    if (gradc_checkpoint_save(&fake_model, f, path, &info, 0, NULL) != GRADC_OK)
        abort();
    good = help_read(path, &good_n);
    fake_free(f);
    help_remove(d);
    into = fake_new(2);
    untouched = fake_new(2);
}

/* 8 lower-case digits for the checksum of each tensor whose key still stands as it should. */
static void mend_tensors(uint8_t *file, int64_t head)
{
    gradc_tensors t = {.path = "mend"};
    gradc_error e;
    if (gr_header_parse(&t, (char *)file + 8, head - 8, good_n - head, &e) == GRADC_OK)
        for (int64_t i = 0; i < t.n; i++) {
            char key[1024], digits[GR_CRC_DIGITS + 1];
            int k = snprintf(key, sizeof key, "\"%s%s\":\"", GR_TENSOR_CRC, t.list[i].name);
            uint8_t *at = memmem(file, (size_t)head, key, (size_t)k);
            if (at == NULL || at + k + GR_CRC_DIGITS > file + head)
                continue;
            gr_crc_text(digits, gr_crc32c(0, file + head + t.begin[i], t.list[i].bytes));
            memcpy(at + k, digits, GR_CRC_DIGITS);
        }
    gr_free(t.list);
    gr_free(t.begin);
    gr_free(t.by_name);
    gr_free(t.by_key);
    gr_free(t.pairs);
    gr_free(t.strings);
}

static void mend(uint8_t *file)
{
    int64_t head = 8 + (file[0] | file[1] << 8);
    char digits[GR_CRC_DIGITS + 1];
    if (file[2] != 0 || head > good_n || memcmp(file + 8, GR_SEALED_BEGIN, 20) != 0)
        return;
    mend_tensors(file, head);
    gr_crc_text(digits, gr_header_crc((char *)file, head));
    memcpy(file + 8 + sizeof GR_SEALED_BEGIN - 1, digits, GR_CRC_DIGITS);
}

static void load(uint32_t flags, const uint8_t *file, size_t n)
{
    gradc_checkpoint info = {.struct_size = sizeof info};
    gradc_error e;
    fault_memory_file("/none/x", file, n);
    int status = gradc_checkpoint_load(&fake_model, into, "/none/x", &info, &e);
    if (status != GRADC_OK && (e.text[0] == '\0' || !fake_same(into, untouched, false)))
        abort();
    status = gradc_weights_load(&fake_model, into, "/none/x", flags & 7, &e);
    if (status != GRADC_OK && e.text[0] == '\0')
        abort();
    gradc_checkpoint_peek("/none/x", &info, &e);
    if (fault_live() != 0 || fault_open() != 0)
        abort();
    fault_end();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    if (n < 1)
        return 0;
    if (good == NULL)
        set_up();
    if ((data[0] & 1) == 0) {
        load(data[0] >> 1, data + 1, n - 1);
    } else {
        uint8_t *file = malloc((size_t)good_n);
        memcpy(file, good, (size_t)good_n);
        for (size_t i = 1; i + 2 < n; i += 3)
            file[(data[i] | data[i + 1] << 8) % good_n] = data[i + 2];
        mend(file);
        load(data[0] >> 1, file, (size_t)good_n);
        free(file);
    }
    for (int t = 0; t < FAKE_TENSORS; t++)
        memcpy(into->value[t], untouched->value[t], (size_t)fake_model.tensors[t].bytes);
    return 0;
}
