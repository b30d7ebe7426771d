"""Draw the pictures of the concept pages: python docs/pictures.py

Each is an SVG with its own background, so that it reads the same in the light and the dark theme.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path

FOLDER = Path(__file__).parent / "images" / "concepts"
INK, SOFT, LINE, PAPER = "#1d2433", "#5b6577", "#b9c2d0", "#ffffff"
BLUE, GREEN, RED, GRAY = "#dbe7ff", "#d6f0df", "#fbdedb", "#eef1f5"
SIZE = 15
"""Font size of most texts."""


class Picture:
    """An SVG under construction."""

    def __init__(self, name: str, width: int, height: int, title: str) -> None:
        self.name, self.width, self.height, self.title = name, width, height, title
        self.parts: list[str] = []

    def box(self, x: int, y: int, w: int, h: int, text: str, fill: str = GRAY) -> None:
        """Draw a box with lines of text in its center."""
        self.parts.append(
            f'<rect x="{x}" y="{y}" width="{w}" height="{h}" rx="7" fill="{fill}" stroke="{LINE}"/>'
        )
        lines = text.split("\n")
        top = y + h / 2 - (len(lines) - 1) * 10 + 5
        for number, line in enumerate(lines):
            self.text(x + w / 2, top + number * 20, line, anchor="middle", bold=number == 0)

    def text(
        self,
        x: float,
        y: float,
        text: str,
        *,
        anchor: str = "start",
        bold: bool = False,
        color: str = INK,
        size: int = SIZE,
    ) -> None:
        """Draw one line of text."""
        weight = ' font-weight="600"' if bold else ""
        self.parts.append(
            f'<text x="{x:g}" y="{y:g}" font-size="{size}" text-anchor="{anchor}" fill="{color}"'
            f"{weight}>{escape(text)}</text>"
        )

    def arrow(self, x1: float, y1: float, x2: float, y2: float, text: str = "") -> None:
        """Draw an arrow with a text above its middle."""
        self.parts.append(
            f'<line x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}" stroke="{SOFT}" '
            f'stroke-width="1.6" marker-end="url(#head)"/>'
        )
        if text:
            self.text((x1 + x2) / 2, min(y1, y2) - 8, text, anchor="middle", color=SOFT, size=13)

    def bar(self, x: float, y: float, length: float, fill: str, height: int = 18) -> None:
        """Draw a horizontal bar."""
        self.parts.append(
            f'<rect x="{x:g}" y="{y:g}" width="{length:g}" height="{height}" rx="3" fill="{fill}" '
            f'stroke="{LINE}"/>'
        )

    def line(self, points: Sequence[tuple[float, float]], width: float = 2.0) -> None:
        """Draw connected lines."""
        path = " ".join(f"{x:g},{y:g}" for x, y in points)
        self.parts.append(
            f'<polyline points="{path}" fill="none" stroke="{INK}" stroke-width="{width:g}"/>'
        )

    def dot(self, x: float, y: float) -> None:
        """Draw a point."""
        self.parts.append(f'<circle cx="{x:g}" cy="{y:g}" r="5" fill="{INK}"/>')

    def svg(self) -> str:
        """Return the file's content."""
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {self.height}" '
            f'role="img" font-family="system-ui, sans-serif"><title>{escape(self.title)}</title>'
            '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" '
            f'markerHeight="8" orient="auto"><path d="M0,0 L8,4 L0,8 z" fill="{SOFT}"/></marker>'
            f'</defs><rect width="{self.width}" height="{self.height}" rx="10" fill="{PAPER}"/>'
        )
        return head + "\n".join(self.parts) + "</svg>\n"


def overview() -> Picture:
    """Draw the way from queries to a ranking and its audit."""
    p = Picture("overview", 900, 250, "Author, checklist, judge, scores, ranking and audit")
    p.box(20, 40, 130, 60, "Queries", BLUE)
    p.box(230, 40, 150, 60, "Checklists\nonce per query")
    p.box(20, 150, 130, 60, "Responses\nof candidates", BLUE)
    p.box(460, 95, 150, 60, "p(Yes)\nper item", GRAY)
    p.box(700, 40, 180, 60, "Ranking\nwith intervals", GREEN)
    p.box(700, 150, 180, 60, "Audit\nwith votes, labels", GREEN)
    p.arrow(150, 70, 230, 70, "author")
    p.arrow(380, 75, 460, 110)
    p.arrow(150, 180, 460, 140)
    p.text(432, 82, "judge", anchor="middle", color=SOFT, size=13)
    p.arrow(610, 115, 700, 75, "scores")
    p.arrow(610, 140, 700, 175)
    return p


def checklist() -> Picture:
    """Draw a query, its checklist and the answers for two responses."""
    p = Picture("checklist", 900, 250, "A checklist and the answers for two responses")
    p.text(
        20, 34, "Query: A loaf costs 2.50. What is the change from 10 for three loaves?", bold=True
    )
    p.text(20, 72, "Checklist", color=SOFT)
    p.text(560, 72, "“You get 2.50 back.”", anchor="middle", color=SOFT)
    p.text(780, 72, "“About 3, I think.”", anchor="middle", color=SOFT)
    items = (
        ("Does the response give 2.50 as the change?", 0.97, 0.04),
        ("Does the response compute the price, 7.50?", 0.31, 0.06),
        ("Is the response free of guesses?", 0.92, 0.11),
    )
    for row, (item, one, other) in enumerate(items):
        y = 88 + row * 46
        p.parts.append(f'<line x1="20" x2="880" y1="{y}" y2="{y}" stroke="{LINE}"/>')
        p.text(20, y + 29, item)
        for x, value in ((560, one), (780, other)):
            p.box(x - 40, y + 8, 80, 30, f"{value:.2f}", GREEN if value > 0.5 else RED)
    return p


def author_judge() -> Picture:
    """Draw how often author and judge are asked."""
    p = Picture("author_judge", 900, 220, "How often the author and the judge are asked")
    p.box(20, 30, 200, 60, "Author\na strong LLM", BLUE)
    p.box(300, 30, 240, 60, "100 queries\n100 checklists")
    p.box(20, 130, 200, 60, "Judge\na small LLM", GREEN)
    p.box(290, 130, 260, 60, "100 queries \u00d7 10 candidates\n1,000 responses")
    p.box(620, 130, 260, 60, "\u00d7 8 items\n8,000 answers of one word")
    p.arrow(220, 60, 300, 60)
    p.arrow(220, 160, 290, 160)
    p.arrow(550, 160, 620, 160)
    p.text(620, 66, "one more candidate: nothing", color=SOFT)
    return p


def probability() -> Picture:
    """Draw the first token's distribution and p_yes."""
    p = Picture("probability", 900, 230, "From token probabilities to p_yes")
    p.text(20, 34, "First word of the judge", bold=True)
    tokens = (("Yes", 0.62, GREEN), ("yes", 0.10, GREEN), ("No", 0.18, RED), ("The", 0.06, GRAY))
    for row, (token, value, fill) in enumerate(tokens):
        y = 52 + row * 42
        p.text(70, y + 15, token, anchor="end")
        p.bar(85, y, value * 400, fill)
        p.text(95 + value * 400, y + 15, f"{value:.2f}", color=SOFT)
    p.arrow(430, 115, 520, 115)
    p.text(540, 84, "P(Yes) = 0.62 + 0.10 = 0.72")
    p.text(540, 112, "P(No) = 0.18")
    p.text(540, 148, "p_yes = 0.72 / (0.72 + 0.18) = 0.80", bold=True)
    p.text(540, 180, "Other words count for neither.", color=SOFT)
    return p


def score() -> Picture:
    """Draw the mean of answers on the scale."""
    p = Picture("score", 900, 200, "From answers to a score")
    for row, value in enumerate((0.97, 0.31, 0.92, 0.60)):
        y = 26 + row * 40
        p.text(20, y + 15, f"item {row + 1}")
        p.bar(85, y, 250, GRAY)
        p.bar(85, y, value * 250, GREEN)
        p.text(345, y + 15, f"{value:.2f}", color=SOFT)
    p.arrow(400, 95, 480, 95, "mean")
    p.box(490, 70, 90, 50, "0.70", BLUE)
    p.arrow(580, 95, 660, 95, "scale 1-10")
    p.box(670, 70, 210, 50, "1 + 0.70 \u00d7 9 = 7.3", BLUE)
    return p


def ranking() -> Picture:
    """Draw intervals of four candidates and brackets of ties."""
    p = Picture("ranking", 900, 230, "Candidates with intervals; brackets mark ties")
    rows = (("careful", 705, 679, 730), ("solid", 679, 642, 716), ("rambling", 612, 553, 661))
    rows = (*rows, ("broken", 490, 416, 561))
    for row, (name, value, low, high) in enumerate(rows):
        y = 40 + row * 48
        p.text(60, y + 5, name)
        left, middle, right = ((each - 400) * 1.8 + 180 for each in (low, value, high))
        p.line(((left, y), (right, y)))
        p.dot(middle, y)
        p.text(820, y + 5, f"{value / 100:.2f}", color=SOFT)
    p.line(((45, 34), (35, 34), (35, 94), (45, 94)), 1.6)
    p.line(((28, 82), (18, 82), (18, 142), (28, 142)), 1.6)
    p.text(180, 222, "mean score, 95% intervals", color=SOFT, size=13)
    return p


def people() -> Picture:
    """Draw what votes and labels are used for."""
    p = Picture("people", 900, 220, "What votes and labels are used for")
    p.box(20, 40, 190, 50, "Votes: A or B", BLUE)
    p.box(20, 130, 190, 50, "Labels: a score", BLUE)
    p.box(560, 15, 320, 50, "Audit: can the judge be trusted?", GREEN)
    p.box(560, 85, 320, 50, "Scorer: which items matter?", GREEN)
    p.box(560, 155, 320, 50, "Estimate: the mean human label", GREEN)
    p.arrow(210, 58, 560, 38)
    p.arrow(210, 70, 560, 105)
    p.arrow(210, 148, 560, 50)
    p.arrow(210, 155, 560, 115)
    p.arrow(210, 165, 560, 180)
    return p


def cost() -> Picture:
    """Draw the shared prefix of a response's requests."""
    p = Picture("cost", 900, 230, "What is computed for one response with three items")
    p.text(20, 34, "One response, three items", bold=True)
    for row in range(3):
        y = 54 + row * 46
        p.box(
            20, y, 470, 34, "query and response" if row == 0 else "the same: from the prefix cache"
        )
        if row:
            p.parts[-2] = p.parts[-2].replace(GRAY, PAPER)
        p.box(496, y, 150, 34, f"item {row + 1}", BLUE)
        p.box(652, y, 80, 34, "Yes", GREEN)
    p.text(20, 214, "computed once", color=SOFT, size=13)
    p.text(571, 214, "a short question each", anchor="middle", color=SOFT, size=13)
    p.text(692, 214, "one word", anchor="middle", color=SOFT, size=13)
    return p


def identity() -> Picture:
    """Draw what a judgment's key is made of."""
    p = Picture("identity", 900, 220, "What identifies a judgment")
    names = ("judge and its precision", "prompt template", "query and response", "checklist")
    for row, name in enumerate(names):
        p.box(20, 16 + row * 49, 240, 40, name, BLUE)
        p.arrow(260, 36 + row * 49, 380, 100 + row * 6)
    p.box(380, 80, 150, 56, "key", GRAY)
    p.arrow(530, 98, 640, 62, "known")
    p.arrow(530, 118, 640, 158)
    p.text(585, 168, "new", anchor="middle", color=SOFT, size=13)
    p.box(640, 36, 240, 50, "reuse the answers", GREEN)
    p.box(640, 134, 240, 50, "ask the judge", GRAY)
    return p


PICTURES = (overview, checklist, author_judge, probability, score, ranking, people, cost, identity)

if __name__ == "__main__":
    FOLDER.mkdir(parents=True, exist_ok=True)
    for draw in PICTURES:
        picture = draw()
        (FOLDER / f"{picture.name}.svg").write_text(picture.svg(), encoding="utf-8")
