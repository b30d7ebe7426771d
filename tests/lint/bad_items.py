"""Items with one known defect each, by kind; the first kind is the intended one.

An item of `ALONE` is bad by itself; one of `TWINS` is bad because of the item before it.
"""

from __future__ import annotations

ALONE: dict[str, tuple[str, ...]] = {
    "not_yes_no": (
        "What is the main argument of the response?",
        "Which city does the response name as the capital?",
        "Why does the response recommend the second option?",
        "The response mentions the Treaty of Versailles.",
        "Check that the response includes a title.",
        "Ensure the answer is under 100 words.",
        "Who is the narrator of the story?",
        "Is the response formal or informal?",
        "List the errors that the response makes.",
        "In which order does the recipe list its steps?",
    ),
    "scale": (
        "How well does the response explain photosynthesis?",
        "On a scale of 1 to 5, how polite is the response?",
        "To what extent does the response follow the instructions?",
        "Rate the fluency of the response.",
        "How accurate are the dates in the response?",
        "Would you rate the response at least 7 out of 10?",
    ),
    "double_barrelled": (
        "Does the response name three causes and does it explain each of them?",
        "Is the response polite and is it written in French?",
        "Does the response apologize for the delay and offer a refund?",
        "Is the answer accurate and polite?",
        "Does the email state the deadline and also ask for a confirmation?",
        "Does the response describe the plot and recommend a similar book?",
        "Is the summary complete, and does it stay under 50 words?",
        "Does the response define entropy? Is the formula correct?",
    ),
    "reference": (
        "Does the response agree with the reference answer?",
        "Does the answer match the reference?",
        "Is the final number the same as in the reference solution?",
        "Does the response cover every point of the gold answer?",
        "Is the conclusion in line with the ground truth?",
        "Does the response reach the same result as the answer key?",
    ),
    "other_item": (
        "Does the response meet the other criteria as well?",
        "If item 2 is met, does the response also give an example?",
        "Does the response satisfy all points of this checklist?",
        "Is the reason mentioned above explained in the response?",
        "Does the response do the same as above for the second city?",
        "If so, does the response give its source?",
    ),
    "too_long": (
        "Does the response explain, in a way that a reader who has never heard of the subject "
        "would be able to follow from the first sentence to "
        "the last without looking anything up in a "
        "dictionary or an encyclopaedia, that the price of a good rises where demand for it grows "
        "faster than its supply, that this holds only where nothing else changes at the same time, "
        "and that a state which sets a price below that point will see a shortage?",
        "Considering that the user is a beginner who has said that she owns neither a drill nor a "
        "saw nor any other tool that needs electricity, that she lives in a rented flat in which "
        "walls must not be damaged, that her budget is small, and that the shelf has to hold some "
        "forty heavy books as well as two plants and a lamp, does the response propose a shelf "
        "that she can build?",
        "Does the code read the file line by line, strip white space from both ends of each line, "
        "skip lines that are blank or that begin with a hash sign, split the others at the first "
        "equals sign, take what stands before it as the key and what stands behind it as the "
        "value, turn values that look like numbers into numbers, and return all of it as a "
        "dictionary whose keys keep the order in which they stood in the file?",
        "Does the letter begin with the name and address of the sender on the left, followed by "
        "the date on the right, the name and address of the recipient on the left again, a subject "
        "line, a salutation that uses the title and family name of the recipient, three paragraphs "
        "of which the first says why it is written, the second gives the facts and the third says "
        "what is expected by when, and a closing formula?",
        "Is the travel plan made so that no day has more than four hours on the road, each night "
        "is spent in a town with a railway station, museums are visited on days on which they are "
        "open, the two national parks are seen in good weather according to the usual climate of "
        "the month, the total stays below the budget of the user even if prices are a tenth higher "
        "than expected, and the last day is left free?",
    ),
    "yes_is_worse": (
        "Does the response fail to mention the deadline?",
        "Does the response contain factual errors?",
        "Does the summary lack a conclusion?",
        "Is the response misleading?",
        "Are there any spelling mistakes in the text?",
        "Does the response ignore the word limit?",
        "Does the answer hallucinate sources?",
        "Does the response include irrelevant information?",
        "Is the explanation too long?",
        "Does the response omit the second step?",
        "Does the response sound rude?",
    ),
    "vague": (
        "Is the response good?",
        "Is the overall quality of the response high?",
        "Does the response do a good job?",
        "Is the answer helpful and appropriate?",
        "Would the user be satisfied with the response?",
        "Does the response meet expectations?",
    ),
    "about_query": (
        "Is the question clear?",
        "Does the user want a short poem?",
        "Is the prompt about the French Revolution?",
        "Does the query ask for three examples?",
        "Is the user's request reasonable?",
    ),
    "candidate": (
        "Does GPT-4 give the right formula?",
        "Is the response better than the other response?",
        "Does Response A name the capital?",
        "Is Claude polite to the user?",
        "Does the second response contain fewer details?",
        "Is this the best of all responses?",
    ),
    "dangling": (
        "Does it mention the deadline?",
        "Is this explained correctly?",
        "Are they listed in the right order?",
        "Is that supported by a source?",
        "Do these include the year 1969?",
    ),
    "residue": (
        "1. Does the response name the capital?",
        "- Is the tone of the letter formal?",
        "Does the response mention {topic}?",
        "Does the response cover [insert criterion]?",
        "TODO: Does the response give a source?",
        "Does the response name the author? (Yes/No)",
        "**Does the response use bullet points?**",
        "Q3: Does the response use the metric system?",
        "Does the response follow {{instructions}}?",
    ),
    "cut_off": (
        "Does the response include the",
        "Is the response written for readers who...",
        "Does the response name at least three countries and",
        "Does the recipe give the amounts of flour, sugar,",
        "Is the poem written in the style of",
    ),
    "no_question_mark": (
        "Does the response name the inventor of the telephone",
        "Is the letter addressed to the landlord.",
        "Are all five senses described",
        "Does the code close the file after reading",
        "Is the total given in euros!",
    ),
    "too_short": ("Polite?", "Grammar", "Correct answer", "Is short?", "Tone"),
    "empty": ("", "   ", "?", "...", "-"),
}

TWINS: dict[str, tuple[tuple[str, str], ...]] = {
    "duplicate": (
        ("Does the response name Paris?", "Does the response name Paris?"),
        ("Is the tone of the letter formal?", "Is the tone of the letter formal ?"),
        ("Does the code compile?", "does the code compile?"),
        ("Are all steps numbered?", "Are  all steps numbered?"),
        ("Is the total 42 euros?", "Is the total '42 euros'?"),
    ),
    "near_duplicate": (
        ("Does the response mention the capital?", "Does the response state the capital?"),
        ("Is the tone of the letter polite?", "Is the letter's tone courteous?"),
        ("Does the response explain photosynthesis?", "Is photosynthesis explained?"),
        ("Does the answer include three examples?", "Does the answer provide 3 examples?"),
        (
            "Does the story begin with a storm at sea near the coast of Wales?",
            "Does the story clearly begin with a heavy storm at sea near the coast of Wales?",
        ),
        ("Is the colour scheme consistent?", "Is the color scheme consistent?"),
    ),
}
