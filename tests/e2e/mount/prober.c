/* SPDX-License-Identifier: MIT
 *
 * Looks up a name again and again, and writes a byte after each time. It touches
 * nothing else, so that it runs while the file system of the program itself hangs.
 */
#include <unistd.h>

int main(int count, char **arguments)
{
    if (count < 2)
        return 1;
    for (;;) {
        access(arguments[1], F_OK);
        usleep(10000);
        if (write(1, ".", 1) != 1)
            return 0;
    }
}
