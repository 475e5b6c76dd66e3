/* SPDX-License-Identifier: MIT
 *
 * Text and numbers put together in a buffer.
 */
#include "stage_text.h"

#include <stddef.h>
#include <string.h>

char *text_put(char *to, const char *end, const char *text)
{
    size_t length = to ? strlen(text) : 0;
    if (to == NULL || (size_t)(end - to) <= length)
        return NULL;
    memcpy(to, text, length + 1);
    return to + length;
}

static char *put_number(char *to, const char *end, uint64_t number, unsigned base)
{
    char digits[21];
    size_t first = sizeof digits - 1;
    digits[first] = '\0';
    do
        digits[--first] = "0123456789abcdef"[number % base];
    while ((number /= base) > 0);
    return text_put(to, end, digits + first);
}

char *text_put_hex(char *to, const char *end, uint64_t number)
{
    return put_number(to, end, number, 16);
}

char *text_put_decimal(char *to, const char *end, uint64_t number)
{
    return put_number(to, end, number, 10);
}
