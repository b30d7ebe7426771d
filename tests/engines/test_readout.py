"""The readout: variants are summed, extremes are exact, hidden tokens are bounded."""

from __future__ import annotations

import math
import random
from collections import Counter

import pytest

from rocketeval.engines.readout import SLACK, Readout, sigmoid, spellings, weigh_labels
from rocketeval.records import Answer, Status

Listed = list[tuple[str, float]]
YES = sorted(spellings("yes"))
NO = sorted(spellings("no"))
ROUNDING = 1e-12
CUT = {Status.OK, Status.TRUNCATED, Status.UNBOUNDED, Status.HIDDEN}
"""Possible statuses of a cut list if any mass counts."""


def listed(**probabilities: float) -> Listed:
    """Return token and log-probability pairs."""
    return [(token, math.log(p)) for token, p in probabilities.items()]


def test_variants_are_summed() -> None:
    """Case, space and byte markers all count, and are summed."""
    answer = Readout().read(
        [
            ("Yes", math.log(0.2)),
            (" yes", math.log(0.1)),
            ("\u0120YES", math.log(0.05)),
            ("\u2581Yes", math.log(0.05)),
            ("No", math.log(0.1)),
            ("\nno", math.log(0.1)),
            ("maybe", math.log(0.3)),
        ]
    )
    assert answer.status is Status.OK
    assert answer.p_yes == pytest.approx(0.4 / 0.6, rel=1e-14)
    assert answer.mass == pytest.approx(0.6, rel=1e-14)
    assert answer.logp_yes == pytest.approx(math.log(0.4), rel=1e-14)
    assert answer.logp_no == pytest.approx(math.log(0.2), rel=1e-14)


def test_the_same_token_twice_counts_twice() -> None:
    """Two token ids that print alike are two shares of probability."""
    answer = Readout().read([("Yes", math.log(0.3)), ("Yes", math.log(0.3)), ("No", math.log(0.2))])
    assert answer.p_yes == pytest.approx(0.75)


@pytest.mark.parametrize("token", ["yess", "Y", "Not", "None", "yes.", "  yes", "nO", "да"])
def test_similar_words_do_not_count(token: str) -> None:
    """Only the fixed spellings are labels."""
    assert Readout().read([(token, math.log(0.9))]) == Answer(Status.HIDDEN, mass=0.0)


@pytest.mark.parametrize(
    ("logp_yes", "logp_no", "expected"),
    [
        (0.0, -700.0, 1.0),
        (-700.0, 0.0, math.exp(-700.0)),
        (-0.0, -30.0, 1.0 / (1.0 + math.exp(-30.0))),
        (-30.0, -0.0, math.exp(-30.0)),
        (-1.0, -1.0, 0.5),
    ],
)
def test_extreme_log_probabilities_stay_exact(
    logp_yes: float, logp_no: float, expected: float
) -> None:
    """Nothing overflows, a tiny probability keeps its digits, and the logs are kept."""
    answer = Readout().read([("Yes", logp_yes), ("No", logp_no)])
    assert answer.status is Status.OK
    assert answer.p_yes == pytest.approx(expected, rel=1e-12, abs=0)
    assert (answer.logp_yes, answer.logp_no) == (logp_yes, logp_no)


@pytest.mark.parametrize("x", [0.0, 1.0, -1.0, 36.0, -36.0, 745.0, -745.0, 1e6, -1e6])
def test_sigmoid_is_symmetric(x: float) -> None:
    """sigmoid(x) + sigmoid(-x) is one for every x."""
    assert sigmoid(x) + sigmoid(-x) == pytest.approx(1.0, abs=1e-15)
    assert 0.0 <= sigmoid(x) <= 1.0


@pytest.mark.parametrize(
    ("pairs", "status"),
    [
        ([], Status.NO_LOGPROBS),
        (listed(maybe=0.9), Status.HIDDEN),
        (listed(Yes=0.05, No=0.04, maybe=0.9), Status.LOW_MASS),
        (listed(Yes=0.6, No=0.3), Status.OK),
        (listed(Yes=0.999, maybe=0.0001), Status.TRUNCATED),
        (listed(No=0.999, maybe=0.0001), Status.TRUNCATED),
        (listed(Yes=0.6, maybe=0.2), Status.UNBOUNDED),
        (listed(No=0.6, maybe=0.2), Status.UNBOUNDED),
    ],
)
def test_status(pairs: Listed, status: Status) -> None:
    """Each defect of a list has its own status; only ok and truncated have a p_yes."""
    answer = Readout().read(pairs)
    assert answer.status is status
    assert (answer.p_yes is not None) == (status in (Status.OK, Status.TRUNCATED))


def test_hidden_label_is_the_middle_of_its_interval() -> None:
    """A label cut off by top-k is bounded by the least listed token."""
    answer = Readout().read(listed(Yes=0.99, maybe=0.0004))
    assert answer.status is Status.TRUNCATED
    most_no = 15 * 0.0004  # all 15 spellings of no, each at most the least listed
    assert answer.p_low == pytest.approx(0.99 / (0.99 + most_no))
    assert answer.p_high == 1.0
    assert answer.p_yes == pytest.approx((0.99 / (0.99 + most_no) + 1.0) / 2)
    assert answer.logp_no is None


def test_unlisted_probability_bounds_hidden_labels() -> None:
    """A hidden label is at most the probability that the list leaves, plus rounding."""
    answer = Readout().read(listed(Yes=0.9, maybe=0.095))
    assert answer.p_low == pytest.approx(0.9 / (0.905 + SLACK))


@pytest.mark.parametrize("placeholder", [-9999.0, -math.inf])
def test_placeholder_is_not_a_probability(placeholder: float) -> None:
    """A placeholder is not a tiny probability: its label keeps an interval."""
    sure = Readout().read([("Yes", math.log(0.9995)), ("No", placeholder)])
    assert sure.status is Status.TRUNCATED
    assert sure.logp_no is None
    assert sure.p_low is not None
    assert sure.p_low < 0.9995
    unsure = Readout().read([("Yes", math.log(0.6)), ("No", placeholder), ("I", placeholder)])
    assert unsure.status is Status.UNBOUNDED


@pytest.mark.parametrize("token", ["<think>", "<|channel|>", "[THINK]", "<think>\n"])
def test_thinking_judge_has_a_status(token: str) -> None:
    """A judge that starts to think gave no answer, even if yes and no are listed."""
    pairs = listed(**{token: 0.6, "Yes": 0.3, "No": 0.1})
    assert Readout().read(pairs) == Answer(Status.THINKING)
    exact_values = ([math.log(0.3)], [math.log(0.1)])
    assert Readout().read_exact(*exact_values, wrote=token) == Answer(Status.THINKING)
    assert Readout().read_exact(*exact_values, wrote="Yes").status is Status.OK


def test_logits_are_unsound() -> None:
    """Values that cannot be log-probabilities get the status unsound."""
    assert Readout().read([("Yes", 21.5), ("No", 19.0)]) == Answer(Status.UNSOUND)
    assert Readout().read([("Yes", -0.1), ("No", -0.2)]) == Answer(Status.UNSOUND)
    assert Readout().read_exact([21.5], [-3.0]) == Answer(Status.UNSOUND)


def test_exact_reading_has_a_point_interval() -> None:
    """If every variant is known, the bounds equal p_yes; mass is kept."""
    answer = Readout().read_exact([math.log(0.2), math.log(0.1)], [math.log(0.1), -40.0])
    assert answer.status is Status.OK
    assert answer.p_yes == answer.p_low == answer.p_high == pytest.approx(0.75)
    assert answer.mass == pytest.approx(0.4)


@pytest.mark.parametrize(
    ("yes", "no", "status", "p_yes"),
    [
        ([-0.001], [-math.inf], Status.OK, 1.0),
        ([-math.inf], [-0.001], Status.OK, 0.0),
        ([-math.inf], [-math.inf], Status.LOW_MASS, None),
        ([-9.0], [-9.0], Status.LOW_MASS, None),
        ([], [-0.1], Status.NO_LOGPROBS, None),
        ([math.nan], [-0.1], Status.NO_LOGPROBS, None),
    ],
)
def test_exact_reading_edge_cases(
    yes: list[float], no: list[float], status: Status, p_yes: float | None
) -> None:
    """Exact zeros stay zero; missing labels and low mass have a status."""
    answer = Readout().read_exact(yes, no)
    assert (answer.status, answer.p_yes) == (status, p_yes)


def test_exact_reading_and_other_labels_refuse_the_same() -> None:
    """Yes and no are read by separate, faster code; it gives the same reasons for no answer."""
    rng = random.Random(7)
    values = (-30.0, -2.0, -0.7, -0.001, 0.0, 0.5, 20.0, -math.inf, -9999.0)
    reasons = Counter[Status | None]()
    for _ in range(5_000):
        yes, no = ([rng.choice(values) for _ in range(rng.randrange(4))] for _ in range(2))
        wrote = rng.choice((None, "Yes", "<think>", " <think>"))
        expected = weigh_labels((yes, no), wrote)[1]
        found = Readout().read_exact(yes, no, wrote=wrote).status
        reasons[expected] += 1
        if expected is None:
            assert found in (Status.OK, Status.LOW_MASS)
        else:
            assert found is expected, (yes, no, wrote)
    assert len(reasons) == 4
    assert min(reasons.values()) > 100
    assert Readout().read_exact([math.nan], [-0.7]).status is Status.NO_LOGPROBS


def test_limits_are_settings() -> None:
    """min_mass and max_width decide at their exact value."""
    pairs = listed(Yes=0.06, No=0.04)
    assert Readout(min_mass=0.099).read(pairs).status is Status.OK
    assert Readout(min_mass=0.101).read(pairs).status is Status.LOW_MASS
    cut = listed(Yes=0.6, maybe=0.3)
    assert Readout(max_width=0.2).read(cut).status is Status.TRUNCATED
    assert Readout(max_width=0.1).read(cut).status is Status.UNBOUNDED


@pytest.mark.parametrize("min_mass", [0.0, 0.1])
def test_labels_without_probability_are_no_answer(min_mass: float) -> None:
    """Two labels at minus infinity give no answer, whatever the limit."""
    answer = Readout(min_mass=min_mass).read([("Yes", -math.inf), ("No", -math.inf)])
    assert answer == Answer(Status.NO_LOGPROBS)


def test_hash_depends_on_every_setting() -> None:
    """Readouts that can differ in an answer have different hashes."""
    made = [
        Readout(),
        Readout(min_mass=0.2),
        Readout(max_width=0.2),
        Readout(yes=spellings("ja")),
        Readout(no=spellings("nein")),
    ]
    assert len({readout.hash for readout in made}) == len(made)
    assert Readout().hash == Readout().hash


def test_hash_of_yes_no_readout_is_unchanged() -> None:
    """Judgments are stored under this hash: a new one would judge everything again."""
    assert Readout().hash == "78ad14539e070874aedc445e3b520303"
    assert Readout(min_mass=0.2).hash == "8231e1ea7a9e94c5a16a9f05b3ad8170"


def full_distribution(chance: random.Random) -> Listed:
    """Return a random sorted distribution over 200 tokens with spellings of yes and no."""
    labels = chance.sample(YES, chance.randint(1, 5)) + chance.sample(NO, chance.randint(1, 5))
    tokens = labels + [f"w{number}" for number in range(200 - len(labels))]
    sharpness = chance.choice([0.5, 2.0, 6.0])
    logits = [chance.gauss(0, sharpness) + 4 * (token in labels) for token in tokens]
    total = math.log(math.fsum(map(math.exp, logits)))
    pairs = [(token, logit - total) for token, logit in zip(tokens, logits, strict=True)]
    return sorted(pairs, key=lambda pair: -pair[1])


def exact(full: Listed) -> float:
    """Return p_yes with nothing hidden."""
    yes = math.fsum(math.exp(logp) for token, logp in full if token in YES)
    no = math.fsum(math.exp(logp) for token, logp in full if token in NO)
    return yes / (yes + no)


def assert_holds(answer: Answer, truth: float) -> None:
    """Check that the proven bounds contain the truth and the answer."""
    assert answer.p_low is not None
    assert answer.p_high is not None
    assert 0.0 <= answer.p_low <= answer.p_high <= 1.0
    assert answer.p_low - ROUNDING <= truth <= answer.p_high + ROUNDING
    if answer.p_yes is not None:
        assert answer.p_low <= answer.p_yes <= answer.p_high
        assert 0.0 < answer.p_yes < 1.0


def test_interval_always_contains_the_exact_value() -> None:
    """True for thousands of random distributions cut at every k."""
    chance = random.Random(7)
    readout = Readout(min_mass=0.0, max_width=0.1)
    seen: Counter[Status] = Counter()
    for _ in range(250):
        full = full_distribution(chance)
        truth = exact(full)
        for k in range(1, 21):
            answer = readout.read(full[:k])
            seen[answer.status] += 1
            if answer.status is Status.HIDDEN:
                continue
            assert_holds(answer, truth)
            if answer.status is Status.TRUNCATED:
                assert answer.p_high - answer.p_low <= readout.max_width  # type: ignore[operator]
    assert min(seen[status] for status in CUT) > 50


def test_interval_holds_if_the_list_sums_to_more_than_one() -> None:
    """A low-precision list above one is bounded by its least listed token."""
    chance = random.Random(8)
    readout = Readout(min_mass=0.0)
    checked = 0
    for _ in range(400):
        full = full_distribution(chance)
        shifted = [(token, logp + 0.01) for token, logp in full]
        for k in (2, 5, 10, 20):
            claimed = math.fsum(math.exp(logp) for _, logp in shifted[:k])
            answer = readout.read(shifted[:k])
            if claimed >= 1.0 and answer.status is not Status.HIDDEN:
                assert_holds(answer, exact(full))
                checked += 1
    assert checked > 100


def test_complete_list_has_a_point_interval() -> None:
    """With every token listed the answer is exact, up to rounding."""
    chance = random.Random(11)
    for _ in range(50):
        full = full_distribution(chance)
        answer = Readout(min_mass=0.0).read(full)
        assert answer.p_yes == pytest.approx(exact(full), rel=1e-12)
        assert answer.p_low is not None
        assert answer.p_high is not None
        least = math.exp(full[-1][1])
        assert answer.p_high - answer.p_low <= 30 * least / (answer.mass or 1) + ROUNDING


def test_list_above_one_keeps_valid_bounds() -> None:
    """Low-precision noise never makes the unlisted probability negative."""
    answer = Readout().read(listed(Yes=0.7, No=0.31, maybe=0.001))
    assert answer.status is Status.OK
    assert answer.p_low is not None
    assert answer.p_high is not None
    assert answer.p_yes is not None
    assert 0.0 < answer.p_low < answer.p_yes < answer.p_high < 1.0


def test_duplicates_do_not_hide_other_spellings() -> None:
    """Tokens that print alike are one spelling: other spellings may still be hidden."""
    pairs = [("Yes", math.log(0.04))] * 18 + [("No", math.log(0.03))]
    answer = Readout().read(pairs)
    assert answer.p_yes == pytest.approx(0.72 / 0.75)
    rest = 0.25 + SLACK
    assert answer.p_high == pytest.approx((0.72 + rest) / (0.75 + rest))
    assert answer.p_low == pytest.approx(0.72 / (0.75 + rest))
