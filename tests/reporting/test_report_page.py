"""The report as files, and as a reader's browser shows it."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from matplotlib.image import imread

from perdure.errors import InputError
from perdure.reporting import RunResult, write_report
from perdure.reporting.page import inlined
from perdure.reporting.plots import age_axes, even_ticks, inert
from perdure.reporting.report import find_warnings, headline
from perdure.reporting.results import by_method
from perdure.reporting.wording import count, listing, seconds, short, size

HOSTILE = "<script>alert(1)</script>"
NAMES = [
    HOSTILE,
    "</script><img src=x onerror=alert(2)>",
    "$\\frac{1}$",
    "<b>bold</b> &amp; {{ 7 * 7 }}",
    "two\nlines\x00",
    "東京",
]
METHODS = ("naive", "replay+merge")


@pytest.fixture(scope="module")
def hostile(write_learner: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a learner whose names and texts are attacks."""
    directory = tmp_path_factory.mktemp("hostile") / "learner"
    write_learner(directory, names=NAMES, examples=(f"Question: {HOSTILE}", "</script><script>alert(3)</script>"))
    page = directory / "report.html"
    write_report([RunResult.load(directory)], page, f"{HOSTILE} kept", stream=HOSTILE, command=f"perdure report '{HOSTILE}'")
    return page


@pytest.fixture(scope="module")
def experiment(write_learner: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of two methods with three seeds."""
    where = tmp_path_factory.mktemp("experiment")
    folders = [
        write_learner(where / "runs" / method / f"seed-{seed}", method=method, seed=seed, tasks=14)
        for method in METHODS
        for seed in (41, 42, 43)
    ]
    page = where / "report.html"
    write_report([RunResult.load(folder) for folder in folders], page, "Two methods", stream="Symbol-QA")
    return page


def opened(chromium: Any, page: Path, **options: Any) -> tuple[Any, list[str], list[str]]:
    """The page in a browser, its console messages and errors, and every request but that for the page itself."""
    tab = chromium.new_context(**options).new_page()
    said: list[str] = []
    requests: list[str] = []
    tab.on("console", lambda message: said.append(message.text))
    tab.on("pageerror", lambda error: said.append(str(error)))
    tab.on("dialog", lambda dialog: (said.append(dialog.message), dialog.dismiss()))
    tab.on("request", lambda request: requests.append(request.url) if request.url != page.as_uri() else None)
    tab.goto(page.as_uri())
    tab.wait_for_selector(".plot .main-svg")
    return tab, said, requests


def open_all(tab: Any) -> None:
    """Unfold everything, so that every figure is drawn."""
    tab.evaluate("document.querySelectorAll('details').forEach((fold) => { fold.open = true; })")
    until(tab, "[...document.querySelectorAll('.plot')].every((plot) => plot.querySelector('.main-svg'))")


def until(tab: Any, condition: str) -> None:
    """Wait for a JavaScript condition. Playwright's own way evaluates text inside the page, which the page's policy forbids."""
    for _ in range(100):
        if tab.evaluate(condition):
            return
        tab.wait_for_timeout(50)
    pytest.fail(f"never came true: {condition}")


def test_a_hostile_name_is_shown_and_does_nothing(chromium: Any, hostile: Path) -> None:
    tab, said, requests = opened(chromium, hostile)
    open_all(tab)
    assert (said, requests) == ([], [])
    assert tab.title() == f"{HOSTILE} kept"
    assert tab.inner_text("h1") == f"{HOSTILE} kept"
    assert HOSTILE in tab.inner_text("figure table >> nth=1")
    assert tab.locator("img").count() == 0
    assert "{{ 7 * 7 }}" in tab.inner_text("main")
    tab.hover(".plot >> nth=1", position={"x": 70, "y": 50})  # the first task's cell
    tab.wait_for_selector(".hovertext")
    assert HOSTILE in tab.text_content(".hovertext")
    assert said == []
    tab.context.close()


def test_an_injected_script_would_be_stopped(chromium: Any, hostile: Path, tmp_path: Path) -> None:
    """The second line of defence: the page's policy lets only its own two scripts run, and nothing be fetched."""
    text = hostile.read_text(encoding="utf-8")
    injected = tmp_path / "injected.html"
    attack = "<script>document.title = 'owned'</script><img src='http://127.0.0.1/x'></main>"
    injected.write_text(text.replace("</main>", attack), encoding="utf-8")
    tab, said, _ = opened(chromium, injected)
    assert tab.title() != "owned"
    assert len(said) == 2 and all("Content Security Policy" in message for message in said)
    assert tab.evaluate("document.querySelector('img').naturalWidth") == 0
    tab.context.close()


def test_an_experiment_shows_every_figure_and_switches_scale(chromium: Any, experiment: Path) -> None:
    tab, said, requests = opened(chromium, experiment)
    open_all(tab)
    assert (said, requests) == ([], [])
    assert tab.locator(".heatmaplayer .hm").count() == len(METHODS)
    assert tab.locator(".plot").count() == 1 + 2 * len(METHODS)
    assert tab.locator(".plot[aria-label]").count() == tab.locator(".plot").count() == tab.locator("figure table").count()
    legend = tab.locator(".plot >> nth=0").locator(".legendtext").all_text_contents()
    assert [re.sub(r" \(half-life .*\)", "", name) for name in legend] == ["replay+merge", "naive"]
    assert "min–max band" in tab.inner_text("figcaption >> nth=0")
    assert "whose Final is the median of 3" in tab.inner_text(".grid figcaption >> nth=0")
    scale = "document.querySelector('.plot').layout.xaxis.type"
    assert tab.evaluate(scale) == "log"
    tab.click("text=linear age")
    assert tab.evaluate(scale) == "linear"
    assert tab.get_attribute("text=linear age", "aria-pressed") == "true"
    assert "0" in tab.locator(".plot >> nth=0").locator(".xtick").all_text_contents()
    tab.context.close()


@pytest.mark.parametrize("which", ["hostile", "experiment"])
def test_a_phone_scrolls_tables_and_never_the_page(chromium: Any, which: str, request: pytest.FixtureRequest) -> None:
    options = {"viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True}
    tab, said, _ = opened(chromium, request.getfixturevalue(which), **options)
    open_all(tab)
    assert tab.evaluate("[document.documentElement.scrollWidth, document.body.scrollWidth]") == [390, 390]
    assert tab.evaluate("Math.max(...[...document.querySelectorAll('.plot')].map((plot) => plot.scrollWidth))") <= 390
    assert said == []
    tab.context.close()


def test_dark_and_light_follow_the_reader(chromium: Any, hostile: Path) -> None:
    tab, said, _ = opened(chromium, hostile, color_scheme="light")
    ink = "getComputedStyle(document.querySelector('.plot .xtick text')).fill"
    paper = "getComputedStyle(document.body).backgroundColor"
    light = tab.evaluate(f"[{ink}, {paper}]")
    tab.emulate_media(color_scheme="dark")
    until(tab, f"{ink} !== '{light[0]}'")
    dark = tab.evaluate(f"[{ink}, {paper}]")
    assert dark[1] != light[1] and said == []
    tab.context.close()


def test_files_beside_the_page(experiment: Path) -> None:
    """Every link of the page leads to a file, and every figure is there as PNG and SVG."""
    text = experiment.read_text(encoding="utf-8")
    links = set(re.findall(r'href="([^"#]+\.(?:csv|json|png|svg))"', text))
    assert all((experiment.parent / link).stat().st_size > 100 for link in links)
    assert {"matrix.csv", "matrix.json", "results.csv", "results.json", "figures/decay.png", "figures/decay.svg"} <= links
    figures = sorted(path.name for path in (experiment.parent / "figures").iterdir())
    assert len(figures) == 2 * (1 + 2 * len(METHODS)) and {f"figures/{name}" for name in figures} <= links
    pixels = imread(experiment.parent / "figures/decay.png")
    assert pixels.shape[0] > 400 and pixels.std() > 0.01
    assert "<svg" in (experiment.parent / "figures/decay.svg").read_text()[:1000]
    assert text.count("plotly.js v") == 1
    assert not list(experiment.parent.glob(".*partial"))


def test_the_page_says_what_was_found(experiment: Path) -> None:
    text = experiment.read_text(encoding="utf-8")
    for part in ("± ", "sample standard deviation", "old question, wrong answer", "peak memory", "replay.sampling_temperature"):
        assert part in text
    assert "After 14 tasks replay+merge still answers" in text


def test_a_single_seed_shows_no_spread(hostile: Path) -> None:
    body = hostile.read_text(encoding="utf-8").split("<body>")[1].split("plotly.js v")[0]
    assert "±" not in body and "one seed" in body and "min–max" not in body


def test_an_unasked_learner_still_gets_its_page(make_run: Callable[..., Path]) -> None:
    directory = make_run("unasked", tasks=3, skipped=(1, 2, 3))
    written = write_report([RunResult.load(directory)], directory / "report.html", "Nothing asked")
    assert written[0] == directory / "report.html" and all(path.is_file() for path in written)
    text = written[0].read_text(encoding="utf-8")
    assert "not known yet" in text and "it was never asked everything" in text


def test_warnings_name_what_spoils_a_comparison(make_run: Callable[..., Path]) -> None:
    short_run = RunResult.load(make_run("runs/merge/seed-1", method="merge", seed=1, tasks=2))
    long_run = RunResult.load(make_run("runs/replay/seed-1", method="replay", seed=1, tasks=4, skipped=(4,)))
    found = " ".join(find_warnings(by_method([short_run, long_run])))
    assert "different numbers of tasks" in found
    assert "not every question was asked after task 4 (it was last asked everything after task 3)" in found
    assert "a single seed" in found
    assert find_warnings(by_method([short_run])) == []


def test_headline_of_one_learner(make_run: Callable[..., Path]) -> None:
    run = RunResult.load(make_run("one", tasks=1))
    share = f"{100 * run.measures.final:.1f}\u00a0%"
    expected = (
        f"After 1 task this learner still answers {share} of all it was taught; right after learning each task it was {share}."
    )
    assert headline(by_method([run])) == expected


def test_a_folder_that_cannot_be_written(tmp_path: Path, make_run: Callable[..., Path]) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="can't be written"):
        write_report([RunResult.load(make_run("one"))], tmp_path / "file" / "report.html", "x")


def test_texts_are_made_harmless() -> None:
    assert "<" not in inlined({"a": "</script><!--"}) and inlined({"a": "\u2028"}).isascii()
    assert inert("<a href='javascript:x'>&") == "&lt;a href='javascript:x'&gt;&amp;"
    assert short("a\n b\x00c \ud800") == "a b c"
    assert short("x" * 30, 10) == "x" * 9 + "…"


def test_numbers_as_people_read_them() -> None:
    assert [seconds(s) for s in (0.04, 12.3, 150, 9000)] == ["0.0 s", "12 s", "2.5 min", "2.5 h"]
    assert [size(b) for b in (12, 1500, 2.5e9, 3e12)] == ["12 B", "1.5 kB", "2.5 GB", "3.0 TB"]
    assert count(1234567) == "1\u202f234\u202f567"
    assert [listing(names) for names in (["a"], ["a", "b"], ["a", "b", "c"])] == ["a", "a and b", "a, b and c"]


def test_ticks() -> None:
    assert even_ticks(3) == [1, 2, 3]
    assert even_ticks(20) == [1, 5, 10, 15, 20]
    assert even_ticks(100) == [1, *range(10, 101, 10)]
    assert age_axes(100)["log"]["ticktext"] == ["0", "1", "2", "5", "10", "20", "50"]
    assert age_axes(100)["log"]["tickvals"][0] == 1  # age 0 stands at 1, where a logarithm is 0
    assert age_axes(4)["linear"]["ticktext"] == ["0", "1", "2", "3"]
    assert age_axes(1)["linear"]["ticktext"] == ["0"]


def test_terms_of_very_different_strength_are_pointed_out(make_run: Callable[..., Path]) -> None:
    folder = make_run("unequal", method="replay+merge")
    assert find_warnings(by_method([RunResult.load(folder)])) == []
    for log in (folder / "logs").iterdir():
        lines = [json.loads(line) for line in log.read_text().splitlines()]
        for line in lines:
            line["gradient_norm"]["orthogonality"] = 1000 * line["gradient_norm"]["sft"]
        log.write_text("".join(json.dumps(line) + "\n" for line in lines))
    (warning,) = find_warnings(by_method([RunResult.load(folder)]))
    assert "orthogonality term is" in warning
    assert "replay term" in warning
