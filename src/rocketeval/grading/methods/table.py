"""Every grading method by its name, and what it changes in a run's config."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from rocketeval.config import AuthorConfig, NoOptions, RunConfig, Section
from rocketeval.criteria import criterion_from
from rocketeval.errors import ConfigError
from rocketeval.grading.methods.analyses import AnalysisOptions, analysis_prompt
from rocketeval.grading.methods.base import Method
from rocketeval.grading.methods.kinds import (
    DIGITS,
    LIKERT,
    YES_NO,
    CriterionOptions,
    FixedOptions,
    Items,
    Kind,
    WritingOptions,
)
from rocketeval.grading.methods.sequential import one_after_the_other
from rocketeval.grading.methods.written import how_likely, writes_answers, writes_score
from rocketeval.prompts.read_grades import ANSWER_RULES, SCORE_RULES
from rocketeval.prompts.render import GradingPrompt, Prompt, Template
from rocketeval.prompts.variants import BarePrompt, ForcedPrompt, ListedPrompt, TranscriptPrompt
from rocketeval.registry import nearest

OVERALL = "How good is the response as a whole?"


def create_method(config: RunConfig) -> Method:
    """Return the grading method that `config` names."""
    return kind_of(config.method.kind).method(config)


def kind_of(name: str) -> Kind:
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


def _fixed_items(options: FixedOptions) -> Sequence[str]:
    return options.items


def _criterion_name(options: CriterionOptions) -> Sequence[str]:
    return (criterion_from(options.criterion).title,)


def _criterion_rubric(options: CriterionOptions) -> Sequence[str]:
    return (criterion_from(options.criterion).rubric,)


_alone = partial(_prompted, GradingPrompt)

KINDS: Mapping[str, Kind] = {
    "checklist": Kind("each item of the author's checklist, asked alone", _alone),
    "fixed": Kind(
        "six general questions, the same for every query",
        _alone,
        FixedOptions,
        items=_fixed_items,
    ),
    "sequential": Kind("the checklist in order, the judge seeing its earlier answers", _sequential),
    "all_yes": Kind("each item after the earlier ones, all answered Yes", partial(_forced, "Yes")),
    "all_no": Kind("each item after the earlier ones, all answered No", partial(_forced, "No")),
    "direct": Kind(
        "one digit from 0 to 9, averaged over its probabilities",
        _alone,
        labels=DIGITS,
        items=_always(OVERALL),
        template="direct",
    ),
    "reference": Kind(
        "the same digit, with the query's reference response to compare with",
        _alone,
        labels=DIGITS,
        items=_always(OVERALL),
        reference=True,
        template="direct",
    ),
    "cot": Kind(
        "a written analysis, then a score from 1 to 10",
        _cot,
        WritingOptions,
        grades=True,
        items=_always(OVERALL),
        template="cot",
    ),
    "analysis": Kind(
        "the digit, after the analysis that another judge's cot run wrote",
        _analysis,
        AnalysisOptions,
        labels=DIGITS,
        items=_always(OVERALL),
        template="analysis",
    ),
    "multi_item": Kind(
        "the whole checklist in one prompt, the answers written out",
        _multi_item,
        WritingOptions,
        template="multi_item",
    ),
    "generic": Kind(
        "a grade from 1 to 5 for the quality in general",
        _alone,
        labels=LIKERT,
        items=_always("Quality"),
        template="likert",
    ),
    "criterion": Kind(
        "a grade from 1 to 5 for one criterion, by its name alone",
        _alone,
        CriterionOptions,
        labels=LIKERT,
        items=_criterion_name,
        template="likert",
    ),
    "rubric": Kind(
        "a grade from 1 to 5 for one criterion, with what each grade means",
        _alone,
        CriterionOptions,
        labels=LIKERT,
        items=_criterion_rubric,
        template="likert",
    ),
    "perplexity": Kind(
        "no question at all: how likely the judge finds the response",
        _perplexity,
        grades=True,
        items=_always("How likely is the response?"),
        template=None,
    ),
}
"""By the name that `method.kind` gives."""
