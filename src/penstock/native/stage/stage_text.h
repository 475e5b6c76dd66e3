/* SPDX-License-Identifier: MIT
 *
 * Text and numbers put together in a buffer, without printf: it may allocate and is not
 * safe in signal handlers.
 *
 * Every function writes at `to`, never at or behind `end`, and returns where the text
 * ends (at its terminating zero). If there is no room, or `to` is NULL, it writes
 * nothing and returns NULL, so that calls can be nested and checked once.
 */
#ifndef PENSTOCK_STAGE_TEXT_H
#define PENSTOCK_STAGE_TEXT_H

#include <stdint.h>

char *text_put(char *to, const char *end, const char *text);
char *text_put_hex(char *to, const char *end, uint64_t number);
char *text_put_decimal(char *to, const char *end, uint64_t number);

#endif
