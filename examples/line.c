/* Fits line.model to the diabetes data and compares it with the normal equations.
 * Efron, Hastie, Johnstone, Tibshirani, Least Angle Regression (2004). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include "gradc.h"
#include "line.h"

enum { ROWS = 442, COLUMNS = 10, N = COLUMNS + 1 };

/* Columns of mean 0 and deviation 1, so that descent is not slowed by their units. */
static void standardize(double *x)
{
    for (int c = 0; c < COLUMNS; c++) {
        double mean = 0, square = 0;
        for (int r = 0; r < ROWS; r++)
            mean += x[r * COLUMNS + c] / (double)ROWS;
        for (int r = 0; r < ROWS; r++)
            square += (x[r * COLUMNS + c] - mean) * (x[r * COLUMNS + c] - mean) / (double)ROWS;
        for (int r = 0; r < ROWS; r++)
            x[r * COLUMNS + c] = (x[r * COLUMNS + c] - mean) / sqrt(square);
    }
}

/* Solves X'X w = X'y, with a column of ones for the bias, by Cholesky's method. */
static void normal_equations(const double *x, const double *y, double *w)
{
    double a[N][N] = {{0}}, b[N] = {0}, row[N];
    for (int r = 0; r < ROWS; r++) {
        for (int i = 0; i < N; i++)
            row[i] = i < COLUMNS ? x[r * COLUMNS + i] : 1;
        for (int i = 0; i < N; i++) {
            b[i] += row[i] * y[r];
            for (int j = 0; j < N; j++)
                a[i][j] += row[i] * row[j];
        }
    }
    for (int i = 0; i < N; i++)
        for (int j = 0; j <= i; j++) {
            double s = a[i][j];
            for (int k = 0; k < j; k++)
                s -= a[i][k] * a[j][k];
            a[i][j] = i == j ? sqrt(s) : s / a[j][j];
        }
    for (int i = 0; i < N; i++) {
        for (int k = 0; k < i; k++)
            b[i] -= a[i][k] * b[k];
        b[i] /= a[i][i];
    }
    for (int i = N; i-- > 0;) {
        for (int k = i + 1; k < N; k++)
            b[i] -= a[k][i] * w[k];
        w[i] = b[i] / a[i][i];
    }
}

static int fail(const char *text)
{
    fprintf(stderr, "%s\n", text);
    return 1;
}

int main(int argc, char **argv)
{
    char path[4096];
    gradc_error e;
    gradc_array table, columns, target;
    gradc_csv_options csv = {.struct_size = sizeof csv, .dtype = GRADC_F64};
    snprintf(path, sizeof path, "%s/diabetes.csv.gz", argc > 1 ? argv[1] : "examples/data");
    if (gradc_csv_read(path, &csv, &table, &e) ||
        gradc_array_columns(&table, 0, COLUMNS, &columns, &e) ||
        gradc_array_columns(&table, COLUMNS, 1, &target, &e))
        return fail(e.text);
    double *x = columns.data, *y = target.data, want[N], got[N], worst = 0;
    standardize(x);
    normal_equations(x, y, want);

    line *g;
    gradc_options o = {.struct_size = sizeof o, .abi = GRADC_ABI};
    void *block = gradc_alloc(LINE_ARENA_BYTES, LINE_ARENA_ALIGN);
    if (block == NULL || line_init(block, LINE_ARENA_BYTES, &o, &g) != GRADC_OK)
        return fail("line_init failed");
    double loss = 0;
    int steps = argc > 2 ? atoi(argv[2]) : 2000;
    for (int i = 0; i < steps; i++)
        if (line_step(g, &(line_inputs){.x = x, .y = y}, &loss) != GRADC_OK)
            return fail(line_error(g));
    line_read(g, LINE_T_weight, got, COLUMNS * sizeof(double));
    line_read(g, LINE_T_bias, &got[COLUMNS], sizeof(double));
    for (int i = 0; i < N; i++)
        worst = fmax(worst, fabs(got[i] - want[i]) / fabs(want[i]));
    printf("mean squared error %.6f after %d steps; furthest from the normal equations: %.1e\n",
           loss, steps, worst);
    return argc > 2 || worst < 1e-6 ? 0 : fail("the fit is off by more than 1e-6");
}
