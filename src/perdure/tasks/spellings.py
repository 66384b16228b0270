"""Numbers and dates: the other usual ways to write them, to stand among an item's accepted answers.

The rule. An answer is compared as text (:mod:`perdure.tasks.matching`); no rule computes with it, so ``4,217`` is right where
it is accepted and nowhere else. What this module adds are spellings that say the same beyond doubt:

- a whole number of four digits or more with and without commas between thousands: 4,217 · 4217;
- a number of up to twelve with its English word: 7 · seven;
- a date of day, month name and year in the two English orders and in ISO 8601: 14 March 1823 · March 14, 1823 · 1823-03-14;
- a day and a month name in both orders: 14 March · March 14.

A year, a number with a unit, a decimal and a date in figures (3/4/1823 is March or April) are left as they are.
"""

import re

# fmt: off
MONTHS = ("January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
          "December")
_WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
# fmt: on
_MONTH = "|".join(MONTHS)
_DAY_FIRST = re.compile(rf"(?P<day>\d{{1,2}}) (?P<month>{_MONTH}) (?P<year>\d{{4}})", re.IGNORECASE)
_MONTH_FIRST = re.compile(rf"(?P<month>{_MONTH}) (?P<day>\d{{1,2}}),? (?P<year>\d{{4}})", re.IGNORECASE)
_DAY_AND_MONTH = re.compile(rf"(\d{{1,2}}) ({_MONTH})", re.IGNORECASE)
_MONTH_AND_DAY = re.compile(rf"({_MONTH}) (\d{{1,2}})", re.IGNORECASE)
_ISO = re.compile(r"(?P<year>\d{4})-(?P<month>\d{2})-(?P<day>\d{2})")


def spellings(answer: str) -> tuple[str, ...]:
    """The answer, then its other spellings; the answer alone where it is neither number nor date."""
    text = answer.strip()
    for pattern in (_DAY_FIRST, _MONTH_FIRST, _ISO):
        if found := pattern.fullmatch(text):
            return _with(answer, _date(int(found["day"]), found["month"], int(found["year"])))
    if found := _DAY_AND_MONTH.fullmatch(text) or _MONTH_AND_DAY.fullmatch(text):
        return _with(answer, [f"{found[2]} {found[1]}"])
    if text.lower() in _WORDS:
        return _with(answer, [str(_WORDS.index(text.lower()))])
    if re.fullmatch(r"[1-9]\d{0,2}(,\d{3})+", text):
        return _with(answer, [text.replace(",", "")])
    if re.fullmatch(r"[1-9]\d{4,}", text):  # four digits alone may be a year, which takes no comma
        return _with(answer, [f"{int(text):,}"])
    if text.isascii() and text.isdigit() and str(int(text)) == text and int(text) < len(_WORDS):
        return _with(answer, [_WORDS[int(text)]])
    return (answer,)


def _date(day: int, month: str, year: int) -> list[str]:
    """A date in three spellings; none when there is no such day."""
    number = int(month) if month.isdigit() else [name.lower() for name in MONTHS].index(month.lower()) + 1
    if not (1 <= number <= 12 and 1 <= day <= 31):
        return []
    name = MONTHS[number - 1]
    return [f"{day} {name} {year}", f"{name} {day}, {year}", f"{year:04d}-{number:02d}-{day:02d}"]


def _with(answer: str, others: list[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys([answer, *others]))
