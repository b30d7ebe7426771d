"""What a grading method is called, asks for and can be set to.

Every grading method by its name, and what it changes in a run's config.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

from pydantic import Field

from rocketeval.config import (
    AuthorConfig,
    MethodConfig,
    NoOptions,
    RunConfig,
    Section,
    parse_options,
)
from rocketeval.criteria import CriterionConfig, criterion_from
from rocketeval.errors import ConfigError
from rocketeval.grading.ask import (
    AnalysisOptions,
    Method,
    analysis_prompt,
    how_likely,
    one_after_the_other,
    writes_answers,
    writes_score,
)
from rocketeval.prompts.read_grades import ANSWER_RULES, SCORE_RULES
from rocketeval.prompts.render import GradingPrompt, Prompt, Template
from rocketeval.prompts.variants import BarePrompt, ForcedPrompt, ListedPrompt, TranscriptPrompt
from rocketeval.registry import nearest

YES_NO = ("Yes", "No")
DIGITS = tuple("9876543210")
LIKERT = tuple("54321")
FIXED = (
    "Is the response helpful to the person who asked?",
    "Does the response stay on what was asked?",
    "Is everything the response states accurate?",
    "Does the response go into the depth that the query calls for?",
    "Does the response show creativity where the query leaves room for it?",
    "Does the response give enough detail?",
)
"""One question for each dimension that MT-Bench names to its judge."""


class FixedMethodOptions(Section):
    """Settings of the method fixed."""

    items: Annotated[tuple[str, ...], Field(min_length=1)] = FIXED
    """The questions asked about every response."""


class WritingOptions(Section):
    """Settings of methods that let the judge write."""

    max_tokens: Annotated[int, Field(ge=1)] = 400
    """Tokens it may write about one response."""


class CriterionOptions(Section):
    """Settings of methods that grade one criterion."""

    criterion: str | CriterionConfig
    """A known criterion's name (`rocketeval audit --criteria` lists them), or one of your own."""


Items = Callable[[Any], Sequence[str]]
Build = Callable[[RunConfig, Any], Method]


@dataclass(frozen=True)
class MethodKind:
    """A method as the config names it."""

    told: str
    """What it does, for people."""
    build: Build
    options: type[Section] = NoOptions
    labels: tuple[str, ...] = YES_NO
    """Words the judge answers with, best first."""
    grades: bool = False
    """Whether its answers are places on a scale though it asks for no label: a written score, or
    how likely a response is."""
    items: Items | None = None
    """What is asked about every response; None when the author's checklists are."""
    reference: bool = False
    """Whether the query's reference response is shown with it."""
    template: str | None = "grade"
    """The packaged template that the user's own takes the place of; None without any."""

    @property
    def yes_no(self) -> bool:
        """Whether half way between the worst and the best answer lies between no and yes."""
        return self.labels == YES_NO and not self.grades

    def method(self, config: RunConfig) -> Method:
        """Return the method, ready to be used."""
        return self.build(config, self.read_options(config))

    def read_options(self, config: RunConfig) -> Section:
        """Return the method's own settings."""
        return self.parse(config.method)

    def parse(self, method: MethodConfig) -> Section:
        """Return a method's own settings; two that mean the same are equal, however written."""
        where = f"method.options of {method.kind!r}"
        return parse_options(method.options, self.options, where)


OVERALL = "How good is the response as a whole?"


def create_method(config: RunConfig) -> Method:
    """Return the grading method that `config` names."""
    return kind_of(config.method.kind).method(config)


def kind_of(name: str) -> MethodKind:
    """Return the method called `name`; ConfigError names the nearest that exists."""
    try:
        return KINDS[name]
    except KeyError:
        raise ConfigError(
            f"There is no grading method {name!r}.", hint=nearest(name, list(KINDS))
        ) from None


def with_method(config: RunConfig) -> RunConfig:
    """Return the config with what its method decides: the judge's labels, and what is asked."""
    kind = kind_of(config.method.kind)
    if config.judge.labels not in (YES_NO, kind.labels):
        raise ConfigError(
            f"judge.labels: the method {config.method.kind!r} lets the judge answer with "
            f"{', '.join(kind.labels)}.",
            hint="Leave judge.labels out: the method sets them.",
        )
    judge = config.judge.model_copy(update={"labels": kind.labels})
    author = config.author
    if kind.items is not None:
        items = list(kind.items(kind.read_options(config)))
        options = {"items": items, "reference": kind.reference}
        author = AuthorConfig(kind="fixed", min_items=1, options=options)
    return config.model_copy(update={"judge": judge, "author": author})


def _template(config: RunConfig) -> Template:
    name = kind_of(config.method.kind).template
    assert name is not None, "a method without a prompt has no template"
    return Template.load(name, config.judge.template)


def _prompted(prompt: Callable[[Template], Prompt], config: RunConfig, options: Section) -> Method:
    """Each item alone, with what the method's template asks about it."""
    return Method(config.method.kind, prompt(_template(config)))


def _sequential(config: RunConfig, options: NoOptions) -> Method:
    return Method(
        "sequential", TranscriptPrompt(_template(config)), one_after_the_other, alone=True
    )


def _forced(word: str, config: RunConfig, options: NoOptions) -> Method:
    return Method(config.method.kind, ForcedPrompt(word, _template(config)))


def _cot(config: RunConfig, options: WritingOptions) -> Method:
    asking = writes_score(options.max_tokens)
    prompt = GradingPrompt(_template(config))
    return Method("cot", prompt, asking, options.max_tokens, SCORE_RULES)


def _multi_item(config: RunConfig, options: WritingOptions) -> Method:
    asking = writes_answers(options.max_tokens)
    prompt = ListedPrompt(_template(config))
    return Method("multi_item", prompt, asking, options.max_tokens, ANSWER_RULES)


def _analysis(config: RunConfig, options: AnalysisOptions) -> Method:
    return Method("analysis", analysis_prompt(_template(config), options))


def _perplexity(config: RunConfig, options: NoOptions) -> Method:
    if config.judge.template is not None:
        raise ConfigError(
            "judge.template: the method 'perplexity' asks nothing, so that no template fits.",
            hint="Leave judge.template out.",
        )
    return Method("perplexity", BarePrompt(), how_likely)


def _always(*items: str) -> Items:
    return lambda options: items


def _fixed_items(options: FixedMethodOptions) -> Sequence[str]:
    return options.items


def _criterion_name(options: CriterionOptions) -> Sequence[str]:
    return (criterion_from(options.criterion).title,)


def _criterion_rubric(options: CriterionOptions) -> Sequence[str]:
    return (criterion_from(options.criterion).rubric,)


_alone = partial(_prompted, GradingPrompt)

KINDS: Mapping[str, MethodKind] = {
    "checklist": MethodKind("each item of the author's checklist, asked alone", _alone),
    "fixed": MethodKind(
        "six general questions, the same for every query",
        _alone,
        FixedMethodOptions,
        items=_fixed_items,
    ),
    "sequential": MethodKind(
        "the checklist in order, the judge seeing its earlier answers", _sequential
    ),
    "all_yes": MethodKind(
        "each item after the earlier ones, all answered Yes", partial(_forced, "Yes")
    ),
    "all_no": MethodKind(
        "each item after the earlier ones, all answered No", partial(_forced, "No")
    ),
    "direct": MethodKind(
        "one digit from 0 to 9, averaged over its probabilities",
        _alone,
        labels=DIGITS,
        items=_always(OVERALL),
        template="direct",
    ),
    "reference": MethodKind(
        "the same digit, with the query's reference response to compare with",
        _alone,
        labels=DIGITS,
        items=_always(OVERALL),
        reference=True,
        template="direct",
    ),
    "cot": MethodKind(
        "a written analysis, then a score from 1 to 10",
        _cot,
        WritingOptions,
        grades=True,
        items=_always(OVERALL),
        template="cot",
    ),
    "analysis": MethodKind(
        "the digit, after the analysis that another judge's cot run wrote",
        _analysis,
        AnalysisOptions,
        labels=DIGITS,
        items=_always(OVERALL),
        template="analysis",
    ),
    "multi_item": MethodKind(
        "the whole checklist in one prompt, the answers written out",
        _multi_item,
        WritingOptions,
        template="multi_item",
    ),
    "generic": MethodKind(
        "a grade from 1 to 5 for the quality in general",
        _alone,
        labels=LIKERT,
        items=_always("Quality"),
        template="likert",
    ),
    "criterion": MethodKind(
        "a grade from 1 to 5 for one criterion, by its name alone",
        _alone,
        CriterionOptions,
        labels=LIKERT,
        items=_criterion_name,
        template="likert",
    ),
    "rubric": MethodKind(
        "a grade from 1 to 5 for one criterion, with what each grade means",
        _alone,
        CriterionOptions,
        labels=LIKERT,
        items=_criterion_rubric,
        template="likert",
    ),
    "perplexity": MethodKind(
        "no question at all: how likely the judge finds the response",
        _perplexity,
        grades=True,
        items=_always("How likely is the response?"),
        template=None,
    ),
}
"""By the name that `method.kind` gives."""
