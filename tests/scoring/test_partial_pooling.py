"""The partially pooled ridge: closed form against brute force."""

from __future__ import annotations

import numpy as np
import pytest

from rocketeval.scoring.ridge import (
    FEATURE_PENALTIES,
    ITEM_PENALTIES,
    LEVEL_PENALTIES,
    Design,
    Penalties,
    fit_pooled,
    fit_with,
)


def make_design(seed: int = 0, sizes: tuple[int, ...] = (4, 1, 6, 3)) -> Design:
    """Return queries of several sizes, with three items each."""
    random = np.random.default_rng(seed)
    rows = sum(sizes)
    features = np.column_stack([np.ones(rows), random.normal(size=(rows, 3))])
    items = np.column_stack([np.ones(rows), random.normal(size=(rows, 3))])
    starts = np.cumsum([0, *sizes])
    return Design(features, items, starts, random.normal(size=rows))


def brute_force(design: Design, penalties: Penalties, labels: np.ndarray) -> np.ndarray:
    """Return the predictions of one ridge with dummy columns for everything."""
    rows, queries = len(labels), len(design.starts) - 1
    width = design.items.shape[1]
    own = np.zeros((rows, queries * width))
    for place, part in enumerate(design.queries):
        own[part, place * width : (place + 1) * width] = design.items[part]
    columns = np.column_stack([design.features, own])
    free = [1e-9 * rows] * 2
    held = [penalties.features * rows] * (design.features.shape[1] - 2)
    each = [penalties.level, *[penalties.items] * (width - 1)]
    curvature = columns.T @ columns + np.diag([*free, *held, *each * queries])
    return columns @ np.linalg.solve(curvature, columns.T @ labels)


@pytest.mark.parametrize("penalties", [Penalties(0.1, 1.0, 0.3), Penalties(1.0, 30.0, 10.0)])
def test_closed_form_equals_one_big_ridge(penalties: Penalties) -> None:
    """Pooled part and own parts together predict the same as the dummy-column ridge."""
    design = make_design()
    fitted = fit_with(design, penalties)
    pooled = design.features @ fitted.weights
    own = np.concatenate(
        [design.items[rows] @ part for rows, part in zip(design.queries, fitted.own, strict=True)]
    )
    np.testing.assert_allclose(
        pooled + own, brute_force(design, penalties, design.labels), atol=1e-9
    )


def test_left_out_error_equals_explicit_leave_one_out() -> None:
    """A label equal to its own left-out prediction changes nothing: a fixed point."""
    design, penalties = make_design(1), Penalties(0.1, 1.0, 3.0)
    errors = []
    for row in range(len(design.labels)):
        labels = design.labels.copy()
        for _ in range(2000):
            guess = brute_force(design, penalties, labels)[row]
            if abs(guess - labels[row]) < 1e-13:
                break
            labels[row] = guess
        errors.append((design.labels[row] - labels[row]) ** 2)
    assert fit_with(design, penalties).left_out_error == pytest.approx(np.mean(errors), rel=1e-6)


def test_the_chosen_penalties_are_the_best_of_the_grid() -> None:
    """No other point of the grid predicts left-out labels better."""
    design = make_design(2, (5, 5, 8))
    best = fit_pooled(design)
    others = [
        fit_with(design, Penalties(features, level, items)).left_out_error
        for features in FEATURE_PENALTIES
        for level in LEVEL_PENALTIES
        for items in ITEM_PENALTIES
    ]
    assert best.left_out_error == pytest.approx(min(others), rel=1e-12)
    assert fit_with(design, best.penalties).left_out_error == best.left_out_error


def test_query_level_is_shrunk_by_the_penalty() -> None:
    """n labels of 1 against zeros move a level by n / (n + penalty)."""
    sizes = (200, 3)
    rows = sum(sizes)
    zeros = np.zeros(rows)
    design = Design(
        np.column_stack([np.ones(rows), zeros]),
        np.column_stack([np.ones(rows), zeros]),
        np.cumsum([0, *sizes]),
        np.array([0.0] * 200 + [1.0] * 3),
    )
    fitted = fit_with(design, Penalties(1.0, 3.0, 1.0))
    gap = fitted.own[1, 0] / (1.0 - fitted.weights[0])
    assert gap == pytest.approx(3 / (3 + 3.0))
