/* What the printer and the reader of kernels share. */
#ifndef GRADC_KERNEL_KTEXT_H
#define GRADC_KERNEL_KTEXT_H

/* Loops and dims are i..z, then i1..z1, and so on. */
enum { KTEXT_LETTERS = 'z' - 'i' + 1 };

extern const char *const krole_text[4]; /* by KRole */
extern const char *const kmode_text[4]; /* by KBufMode */

#endif
