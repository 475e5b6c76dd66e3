/* SPDX-License-Identifier: MIT
 *
 * Response times and throughput of an application, window by window.
 *
 * A response time runs from the arrival of a request at the mount to its answer,
 * including the time in queues. Windows follow one another without gaps. Figures are
 * those of the last complete window. The 95th percentile comes from a histogram whose
 * classes are 1.1 % wide, and is the upper bound of its class. Whether a window was
 * within the bound is counted exactly.
 *
 * Pure: time (s) is passed in. The caller serialises the calls.
 */
#ifndef PENSTOCK_METER_H
#define PENSTOCK_METER_H

#include <stdint.h>

/* Length of a window, as in Figure 4 of two-level scheduling. */
#define METER_WINDOW_S 0.5

/* Classes of the histogram: METER_STEPS per factor of two, from 1 us. */
enum { METER_STEPS = 64, METER_CLASSES = 32 * METER_STEPS };

/* What Python reads (mount/data_path.py has the same struct). */
struct meter_figures {
    int64_t requests;     /* answered, in total */
    int64_t moved_bytes;  /* in total */
    int64_t windows;      /* number of windows with at least one answer */
    int64_t kept_windows; /* of these, those whose 95th percentile was in the bound */
    double p95_s;         /* of the last window; below 0: no request was answered */
    double bytes_per_s;   /* in the last window */
};

struct meter {
    struct meter_figures figures;
    double latency_s; /* the latency bound */
    double began_s;
    int64_t number; /* of the present window */
    int64_t window_bytes;
    int64_t window_requests;
    int64_t window_late; /* answered later than the bound */
    uint32_t classes[METER_CLASSES];
};

void meter_init(struct meter *meter, double latency_s, double now_s);

/* Record an answered request. */
void meter_record(struct meter *meter, double response_s, int64_t moved_bytes,
                  double now_s);

/* Close the present window if it has ended, and return all figures. */
struct meter_figures meter_read(struct meter *meter, double now_s);

#endif
