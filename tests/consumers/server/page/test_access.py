"""The page for those who hear it or use a keyboard."""

from __future__ import annotations

from collections.abc import Callable

from tests.consumers.server.page.seen import Seen
from tests.consumers.server.page.stream import Stream

Open = Callable[..., Seen]


def test_the_first_key_skips_to_the_metrics(served: Stream, open_page: Open) -> None:
    page = open_page(served.url).until("ready").page
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the metrics"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "metrics"
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.name") == "window"
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"


def test_a_filter_keeps_the_focus_when_it_is_changed(served: Stream, open_page: Open) -> None:
    page = open_page(served.url).until("ready").page
    page.focus("[name=window]")
    page.keyboard.press("ArrowDown")
    page.wait_for_url("**window=latest**")
    page.wait_for_selector(".card caption:has-text('open')")
    assert page.evaluate("document.activeElement.name") == "window"


def test_every_part_has_a_role_and_a_name(served: Stream, open_page: Open) -> None:
    page = open_page(served.url).until("ready").chart().page
    for role, name in (
        ("banner", None),
        ("main", None),
        ("contentinfo", None),
        ("search", "Filters"),
        ("region", "Health of the stream"),
        ("region", "Experiment"),
        ("combobox", "Time"),
        ("combobox", "Metric"),
        ("row", "control"),
        ("rowheader", "treatment"),
        ("columnheader", "Value"),
        ("status", None),
    ):
        locator = page.get_by_role(role, name=name) if name else page.get_by_role(role)  # type: ignore[arg-type]
        assert locator.count() >= 1, (role, name)
    assert page.locator("table:not(:has(caption))").count() == 0
    labels = page.eval_on_selector_all("figure [role=img]", "all => all.map(e => e.ariaLabel)")
    assert labels and all(labels)
    assert page.get_attribute("#announce", "aria-live") == "polite"


def test_text_has_contrast_in_both_themes(served: Stream, open_page: Open) -> None:
    page = open_page(served.url).until("ready").page
    for theme in ("light", "dark"):
        page.emulate_media(color_scheme=theme)
        for name in ("ink", "quiet", "link", "good", "warn", "bad"):
            assert _contrast(page.evaluate(_RESOLVED, [name, "card"])) >= 4.5, (theme, name)


_RESOLVED = """names => {
  const one = document.createElement("p");
  document.body.append(one);
  const found = names.map((name) => {
    one.style.color = `var(--${name})`;
    return getComputedStyle(one).color.match(/[0-9.]+/g).slice(0, 3).map(Number);
  });
  one.remove();
  return found;
}"""


def _contrast(colours: list[list[float]]) -> float:
    """The ratio of WCAG 2.2, 1.4.3."""
    first, second = sorted(map(_luminance, colours), reverse=True)
    return (first + 0.05) / (second + 0.05)


def _luminance(colour: list[float]) -> float:
    parts = [part / 255 for part in colour]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
