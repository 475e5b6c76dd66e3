# SPDX-License-Identifier: MIT
"""Settings of a daemon that do not go together, or of which one has no effect.

Every setting that somebody has given must do something: each that does nothing is
refused with one message. What a strategy of another package makes of its parameters,
of targets and of priorities is not known, so that nothing is refused there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from penstock.errors import InputError
from penstock.live.setting_values import UNIX
from penstock.live.settings import Settings

__all__ = ["check_together"]

#: Strategies that do nothing but divide the storage targets, and all that can.
_PARTITIONS: Final = ("3a", "3b")
_DIVIDING: Final = (*_PARTITIONS, "combined", "auto")
#: What only the controller uses.
_OF_CONTROLLER: Final = (
    *("strategy", "priorities", "targets", "placement", "target_bandwidths"),
    *("job_classes", "job_folder"),
)


def check_together(settings: Settings) -> None:
    """Raise `InputError` if one setting of a daemon makes another one useless."""
    _check_agent(settings)
    _check_page(settings)
    if settings.join:
        # The rest is about the controller: with `join`, it has its usual values.
        return
    _check_strategy(settings)
    _check_placement(settings)
    _check_targets(settings)


def _check_agent(settings: Settings) -> None:
    if not settings.join:
        return
    if settings.listen:
        raise InputError(
            "does not go with `join`",
            where="listen",
            remedy="agents must join the controller itself: remove one of the two",
        )
    if settings.web:
        raise InputError(
            "does not go with `join`",
            where="web",
            remedy="show the page where the controller runs",
        )
    usual = Settings()
    for name in _OF_CONTROLLER:
        if getattr(settings, name) != getattr(usual, name):
            raise InputError(
                "has no effect with `join`",
                where=name,
                remedy="set it where the controller runs, and remove it here",
            )


def _check_page(settings: Settings) -> None:
    if settings.web and not (settings.web_token or _is_local(settings.web)):
        raise InputError(
            f"{settings.web!r} can be reached from other machines",
            where="web",
            remedy="give a web_token file, or an address such as 127.0.0.1:9480",
        )
    if settings.web_proxy and settings.web_token:
        raise InputError(
            "does not go with `web_token`",
            where="web_proxy",
            remedy="let either the web server or tokens say who reads: remove one",
        )


def _is_local(address: str) -> bool:
    """Return True if only this machine can reach an address; no HOST: it can."""
    host = address.rpartition(":")[0].strip("[]")
    if address.startswith(UNIX) or host in ("", "localhost"):
        return True
    import ipaddress  # noqa: PLC0415 - rarely used

    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


# --- Staging and storage targets ------------------------------------------------------


class _Strategy:
    """The setting `strategy`, as far as its parameters are known here."""

    def __init__(self, text: str) -> None:
        from penstock.staging import STRATEGIES  # noqa: PLC0415 - agents need none

        self.name, _, parameters = text.partition(":")
        pairs = (each.partition("=") for each in parameters.split(","))
        self.given: Mapping[str, str] = {k.strip(): v.strip() for k, _, v in pairs}
        self.is_known = self.name in STRATEGIES

    @property
    def may_divide(self) -> bool:
        """True if it can give storage targets to jobs."""
        stages_only = self.name == "auto" and self.given.get("use") == "stage"
        return not self.is_known or (self.name in _DIVIDING and not stages_only)

    @property
    def needs_targets(self) -> bool:
        """True if it does nothing without storage targets."""
        divides_only = self.name == "auto" and self.given.get("use") == "partition"
        return self.name in _PARTITIONS or divides_only

    @property
    def reads_bandwidths(self) -> bool:
        """True if it may use the bandwidths on 1, 2, ... targets."""
        return self.may_divide and (self.name == "auto" or not self.is_known)


def _check_strategy(settings: Settings) -> None:
    strategy = _Strategy(settings.strategy)
    if not strategy.is_known:
        return
    given = strategy.given
    if "window" in given and given.get("flush") != "window":
        raise InputError(
            f"window has no effect in {settings.strategy}",
            where="strategy",
            remedy="add flush=window, or remove window",
        )
    if "by" in given and given.get("split") == "halve":
        raise InputError(
            f"by has no effect in {settings.strategy}: all parts are halves",
            where="strategy",
            remedy="remove by or split=halve",
        )
    if settings.priorities and given.get("flush") != "priority":
        raise InputError(
            f"has no effect with the strategy {settings.strategy}",
            where="priorities",
            remedy="use a strategy with flush=priority, e.g. 2b:flush=priority, or "
            "remove priorities",
        )


def _check_placement(settings: Settings) -> None:
    strategy = _Strategy(settings.strategy)
    if settings.placement and not settings.targets:
        raise InputError(
            "has no effect without `targets`",
            where="placement",
            remedy="set targets and job_folder, or remove placement",
        )
    if settings.placement and strategy.is_known and strategy.may_divide:
        raise InputError(
            f"does not go with the strategy {settings.strategy}, which divides the "
            "targets as well",
            where="placement",
            remedy="remove placement, or choose another strategy",
        )
    if settings.job_classes and not settings.placement:
        raise InputError(
            "has no effect without `placement`",
            where="job_classes",
            remedy="set placement, or remove job_classes",
        )
    if settings.target_bandwidths and not (
        settings.placement or strategy.reads_bandwidths
    ):
        raise InputError(
            "has no effect without `placement` or a strategy that simulates (`auto`)",
            where="target_bandwidths",
            remedy="set one of the two, or remove target_bandwidths",
        )


def _check_targets(settings: Settings) -> None:
    strategy = _Strategy(settings.strategy)
    if not settings.targets:
        if strategy.needs_targets:
            raise InputError(
                f"{settings.strategy} divides storage targets, and no `targets` are "
                "set",
                where="strategy",
                remedy="set targets and job_folder, or choose another strategy",
            )
        for name in ("job_folder", "target_bandwidths"):
            if getattr(settings, name):
                raise InputError(
                    "has no effect without `targets`",
                    where=name,
                    remedy=f"set targets, or remove {name}",
                )
        return
    if not (settings.placement or strategy.may_divide):
        raise InputError(
            f"has no effect: the strategy {settings.strategy} does not divide storage "
            "targets, and no `placement` is set",
            where="targets",
            remedy="set placement, choose the strategy 3a, 3b, combined or auto, or "
            "remove targets",
        )
    driver, _, rest = settings.targets.partition(":")
    if driver == "beegfs" and settings.users == "all":
        raise InputError(
            "beegfs-ctl gives a folder its targets for root only, so that jobs of "
            "other users would have none",
            where="targets",
            remedy="set users = own, or use another driver",
        )
    count = len(set(filter(None, rest.rpartition(":")[2].split(","))))
    if len(settings.target_bandwidths) > count > 0:
        raise InputError(
            f"{len(settings.target_bandwidths)} bandwidths for {count} targets",
            where="target_bandwidths",
            remedy="give one for each number of targets, or fewer",
        )
