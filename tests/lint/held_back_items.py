"""Bad items written after the checks, to measure how the checks generalize.

At first 56 of these 65 were flagged (86%). Some checks were extended afterwards (`When did`, more
verbs and adjectives), so the set is no longer unseen.
"""

from __future__ import annotations

BAD: dict[str, tuple[str, ...]] = {
    "not_yes_no": (
        "When did the response say the war ended?",
        "Describe the tone of the answer.",
        "Response is written in complete sentences.",
        "Whose point of view does the story take?",
        "The email should have a subject line?",
        "Is the review positive or negative?",
    ),
    "scale": (
        "How relevant are the examples in the response?",
        "Please grade the answer from 1 to 10.",
        "How many stars does the response deserve?",
        "What score would you give the structure of the essay?",
        "How strongly does the response argue its case?",
    ),
    "double_barrelled": (
        "Does the response greet the customer and explain the return policy?",
        "Is the code readable and efficient?",
        "Does the answer cite a source, and is the source recent?",
        "Is the story original and grammatically correct?",
        "Does the response solve the equation and verify the solution?",
        "Does the poem rhyme and mention the sea?",
    ),
    "reference": (
        "Is the response consistent with the reference response?",
        "Does the summary contain all facts of the reference summary?",
        "Is the answer equivalent to the expected answer?",
        "Does the output match the gold standard?",
        "Does the translation agree with the provided reference?",
    ),
    "other_item": (
        "Does the response also fulfil the previous criterion?",
        "Is the first item of the checklist fulfilled?",
        "Apart from the above, does the response give a second example?",
        "Does the response pass checks 1 and 2?",
        "Given the question above, does the response stay on topic?",
    ),
    "yes_is_worse": (
        "Does the response repeat the same sentence several times?",
        "Is the answer wrong?",
        "Does the text have grammar problems?",
        "Is any of the information in the response fabricated?",
        "Does the response refuse to answer the question?",
        "Does the answer leave the second question unanswered?",
        "Would a reader find the explanation confusing?",
    ),
    "vague": (
        "Is it a high-quality answer?",
        "Is the writing style nice?",
        "Does the response handle the request properly?",
        "Do you think the answer is useful?",
        "Is the response generally of good quality?",
    ),
    "about_query": (
        "Does the question contain enough information?",
        "Is the user a beginner?",
        "Does the instruction mention a word limit?",
        "Has the user specified a language?",
        "Is the task difficult?",
    ),
    "candidate": (
        "Does ChatGPT mention the year?",
        "Is the response of model B shorter?",
        "Does the response beat the baseline answer?",
        "Is this answer clearer than those of other models?",
        "Does Llama-3 follow the format?",
    ),
    "dangling": (
        "Is it polite?",
        "Does this cover all the steps?",
        "Are those in alphabetical order?",
        "Do they come with an example?",
        "Was that written in the past tense?",
    ),
    "residue": (
        "a) Does the response name a date?",
        "Does the response mention <your criterion>?",
        "### Does the response have a title?",
        "[ ] Is the list sorted?",
        "Does the response cover XXX?",
        "Item 4: Is the tone friendly?",
    ),
    "cut_off": (
        "Does the response explain how to",
        "Are the ingredients listed with their",
        "Does the story take place in a town that is far from the",
        "Is the answer given as a number or",
        "Does the response mention:",
    ),
}
