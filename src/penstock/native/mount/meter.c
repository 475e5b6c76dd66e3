/* SPDX-License-Identifier: MIT */
#include "meter.h"

#include <math.h>
#include <string.h>

#define FIRST_CLASS_S 1e-6
#define PERCENTILE 0.95

void meter_init(struct meter *meter, double latency_s, double now_s)
{
    memset(meter, 0, sizeof(*meter));
    meter->latency_s = latency_s;
    meter->began_s = now_s;
    meter->figures.p95_s = -1.0;
}

static int class_of(double response_s)
{
    double steps = log2(fmax(response_s, FIRST_CLASS_S) / FIRST_CLASS_S) * METER_STEPS;
    return steps < METER_CLASSES - 1 ? (int)steps : METER_CLASSES - 1;
}

/* Return the rank of the 95th percentile in the present window: ceil(0.95 n). */
static int64_t rank(const struct meter *meter)
{
    return (int64_t)ceil(PERCENTILE * (double)meter->window_requests);
}

static double percentile(const struct meter *meter)
{
    int64_t left = rank(meter);
    int class = 0;
    while ((left -= meter->classes[class]) > 0)
        class++;
    return FIRST_CLASS_S * exp2((class + 1.0) / METER_STEPS);
}

static void close_window(struct meter *meter)
{
    struct meter_figures *figures = &meter->figures;
    figures->p95_s = -1.0;
    figures->bytes_per_s = (double)meter->window_bytes / METER_WINDOW_S;
    if (!meter->window_requests)
        return;
    figures->p95_s = percentile(meter);
    figures->windows++;
    figures->kept_windows += meter->window_late <= meter->window_requests - rank(meter);
    memset(meter->classes, 0, sizeof(meter->classes));
    meter->window_bytes = meter->window_requests = meter->window_late = 0;
}

/* Close the present window if it has ended; later empty windows count too. */
static void advance(struct meter *meter, double now_s)
{
    int64_t number = (int64_t)((now_s - meter->began_s) / METER_WINDOW_S);
    if (number == meter->number)
        return;
    close_window(meter);
    if (number > meter->number + 1)
        close_window(meter);
    meter->number = number;
}

void meter_record(struct meter *meter, double response_s, int64_t moved_bytes,
                  double now_s)
{
    advance(meter, now_s);
    meter->figures.requests++;
    meter->figures.moved_bytes += moved_bytes;
    meter->window_bytes += moved_bytes;
    meter->window_requests++;
    meter->window_late += response_s > meter->latency_s;
    meter->classes[class_of(response_s)]++;
}

struct meter_figures meter_read(struct meter *meter, double now_s)
{
    advance(meter, now_s);
    return meter->figures;
}
