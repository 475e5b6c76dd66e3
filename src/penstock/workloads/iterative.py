# SPDX-License-Identifier: MIT
"""Random applications that repeat iterations of work and I/O.

Bandwidth sharing (section 6.2.1) and IO-SETS (section 4) draw an application in the
same way: a mean iteration length omega, the I/O fraction phi of an iteration, and as
many noisy iterations as fill the horizon.

Seeds: instance k of seed s uses the random stream (s, k); its application i uses the
stream (s, k, i). Therefore an instance does not depend on the other instances, and an
application does not depend on the other applications.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.random import Generator, default_rng

from penstock.errors import InputError
from penstock.model import Application
from penstock.workloads.random_streams import seed_sequence

__all__ = [
    "MOST_ITERATIONS",
    "Character",
    "Iterative",
    "Recipe",
    "draw_applications",
    "draw_characters",
]


#: Largest number of iterations of all applications: two columns of 800 MB.
MOST_ITERATIONS: Final = 100_000_000


@dataclass(frozen=True, slots=True)
class Recipe:
    """Distribution of the applications of an instance (b_i = B = 1, one node each)."""

    means: Sequence[float]
    """mu of every application (s)."""
    sigma: float
    """Standard deviation of omega, as a fraction of mu."""
    shortest: float
    """omega is redrawn until it exceeds this (s)."""
    load: float
    """Sum of the I/O fractions phi: the pressure W, or the stress of IO-SETS."""
    noise: float
    """nu: every work and volume differs from its mean by U[-nu, nu], relatively."""
    horizon: float
    """h: iterations are added until the sum of their mean lengths reaches h (s)."""
    offset: bool
    """True: begin with a work phase of U[0, omega] (bandwidth sharing)."""
    period_known: bool
    """True: the policies know omega (IO-SETS)."""


@dataclass(frozen=True, slots=True)
class Character:
    """Mean iteration of an application, and the random stream of its iterations."""

    omega: float
    """Mean length of an iteration (s)."""
    fraction: float
    """phi: the fraction of an iteration that is I/O."""
    generator: Generator

    def iterations(self, horizon: float) -> int:
        """Return the number of iterations that fill the horizon (s)."""
        return math.ceil(horizon / self.omega)


def draw_characters(recipe: Recipe, seed: int, index: int) -> list[Character]:
    """Draw omega and phi of the applications of instance `index` of `seed`."""
    sequence = seed_sequence(seed, index)
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
    """Raise `InputError` if the iterations would take too much memory."""
    count = sum(character.iterations(horizon) for character in characters)
    if count > MOST_ITERATIONS:
        raise InputError(
            f"{horizon:g} s give {count:.3g} iterations of {len(characters)} "
            "applications",
            where="horizon",
            remedy=f"give a shorter horizon: at most {MOST_ITERATIONS:,} iterations",
        )


class Iterative(ABC):
    """A workload whose applications follow a `Recipe`."""

    __slots__ = ()

    @property
    @abstractmethod
    def recipe(self) -> Recipe:
        """Distribution of the applications."""

    def characters(self, seed: int, index: int) -> list[Character]:
        """Return omega and phi of the applications of an instance."""
        return draw_characters(self.recipe, seed, index)

    def operations(self, seed: int, index: int) -> int:
        """Return the number of operations of an instance, without drawing them."""
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
    # With an I/O fraction above 1 (few applications, high load) there is no work.
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
