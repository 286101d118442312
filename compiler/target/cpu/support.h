/* The part of every object that is not made of kernels: checks, messages, copies.
 * Written as LLVM's text, for it is the same in each object but for constants. */
#ifndef GRADC_TARGET_CPU_SUPPORT_H
#define GRADC_TARGET_CPU_SUPPORT_H

#include "ir.h"

/* Bytes of the handle: magic, busy, threads, parallel_for, context, last entry, length of
 * the message; the message from HANDLE_TEXT on. */
enum {
    HANDLE_MAGIC = 0,
    HANDLE_BUSY = 8,
    HANDLE_THREADS = 12,
    HANDLE_FOR = 16,
    HANDLE_CONTEXT = 24,
    HANDLE_LAST = 32,    /* i64: 1 after a successful grad */
    HANDLE_OFFLOAD = 40, /* the caller's gradc_offload, or NULL */
    HANDLE_FAILED = 56,  /* i32: what its functions returned, if not 0 */
    HANDLE_TEXT = 64
};

/* Attribute of functions that no step waits for. */
#define SUPPORT_QUICK "gradc-quick"

/* Two halves of one text. */
extern const char support_text[], support_calls[];

typedef struct SupportConstants {
    uint64_t magic;
    const char *name; /* the model's, for messages */
    int64_t arena_bytes, pinned_bytes, store_bytes, seed;
    int32_t threads_max, abi;
} SupportConstants;

/* Opens a module that begins as the text.   fails: false, after a report. */
bool support_open(Ctx *cx, Ir *ir, const Machine *mach, Arena *arena, const SupportConstants *k);
Lv support_fn(Ir *ir, const char *name);
/* Splits the text, as it is now: gives the module of what no step waits for, whose functions are
 * declared in ir->m from now on. When ir->m is complete, what that module calls is shown to it. */
LLVMModuleRef support_split(Ir *ir);
void support_show(Ir *ir);

/* platform.c: what differs between machines: gradc.fp_set, gradc.fp_restore,
 * gradc.cpu_missing, gradc.feature_name. */
void platform_define(Ir *ir);

#endif
