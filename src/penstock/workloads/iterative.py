# SPDX-License-Identifier: MIT
"""Drawing applications that repeat (work, I/O): papers/1 6.2.1 and papers/3 4.

Both papers draw an application in the same way: a mean iteration omega, the
fraction phi of it that is I/O, and as many noisy iterations as fill the horizon.

Seeds: instance k of seed s uses the stream (s, k); application i of it has the
stream (s, k, i) to itself. So instance k is the same whatever else is drawn, and
application i does not depend on how many numbers the others needed.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.random import Generator, SeedSequence, default_rng

from penstock.errors import InputError
from penstock.model import Application

__all__ = [
    "MOST_ITERATIONS",
    "Character",
    "Iterative",
    "Recipe",
    "draw_applications",
    "draw_characters",
]


#: Most iterations of all applications together: two columns of 800 MB.
MOST_ITERATIONS: Final = 100_000_000


@dataclass(frozen=True, slots=True)
class Recipe:
    """How the applications of one instance are drawn (b_i = B = 1, one node each)."""

    means: Sequence[float]
    """mu of every application (s)."""
    sigma: float
    """Standard deviation of omega, as a fraction of mu."""
    shortest: float
    """omega is redrawn until it exceeds this (s)."""
    load: float
    """W, or the stress of papers/3: sum of the I/O fractions phi."""
    noise: float
    """nu: works and volumes are off their means by U[-nu, nu], independently."""
    horizon: float
    """h: iterations are added until their mean length reaches this (s)."""
    offset: bool
    """Whether to begin with a work phase of U[0, omega] (papers/1)."""
    period_known: bool
    """Whether omega is known to the policies (papers/3)."""


@dataclass(frozen=True, slots=True)
class Character:
    """What is drawn first of an application, and the stream of all the rest."""

    omega: float
    """Mean length of an iteration (s)."""
    fraction: float
    """phi: the part of it that is I/O."""
    generator: Generator

    def iterations(self, horizon: float) -> int:
        """Return how many iterations fill the horizon (s)."""
        return math.ceil(horizon / self.omega)


def draw_characters(recipe: Recipe, seed: int, index: int) -> list[Character]:
    """Draw omega and phi of the applications of instance `index` of `seed`."""
    sequence = SeedSequence(seed, spawn_key=(index,))
    generators = [default_rng(child) for child in sequence.spawn(len(recipe.means))]
    omegas = [
        _iteration_length(mean, recipe, generator)
        for mean, generator in zip(recipe.means, generators, strict=True)
    ]
    weights = np.array([generator.uniform() for generator in generators])
    fractions = (recipe.load * weights / weights.sum()).tolist()
    drawn = zip(omegas, fractions, generators, strict=True)
    return [Character(*parts) for parts in drawn]


def draw_applications(recipe: Recipe, seed: int, index: int) -> tuple[Application, ...]:
    """Draw the applications of instance `index` of `seed`."""
    characters = draw_characters(recipe, seed, index)
    _check_size(characters, recipe.horizon)
    return tuple(
        _application(number, recipe, character)
        for number, character in enumerate(characters)
    )


def _check_size(characters: Sequence[Character], horizon: float) -> None:
    """Raise `InputError` before the memory is taken, if there is too little of it."""
    count = sum(character.iterations(horizon) for character in characters)
    if count > MOST_ITERATIONS:
        raise InputError(
            f"{horizon:g} s are {count:.3g} iterations of {len(characters)} "
            "applications",
            where="horizon",
            remedy=f"at most {MOST_ITERATIONS:,} fit into memory",
        )


class Iterative(ABC):
    """A workload whose applications are drawn by a `Recipe`."""

    __slots__ = ()

    @property
    @abstractmethod
    def recipe(self) -> Recipe:
        """How the applications are drawn."""

    def characters(self, seed: int, index: int) -> list[Character]:
        """Return omega and phi of the applications of an instance."""
        return draw_characters(self.recipe, seed, index)

    def operations(self, seed: int, index: int) -> int:
        """Return how many operations an instance has, without drawing them."""
        horizon = self.recipe.horizon
        return sum(c.iterations(horizon) for c in self.characters(seed, index))


def _iteration_length(mean: float, recipe: Recipe, generator: Generator) -> float:
    """Draw omega from N(mu, sigma mu), truncated from below (s)."""
    omega = generator.normal(mean, recipe.sigma * mean)
    while not omega > recipe.shortest:
        omega = generator.normal(mean, recipe.sigma * mean)
    return float(omega)


def _application(number: int, recipe: Recipe, character: Character) -> Application:
    """Draw the iterations of one application."""
    omega, fraction = character.omega, character.fraction
    generator = character.generator
    count = character.iterations(recipe.horizon)
    noise = 1.0 + generator.uniform(-recipe.noise, recipe.noise, size=(count, 2))
    work = np.zeros(count + 1)
    # An I/O fraction above 1 (few applications, high load) leaves no work at all.
    work[:-1] = noise[:, 0] * max(1.0 - fraction, 0.0) * omega
    if recipe.offset:
        work[0] += generator.uniform(0.0, omega)
    return Application(
        name=f"app{number}",
        nodes=1,
        work=work,
        volume=noise[:, 1] * fraction * omega,
        period=omega if recipe.period_known else 0.0,
    )
