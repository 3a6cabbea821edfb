"""Every surface shows the same answers, as the files beside say."""

from __future__ import annotations

import pytest

from tests.consumers.render.snapshots import FOLDER, RENDERERS, joined, rendered


@pytest.mark.parametrize("name", RENDERERS)
def test_a_renderer_shows_the_corpus_as_before(name: str) -> None:
    expected = (FOLDER / name).read_text(encoding="utf-8")
    assert joined(rendered(name)) == expected, "see tests/consumers/render/snapshots.py"
