"""The page, by clicks and keys in a headless Chromium, where one and Playwright are there."""

from __future__ import annotations

import json
import re
import shutil
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import jostle
from jostle.models import load
from tests.packages.server.conftest import FLEET
from tests.packages.server.process_samples import serving

HOSTILE = "<img src=x onerror=alert(1)>"
browser_path = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    api = pytest.importorskip("playwright.sync_api")
    if browser_path is None:
        pytest.skip("no Chromium is installed")
    with api.sync_playwright() as started:
        running = started.chromium.launch(executable_path=browser_path, args=["--no-sandbox"])
        yield running
        running.close()


@pytest.fixture(scope="module")
def address(
    model_folders: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """A service with a fleet, a tenant with markup in its name, and observed runs."""
    folder = tmp_path_factory.mktemp("page")
    (folder / "fleet.csv").write_text(FLEET + f'"{HOSTILE}",p3,2,,,w04\n')
    known = load(model_folders[0]).predictor
    more = ("--fleet", str(folder / "fleet.csv"))
    with serving(model_folders[0], folder / "s.sqlite", *more) as (where, _):
        with jostle.Client(where) as client:
            client.put_placement("job<b>1</b>", "w05@9x", "west")
            runs = jostle.Runs.from_columns(
                workload=[known.workload_names[0]] * 4,
                platform=[known.platform_names[0]] * 4,
                runtime_seconds=[1e-9, 1e-9, 1e-9, 1e9],
            )
            client.add_runs(runs)
        yield where


@pytest.fixture
def page(browser: Any, address: str) -> Iterator[Any]:
    context = browser.new_context(viewport={"width": 1100, "height": 900})
    opened = context.new_page()
    opened.wrong = []
    opened.on("pageerror", lambda error: opened.wrong.append(str(error)))
    opened.on("console", lambda m: opened.wrong.append(m.text) if m.type == "error" else None)
    opened.on("dialog", lambda d: (opened.wrong.append("a dialog opened"), d.dismiss()))
    opened.goto(address + "/")
    opened.wait_for_selector("#fleet li")
    yield opened
    assert not opened.wrong
    context.close()


def test_the_page_answers_by_clicks(page: Any, address: str) -> None:
    page.fill("#workload", "w01")
    page.click("#workload-list [role=option]")
    for name in ("w02", "w05"):
        page.fill("#beside", name)
        page.click("#beside-list [role=option]")
    assert page.locator(".chip").count() == 2
    page.click("#ask")
    page.wait_for_selector("#answer:has-text('w01 beside w02 and w05')")
    assert "with 90% confidence" in page.inner_text("#answer")
    assert page.locator("#ranked tbody tr").count() == 6
    page.click("#ranked tbody tr:first-child button")
    where = page.inner_text("#ranked tbody tr:first-child th")
    page.wait_for_selector("#why:not([hidden])")
    with jostle.Client(address) as client:
        asked = jostle.Colocations.from_columns(
            workload=["w01"], platform=[where], corunners=[["w02", "w05"]]
        )
        told = client.explain(asked).report().tables
    shown = page.inner_text("#why-parts")
    for part in told:
        for cell in [part] if isinstance(part, str) else [c for row in part.rows for c in row]:
            assert cell in shown
    page.click("[aria-label='Remove w02']")
    assert page.locator(".chip").count() == 1


def test_the_page_answers_by_keys_alone(page: Any) -> None:
    page.focus("#workload")
    page.keyboard.type("w03")
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.type("w0")  # which adds nobody yet
    assert page.locator(".chip").count() == 0
    assert page.get_attribute("#beside", "aria-expanded") == "true"
    active = page.get_attribute("#beside", "aria-activedescendant")
    assert page.inner_text(f"#{active}") == "w00"
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.keyboard.type("w04")
    page.keyboard.press("Enter")
    assert page.locator(".chip").all_inner_texts() == ["w01×", "w04×"]
    page.keyboard.press("Backspace")
    page.keyboard.type("no such")
    page.keyboard.press("Enter")
    page.keyboard.press("Escape")
    assert page.locator(".chip").all_inner_texts() == ["w01×"]
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_selector("#answer:has-text('w03 beside w01 on')")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.tagName") == "SUMMARY"
    page.keyboard.press("Tab")
    assert "Why" in page.evaluate("document.activeElement.textContent")
    page.keyboard.press("Enter")
    page.wait_for_selector("#why:not([hidden])")
    assert page.evaluate("document.activeElement.id") == "why"


def test_a_whole_name_that_was_typed_counts_and_no_other(page: Any) -> None:
    page.fill("#workload", "w03")
    page.fill("#beside", "w04")
    page.click("#ask")
    page.wait_for_selector("#answer:has-text('w03 beside w04 on')")
    page.fill("#workload", "w05")
    page.keyboard.press("Enter")
    page.wait_for_selector("#answer:has-text('w05 beside w04 on')")
    page.fill("#beside", "w0x")
    page.focus("#platform")
    assert page.input_value("#beside") == "w0x"
    assert page.get_attribute("#beside", "aria-invalid") == "true"
    page.click("#ask")
    page.wait_for_selector(
        "#problem:has-text('\"w0x\" is no workload of this model. Did you mean w1')"
    )
    assert page.evaluate("document.activeElement.id") == "beside"
    page.keyboard.press("Escape")
    assert page.get_attribute("#beside", "aria-invalid") == "false"


def test_an_answer_to_an_older_question_is_greyed(page: Any) -> None:
    page.wait_for_selector("#pairs tbody tr")
    colour = "getComputedStyle(document.querySelector('#answer')).color"
    fresh = page.evaluate(colour)
    assert not page.is_visible("#outdated")
    page.select_option("#confidence", "0.5")
    assert page.is_visible("#outdated")
    assert page.evaluate(colour) != fresh
    held: list[Any] = []
    page.route("**/v1/predict", lambda route: held.append(route))
    page.click("#ask")
    page.fill("#workload", "w03")
    while not held:
        page.wait_for_timeout(10)
    held[0].continue_()
    page.wait_for_selector("#answer:has-text('with 50% confidence')")
    assert page.is_visible("#outdated")
    page.unroute("**/v1/predict")
    page.click("#ask")
    page.wait_for_selector("#answer:has-text('w03 alone on')")
    assert not page.is_visible("#outdated")


def test_reasons_of_an_answer_that_was_replaced_are_not_shown(page: Any) -> None:
    page.wait_for_selector("#pairs tbody tr")
    held: list[Any] = []
    page.route("**/v1/explain", lambda route: held.append(route))
    page.click("#ranked tbody tr:first-child button")
    while not held:
        page.wait_for_timeout(10)
    page.fill("#workload", "w03")
    page.click("#ask")
    page.wait_for_selector("#answer:has-text('w03 alone on')")
    with page.expect_response("**/v1/explain") as answered:
        held[0].continue_()
    answered.value.finished()
    page.wait_for_timeout(200)
    assert page.is_hidden("#why")


@pytest.mark.parametrize("width", [1280, 390])
def test_the_page_of_operations_fits_the_window(browser: Any, address: str, width: int) -> None:
    """So nothing scrolls sideways that keys could not reach; and nothing comes from elsewhere."""
    context = browser.new_context(viewport={"width": width, "height": 900})
    opened = context.new_page()
    opened.route(
        "**/*", lambda r: r.continue_() if r.request.url.startswith(address) else r.abort()
    )
    opened.goto(address + "/docs")
    assert opened.locator("section h2").count() > 20
    wide = opened.evaluate(
        "[document.documentElement, ...document.querySelectorAll('section')]"
        ".filter(e => e.scrollWidth > e.clientWidth + 1).map(e => e.id)"
    )
    assert wide == []
    context.close()


def test_the_focus_stays_in_the_field_of_a_wrong_key(
    browser: Any, model_folders: tuple[Path, Path], tmp_path: Path
) -> None:
    (tmp_path / "keys").write_text("ann read the-right-key-of-ann\n")
    (tmp_path / "keys").chmod(0o600)
    more = ("--keys", str(tmp_path / "keys"))
    with serving(model_folders[0], tmp_path / "s.sqlite", *more) as (where, _):
        context = browser.new_context()
        opened = context.new_page()
        opened.goto(where + "/")
        for key in ("a wrong key", "the-right-key-of-ann"):
            opened.wait_for_selector("#problem:has-text('API key')")
            assert opened.evaluate("document.activeElement.id") == "key"
            opened.evaluate("document.querySelector('#problem').textContent = ''")
            opened.keyboard.type(key)  # in place of the one before
            opened.keyboard.press("Enter")
        opened.wait_for_selector("#ranked tbody tr")
        assert opened.evaluate("document.activeElement.id") == "workload"
        assert opened.is_hidden("#key-form")
        context.close()


def test_long_names_leave_room_for_the_figures(browser: Any, address: str) -> None:
    """In a narrow window the table of platforms shows all columns, the maps a figure of each row."""
    context = browser.new_context(viewport={"width": 390, "height": 900})
    opened = context.new_page()

    def longer(route: Any) -> None:
        text = re.sub(
            r'"platform":"p',
            '"platform":"platform-of-rack-12.example.org-' + "x" * 30,
            route.fetch().text(),
        )
        route.fulfill(body=text)

    opened.route("**/v1/predict", longer)
    opened.goto(address + "/")
    opened.wait_for_selector("#pairs tbody tr")
    opened.evaluate(
        "for (const e of document.querySelectorAll('.heat tbody th')) e.textContent = 'name'.repeat(20)"
    )
    rights = opened.evaluate(
        "[...document.querySelectorAll('#ranked button, .heat tbody tr td:nth-child(2)')]"
        ".map(e => e.getBoundingClientRect().right)"
    )
    assert max(rights) <= 390
    context.close()


@pytest.mark.parametrize("width", [1280, 390])
def test_a_list_opens_under_its_field_and_a_thousand_names_are_searched(
    browser: Any, address: str, width: int
) -> None:
    names = [f"job{number}" for number in range(1000)]
    context = browser.new_context(viewport={"width": width, "height": 900})
    opened = context.new_page()

    def many(route: Any) -> None:
        told = route.fetch().json()
        told["models"][0]["workloads"] += names
        route.fulfill(json=told)

    opened.route("**/v1/models", many)
    opened.goto(address + "/")
    opened.wait_for_selector("#fleet li")
    for field in ("workload", "beside"):
        opened.fill(f"#{field}", "job12")
        box = opened.locator(f"#{field}").bounding_box()
        found = opened.locator(f"#{field}-list").bounding_box()
        assert 0 <= found["y"] - box["y"] - box["height"] < 12
        assert found["x"] < box["x"] + box["width"]
        assert box["x"] < found["x"] + found["width"] <= width
        assert opened.inner_text(f"#{field}-list li:first-child") == "job12"
        assert opened.evaluate("document.documentElement.scrollWidth <= innerWidth + 1")
    context.close()


def test_company_that_changes_is_asked_about_by_a_form(page: Any, address: str) -> None:
    page.fill("#workload", "w01")
    page.click("#workload-list [role=option]")
    page.fill("#beside", "w02")
    page.click("#beside-list [role=option]")
    page.click("#timeline summary")
    page.fill("#then", "2ms: w05, w03; 1h:")
    page.click("#ask")
    page.wait_for_selector("#answer:has-text('beside w02, as company changes')")
    shown = page.inner_text("#ranked tbody")
    stretches = [(0.0, ["w02"]), (0.002, ["w05", "w03"]), (3600.0, [])]
    items = [
        {
            "workload": "w01",
            "platform": page.inner_text("#ranked tbody tr:first-child th"),
            "stretches": [
                {"start_seconds": start, "corunners": names} for start, names in stretches
            ],
            "future": False,
        }
    ]
    with urllib.request.urlopen(
        urllib.request.Request(
            f"{address}/v1/predict",
            json.dumps({"items": items}).encode(),
            {"Content-Type": "application/json"},
        )
    ) as answered:
        (told,) = json.load(answered)["items"]
    drawn = page.evaluate(
        "async s => (await import('/page/draw.js')).duration(s)", told["runtime_seconds"]
    )
    assert drawn in shown
    page.fill("#then", "soon: w05")
    page.click("#ask")
    page.wait_for_selector("#problem:has-text('\"soon\" is no time')")


def test_the_fleet_is_asked_by_a_form_made_of_the_question(page: Any) -> None:
    page.select_option("#verb", "rank")
    assert "Ends with" not in page.inner_text("#verb-help")
    page.fill("#requests", "w00@9x, w01@500s")
    page.select_option("#verb-fields [name=least]", "cost")
    page.fill("#verb-fields [name=top]", "1")
    page.click("#verb-form button")
    page.wait_for_selector("#verb-answer tbody tr")
    rows = page.locator("#verb-answer tbody tr").all_inner_texts()
    assert len(rows) == 2
    assert any(node in rows[0] for node in ("east", "west", "south", HOSTILE))
    assert all(re.search(r": \d\S* (s|ms|µs) at most", row) for row in rows)
    page.fill("#requests", "w0O@9x")
    page.click("#verb-form button")
    page.wait_for_selector("#verb-answer tbody:has-text('w0O')")
    ruled_out = page.inner_text("#verb-answer tbody tr")
    assert "east: the model has never met the workload" in ruled_out
    assert "none at most" not in ruled_out
    assert "unknown workload 'w0O'. Did you mean w" in page.inner_text("#verb-promise")
    held: list[Any] = []
    page.route("**/v1/rank", lambda route: held.append(route))
    page.click("#verb-form button")
    page.wait_for_selector("#verb-promise:has-text('Asking')")
    assert page.locator("#verb-answer tr td").count() == 0  # which answered an older question
    page.unroute("**/v1/rank")
    page.select_option("#verb", "walltime")
    page.fill("#requests", "w00")
    page.click("#verb-form button")
    page.wait_for_selector("#verb-answer th:has-text('bound seconds')")
    assert re.search(r"\d (s|ms|µs)\b", page.inner_text("#verb-answer tbody"))


def test_names_with_markup_show_as_text(page: Any) -> None:
    assert HOSTILE in page.inner_text("#fleet")
    assert "job<b>1</b>" in page.inner_text("#fleet")
    assert page.locator("#fleet img").count() == 0
    assert "headroom" in page.inner_text("#fleet") or "no valid bound" in page.inner_text("#fleet")


def test_maps_and_coverage_are_drawn_and_named_for_readers(page: Any) -> None:
    assert page.locator("#map tbody tr").count() == 14
    assert page.locator("#pairs tbody tr").count() == 14
    assert "3 of 4 observed runs" in page.inner_text("#coverage-text")
    assert "75.0%" in page.get_attribute("#coverage svg", "aria-label")
    nameless = page.evaluate(
        "[...document.querySelectorAll('select, input, button')].filter(e => !(e.labels?.length"
        " && e.labels[0].textContent.trim()) && !e.textContent.trim()"
        " && !e.getAttribute('aria-label')).length"
    )
    assert nameless == 0
    assert page.evaluate("document.documentElement.lang") == "en"


def test_dark_mode_and_narrow_windows(browser: Any, address: str) -> None:
    context = browser.new_context(color_scheme="dark", viewport={"width": 390, "height": 800})
    opened = context.new_page()
    opened.goto(address + "/")
    opened.wait_for_selector("#fleet li")
    ground = opened.evaluate("getComputedStyle(document.body).backgroundColor")
    assert max(int(part) for part in ground.removeprefix("rgb(").rstrip(")").split(",")) < 60
    assert opened.evaluate("document.documentElement.scrollWidth <= innerWidth + 1")
    context.close()


def test_nothing_is_fetched_from_elsewhere(browser: Any, address: str) -> None:
    context = browser.new_context()
    opened, asked = context.new_page(), []
    opened.on("request", lambda request: asked.append(request.url))
    opened.goto(address + "/")
    opened.wait_for_selector("#fleet li")
    assert len(asked) > 5
    assert all(url.startswith((address, "data:")) for url in asked)
    context.close()
