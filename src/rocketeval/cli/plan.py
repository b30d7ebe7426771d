"""What `--dry-run` prints."""

from __future__ import annotations

import click

from rocketeval.config import RunConfig
from rocketeval.pipeline import Run
from rocketeval.stages.plan import Plan, make_plan


def show_plan(config: RunConfig) -> None:
    """Print what a run would do. Nothing is contacted or written."""
    Run(config).check_config()
    plan = make_plan(config)
    click.echo(f"Run        {config.run_path}")
    click.echo(
        f"Benchmark  {plan.queries} queries, {plan.candidates} candidates, "
        f"{plan.responses} responses"
    )
    if plan.checklists_to_write:
        click.echo(f"Author     {plan.checklists_to_write} checklists to write")
    if plan.without_checklist:
        click.echo(f"Missing    {plan.without_checklist} queries have no checklist")
    click.echo(f"Judge      {config.judge.model}: {_judging(plan)}")
    if plan.finished is not None:
        click.echo(f"Finished   {plan.finished} judgments of this run are not paid for again")


def _judging(plan: Plan) -> str:
    if not plan.tasks:
        return f"{plan.responses} judgments, as many items as their checklists will have"
    return (
        f"at most {plan.items} items to answer in {plan.tasks} judgments, about "
        f"{plan.prompt_tokens / 1e6:.2f} million prompt tokens (a quarter of the characters)"
    )
