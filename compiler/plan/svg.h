/* Pictures of plans, in integers alone: the same bytes everywhere. */
#ifndef GRADC_PLAN_SVG_H
#define GRADC_PLAN_SVG_H

#include "../base/vec.h"

/* From [x0, x1] and [0, y1] to tenths of a pixel. */
typedef struct SvgFrame {
    double x0, x1, y1;
} SvgFrame;

int32_t svg_x(const SvgFrame *f, double x);
int32_t svg_y(const SvgFrame *f, double y);

void svg_open(const SvgFrame *f, const char *title, Text *to);
/* Both axes, with their ends as numbers. */
void svg_axes(const SvgFrame *f, Text *to);
/* The n-th entry of the legend. */
void svg_legend(const SvgFrame *f, int n, const char *color, const char *what, Text *to);
void svg_close(Text *to);

#endif
