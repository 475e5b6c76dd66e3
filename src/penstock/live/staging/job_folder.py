# SPDX-License-Identifier: MIT
"""Where the folders of jobs are, and how one is made: the setting `job_folder`.

The operator chooses what is above the first part of the path with ``{user}`` or
``{job}``. From there on, every folder must belong to the user of the job, links are
refused, and no other user may be able to put a folder in the place of one. A process
of that user makes what is missing, so that the kernel decides what is allowed.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from penstock.errors import InputError
from penstock.live.staging.own_folder import make_own, open_below
from penstock.live.wire.identity import user_name

__all__ = ["JobFolder", "folder_name"]

_JOB: Final = "{job}"
_USER: Final = "{user}"


def folder_name(user: int) -> str:
    """Return the name of the folder of a user: its name, or else its number."""
    return user_name(user) or str(user)


class JobFolder:
    """The pattern of the folders of jobs.

    Parameters
    ----------
    pattern
        Absolute path with ``{job}``, the name of the job, and maybe ``{user}``, the
        name of its user.
    all_users
        True: jobs of all users have such folders. Then a part of the path above the
        name of the job must have ``{user}``: users choose the names of their jobs.
    """

    def __init__(self, pattern: str, *, all_users: bool = False) -> None:
        before = pattern.partition(_JOB)[0]
        if not Path(pattern).is_absolute() or _JOB not in pattern:
            raise InputError(
                f"{pattern!r} is not a pattern of job folders",
                where="job_folder",
                remedy='write an absolute path with {job}, e.g. "/mnt/mfs/{job}"',
            )
        if all_users and _USER not in before.rpartition("/")[0]:
            raise InputError(
                f"{pattern!r} has no folder for each user, as users = all needs",
                where="job_folder",
                remedy='write e.g. "/mnt/mfs/{user}/{job}"',
            )
        self.text = pattern
        head = min((pattern.partition(word)[0] for word in (_JOB, _USER)), key=len)
        self.above = Path(head.rpartition("/")[0] or "/")
        """The folder that the operator has chosen."""

    def of_user(self, user: int) -> str:
        """Return the pattern for the jobs of one user."""
        return self.text.replace(_USER, folder_name(user))

    def top_of_user(self, user: int) -> Path:
        """Return the folder of a user in `above`; its pattern has ``{user}``."""
        part = Path(self.of_user(user)).relative_to(self.above).parts[0]
        return self.above / part

    def path(self, user: int, job_name: str) -> Path:
        """Return the folder of a job; raise `InputError` if its name cannot be used."""
        if not job_name or set(job_name) & {"/", "\0"} or job_name in (".", ".."):
            raise InputError(f"{job_name!r} cannot be the name of a folder")
        return Path(self.of_user(user).replace(_JOB, job_name))

    def is_there(self, user: int, job_name: str) -> bool:
        """Return True if the part of the path with the name of the job exists.

        It may be a link of the user: no link below `above` is followed.
        """
        own = Path(self.of_user(user).partition(_JOB)[0].rpartition("/")[0] or "/")
        part = self.path(user, job_name).relative_to(own).parts[0]
        try:
            parent = open_below(self.above, own.relative_to(self.above).parts)
        except (FileNotFoundError, NotADirectoryError):
            return False
        try:
            os.stat(part, dir_fd=parent, follow_symlinks=False)
        except FileNotFoundError:
            return False
        finally:
            os.close(parent)
        return True

    def make(self, user: int, job_name: str) -> Path:
        """Make and return the folder of a job, as its user, who runs this process."""
        folder = self.path(user, job_name)
        try:
            self.above.mkdir(parents=True, exist_ok=True)
            make_own(self.above, folder, "choose another job_folder")
        except OSError as error:
            raise InputError(
                f"cannot make the folder: {error.strerror}",
                where=str(folder),
                remedy="check the setting job_folder",
            ) from None
        return folder
