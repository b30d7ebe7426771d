"""All grading methods by name, their options, and their effect on a run's config."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any

from pydantic import Field

from rocketeval.checklists.checklist_file import WrittenItem
from rocketeval.checklists.rubric import RubricOptions
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
    response_likelihood,
    sequentially,
    writes_answers,
    writes_score,
)
from rocketeval.prompts.read_grades import ANSWER_RULES, SCORE_RULES
from rocketeval.prompts.render import GradingPrompt, Prompt, Template
from rocketeval.prompts.rubric import RubricPrompt
from rocketeval.prompts.variants import (
    BarePrompt,
    ForcedPrompt,
    ListedPrompt,
    MarkedPrompt,
    TranscriptPrompt,
)
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


class FixedMethodOptions(RubricOptions):
    """Options of the method fixed."""

    items: Annotated[tuple[WrittenItem, ...], Field(min_length=1)] = FIXED
    """The items asked about every response: texts or objects."""


class WritingOptions(Section):
    """Options of methods in which the judge writes text."""

    max_tokens: Annotated[int, Field(ge=1)] = 400
    """Maximum tokens the judge writes per response."""


class CriterionOptions(Section):
    """Options of methods that grade one criterion."""

    criterion: str | CriterionConfig
    """Name of a known criterion (`rocketeval audit --criteria` lists them), or your own."""


Items = Callable[[Any], Sequence[str | dict[str, Any]]]
Build = Callable[[RunConfig, Any], Method]


@dataclass(frozen=True)
class MethodKind:
    """A grading method as the config names it."""

    summary: str
    """One line for users on what the method does."""
    build: Build
    options: type[Section] = NoOptions
    labels: tuple[str, ...] = YES_NO
    """Labels the judge answers with, best first."""
    grades: bool = False
    """Whether its answers are on a scale although it uses no labels: a written score, or the
    likelihood of a response."""
    items: Items | None = None
    """The questions asked about every response; None if the author writes checklists."""
    reference: bool = False
    """Whether the prompt shows the query's reference response."""
    template: str | None = "grade"
    """The packaged template that a user's template replaces; None if there is no template."""

    @property
    def yes_no(self) -> bool:
        """Whether an answer of 0.5 separates no from yes."""
        return self.labels == YES_NO and not self.grades

    def method(self, config: RunConfig) -> Method:
        """Return the method for `config`."""
        return self.build(config, self.read_options(config))

    def read_options(self, config: RunConfig) -> Section:
        """Return the method's own options."""
        return self.parse(config.method)

    def parse(self, method: MethodConfig) -> Section:
        """Return a method's own options, normalized so that equal options compare equal."""
        where = f"method.options of {method.kind!r}"
        return parse_options(method.options, self.options, where)


OVERALL = "How good is the response as a whole?"


def create_method(config: RunConfig) -> Method:
    """Return the grading method that `config` names."""
    method = kind_of(config.method.kind).method(config)
    if not config.judge.datamarking:
        return method
    prompt = method.prompt
    if not isinstance(prompt, GradingPrompt) or type(prompt) not in (GradingPrompt, RubricPrompt):
        raise ConfigError(
            f"judge.datamarking: the method {config.method.kind!r} cannot mark responses.",
            hint="Remove it, or use the method checklist.",
        )
    return replace(method, prompt=MarkedPrompt(prompt.template))


def kind_of(name: str) -> MethodKind:
    """Return the method called `name`; ConfigError suggests the nearest existing name."""
    try:
        return KINDS[name]
    except KeyError:
        raise ConfigError(
            f"There is no grading method {name!r}.", hint=nearest(name, list(KINDS))
        ) from None


def with_method(config: RunConfig) -> RunConfig:
    """Return the config with the labels and items that its method determines."""
    kind = kind_of(config.method.kind)
    if config.judge.labels not in (YES_NO, kind.labels):
        raise ConfigError(
            f"judge.labels: the method {config.method.kind!r} uses the labels "
            f"{', '.join(kind.labels)}.",
            hint="Remove judge.labels: the method sets them.",
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
    """Return a method that asks each item independently, with the method's template."""
    return Method(config.method.kind, prompt(_template(config)))


def _sequential(config: RunConfig, options: NoOptions) -> Method:
    return Method("sequential", TranscriptPrompt(_template(config)), sequentially, alone=True)


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
            "judge.template: the method 'perplexity' asks nothing, so it has no template.",
            hint="Remove judge.template.",
        )
    return Method("perplexity", BarePrompt(), response_likelihood)


def _always(*items: str) -> Items:
    return lambda options: items


def _fixed_items(options: FixedMethodOptions) -> Sequence[str | dict[str, Any]]:
    return options.items


def _criterion_name(options: CriterionOptions) -> Sequence[str]:
    return (criterion_from(options.criterion).title,)


def _criterion_rubric(options: CriterionOptions) -> Sequence[str]:
    return (criterion_from(options.criterion).rubric,)


_independent = partial(_prompted, GradingPrompt)
_each_in_its_way = partial(_prompted, RubricPrompt)

KINDS: Mapping[str, MethodKind] = {
    "checklist": MethodKind(
        "each item of the author's checklist, asked independently",
        _each_in_its_way,
        RubricOptions,
    ),
    "fixed": MethodKind(
        "six general questions, the same for every query",
        _each_in_its_way,
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
        _independent,
        labels=DIGITS,
        items=_always(OVERALL),
        template="direct",
    ),
    "reference": MethodKind(
        "the same digit, with the query's reference response to compare with",
        _independent,
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
        "a grade from 1 to 5 for general quality",
        _independent,
        labels=LIKERT,
        items=_always("Quality"),
        template="likert",
    ),
    "criterion": MethodKind(
        "a grade from 1 to 5 for one criterion, given its name",
        _independent,
        CriterionOptions,
        labels=LIKERT,
        items=_criterion_name,
        template="likert",
    ),
    "rubric": MethodKind(
        "a grade from 1 to 5 for one criterion, with the meaning of each grade",
        _independent,
        CriterionOptions,
        labels=LIKERT,
        items=_criterion_rubric,
        template="likert",
    ),
    "perplexity": MethodKind(
        "no question: how likely the judge finds the response",
        _perplexity,
        grades=True,
        items=_always("How likely is the response?"),
        template=None,
    ),
}
"""By the name in `method.kind`."""
