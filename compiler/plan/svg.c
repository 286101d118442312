#include "svg.h"

enum {
    WIDTH = 9600,
    HEIGHT = 4800,
    LEFT = 1300,
    RIGHT = 300,
    TOP = 500,
    BOTTOM = 1000,
    FONT = 150
};

int32_t svg_x(const SvgFrame *f, double x)
{
    double range = f->x1 > f->x0 ? f->x1 - f->x0 : 1;
    return LEFT + (int32_t)((x - f->x0) / range * (WIDTH - LEFT - RIGHT) + 0.5);
}

int32_t svg_y(const SvgFrame *f, double y)
{
    double range = f->y1 > 0 ? f->y1 : 1;
    return HEIGHT - BOTTOM - (int32_t)(y / range * (HEIGHT - TOP - BOTTOM) + 0.5);
}

static void put_text(int32_t x, int32_t y, const char *anchor, const char *what, Text *to)
{
    text_add(to, "<text x=\"%d\" y=\"%d\" text-anchor=\"%s\">%s</text>\n", x, y, anchor, what);
}

void svg_open(const SvgFrame *f, const char *title, Text *to)
{
    (void)f;
    text_add(to,
             "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
             "viewBox=\"0 0 %d %d\" font-family=\"sans-serif\" font-size=\"%d\">\n"
             "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
             WIDTH / 10, HEIGHT / 10, WIDTH, HEIGHT, FONT);
    put_text(LEFT, 300, "start", title, to);
}

void svg_axes(const SvgFrame *f, Text *to)
{
    int32_t bottom = HEIGHT - BOTTOM, right = WIDTH - RIGHT;
    text_add(to, "<path d=\"M%d %dV%dH%d\" fill=\"none\" stroke=\"black\" stroke-width=\"10\"/>\n",
             LEFT, TOP, bottom, right);
    put_text(LEFT, bottom + 220, "start", arena_printf(to->arena, "%.0f", f->x0), to);
    put_text(right, bottom + 220, "end", arena_printf(to->arena, "%.0f", f->x1), to);
    put_text(LEFT - 60, bottom, "end", "0", to);
    put_text(LEFT - 60, TOP + FONT / 2, "end",
             arena_printf(to->arena, f->y1 < 1000 ? "%.1f" : "%.0f", f->y1), to);
}

void svg_legend(const SvgFrame *f, int n, const char *color, const char *what, Text *to)
{
    (void)f;
    int32_t x = LEFT + n % 4 * 2000, y = HEIGHT - 600 + n / 4 * 200;
    text_add(to, "<rect x=\"%d\" y=\"%d\" width=\"120\" height=\"120\" fill=\"%s\"/>\n", x, y - 110,
             color);
    put_text(x + 170, y, "start", what, to);
}

void svg_close(Text *to)
{
    text_add(to, "</svg>\n");
}
