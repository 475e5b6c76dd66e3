/* SPDX-License-Identifier: MIT
 *
 * The interface of burst-buffer coordination (section IV-B) inside the preload library.
 * bbio/libbbio.c finds these functions by name, so that a program also runs without the
 * library.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>

#include "stage.h"

EXPORT int penstock_bbio_init(const char *path, size_t size);
EXPORT int penstock_bbio_enable(int fd);
EXPORT int penstock_bbio_disable(int fd);
EXPORT int penstock_bbio_flush(int fd);
EXPORT int penstock_bbio_finalize(void);
EXPORT int penstock_bbio_on_flush(int fd, stage_callback *callback);

static int answer(int error)
{
    if (error == 0)
        return 0;
    errno = error;
    return -1;
}

int penstock_bbio_init(const char *path, size_t size)
{
    char folder[PATH_MAX];
    if (path != NULL && realpath(path, folder) == NULL)
        return -1;
    stage_write_through_all();
    int error = -stage_use(path != NULL ? folder : NULL, size);
    if (error == 0 && !LOAD(stage_enabled))
        error = stage_switch_on();
    if (error != 0)
        return answer(error);
    stage_settings.always = true;
    STORE(stage_settings.finished, false);
    identity_control_all();
    return 0;
}

int penstock_bbio_enable(int fd)
{
    return answer(stage_allow(fd));
}

int penstock_bbio_disable(int fd)
{
    if (!identity_is_controlled(fd))
        return 0;
    int error = stage_write_through(fd), late = stage_flush(fd);
    return answer(error != 0 ? error : late);
}

int penstock_bbio_flush(int fd)
{
    return identity_is_controlled(fd) ? answer(stage_flush(fd)) : 0;
}

int penstock_bbio_finalize(void)
{
    stage_write_through_all();
    STORE(stage_settings.finished, true);
    return 0;
}

int penstock_bbio_on_flush(int fd, stage_callback *callback)
{
    return answer(stage_notify(fd, callback));
}
