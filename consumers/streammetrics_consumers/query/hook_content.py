"""The content of a hook's event, of which /openapi.json has the schema.

The content follows from a look alone: the report of all looks
up to it. It is written once, when the look is stored.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Final

from msgspec import Meta

from streammetrics_consumers.ledger.outbox import HookMessage
from streammetrics_consumers.model.hook_events import (
    STORE_STALLED,
    HookEvent,
    HookSubject,
    LookPlace,
    stall_key,
)
from streammetrics_consumers.query.encoding import dumps
from streammetrics_consumers.query.experiment_plan import DeclaredExperiment
from streammetrics_consumers.query.hook_answers import Key
from streammetrics_consumers.query.json_kinds import Answer, Count, Level, Number, Time, recorded

if TYPE_CHECKING:
    from streammetrics.experiments import Finding, Recommendation, Report, SampleRatioFound
    from streammetrics_consumers.config.hooks import HookConfig
else:
    Recommendation, SampleRatioFound = recorded("Recommendation"), recorded("SampleRatio")

FIRST_ACTION: Final = "wait"  # the recommendation before the first look


class HookLook(Answer, frozen=True):
    """The look that shows it. number: of the looks at the experiment, the first is 1; of a
    recommendation, after that of the one before, also in a store that went back. place: the sum of
    the offsets up to which the logs were counted; watermark_ms: the newest event."""

    number: Annotated[int, Meta(ge=1)]
    place: Count
    watermark_ms: Time | None


class HookEffect(Answer, frozen=True):
    """The effect of the arm against the control. lower, upper: of the interval of all looks
    together, at this level; relative: the estimate relative to the control."""

    estimate: Number
    relative: Number
    lower: Number
    upper: Number
    level: Level


class HookStall(Answer, frozen=True):
    """Since when nothing is committed although there are events, and how long when this was
    written."""

    start_ms: Time
    seconds: float


class HookContent(Answer, frozen=True, tag_field="format", tag="streammetrics-hook/1"):
    """An event, as its receiver gets it.

    store: the random id of the store. experiment: its name in the config, empty for the one without
    a name; title: as declared; fingerprint: of the experiment. metric, arm: empty where the event
    is about all of them; verdict: on the arm. sentence: why it was sent, in words. look: null where
    the event rests on none. effect: null where the event is about no arm. recommendation: of the
    look, with the arms that it is about.
    """

    key: Key
    event: HookEvent
    created_ms: Time
    store: str
    generation: Count
    experiment: str
    title: str
    fingerprint: str
    metric: str
    arm: str
    control: str
    verdict: str
    sentence: str
    look: HookLook | None
    effect: HookEffect | None
    sample_ratio: SampleRatioFound | None
    recommendation: Recommendation | None
    stall: HookStall | None


LastHook = Callable[[str, HookEvent], tuple[int, HookMessage | None]]


def messages_of(
    last: LastHook,
    hooks: Sequence[HookConfig],
    design: DeclaredExperiment,
    report: Report,
    look: LookPlace,
) -> Iterator[HookMessage]:
    """What a look says to each of these hooks; the ledger knows what they have already.

    last: how many events of a kind a hook has of the experiment, and the newest of them.
    """
    for hook in hooks:
        for subject, finding in _subjects(last, hook, design, report, look.generation):
            key, place = subject.key(look), look
            if subject.event == "recommendation":
                _, newest = last(hook.name, subject.event)
                place = replace(look, number=max(look.number, _number(newest) + 1))
            content = _content(design, report, place, subject, finding, key)
            yield HookMessage(hook.name, subject, design.name, key, dumps(content), look.claimed_ms)


def _number(last: HookMessage | None) -> int:
    """The number of the look of a message. Of a store that was restored it may be one that the
    store has forgotten: what follows is numbered after it, for receivers go by the number."""
    return 0 if last is None else int(json.loads(last.body)["look"]["number"])


def _subjects(
    last: LastHook,
    hook: HookConfig,
    design: DeclaredExperiment,
    report: Report,
    generation: int,
) -> Iterator[tuple[HookSubject, Finding | None]]:
    """What is so at a look of all that a hook asks for, whether it has it already or not."""

    def subject(
        event: HookEvent, metric: str = "", arm: str = "", episode: str = ""
    ) -> HookSubject:
        return HookSubject(generation, design.fingerprint, event, metric, arm, episode)

    for finding in report.findings:
        contrast = finding.contrast
        event: HookEvent = "worse" if contrast.safeguard is None else "guardrail_broken"
        is_so = finding.verdict == ("worse" if event == "worse" else "broken")
        if is_so and hook.takes(event, design.name):
            yield subject(event, contrast.watched, contrast.treatment_variant), finding
    if report.srm.blocks and hook.takes("sample_ratio", design.name):
        yield subject("sample_ratio", episode=report.srm.epoch), None
    if hook.takes("recommendation", design.name):
        number, newest = last(hook.name, "recommendation")
        now = report.recommendation
        if (now.action, sorted(now.treatments)) != _recommended(newest, design):
            arms = ", ".join(now.treatments)
            yield subject("recommendation", arm=arms, episode=str(number + 1)), None


def _recommended(last: HookMessage | None, design: DeclaredExperiment) -> tuple[str, list[str]]:
    """The action and the arms of the last recommendation; at first, to wait for all."""
    if last is None:
        return FIRST_ACTION, sorted(design.plan.treatments)
    recommendation = json.loads(last.body)["recommendation"]
    return str(recommendation["action"]), sorted(map(str, recommendation["treatments"]))


def _content(
    design: DeclaredExperiment,
    report: Report,
    look: LookPlace,
    subject: HookSubject,
    finding: Finding | None,
    key: str,
) -> HookContent:
    sentence = report.recommendation.sentence if finding is None else finding.sentence
    return HookContent(
        key=key,
        event=subject.event,
        created_ms=look.claimed_ms,
        store=look.store_id,
        generation=subject.generation,
        experiment=design.name,
        title=design.title,
        fingerprint=design.fingerprint,
        metric=subject.metric,
        arm=subject.arm,
        control=design.plan.control,
        verdict="" if finding is None else finding.verdict,
        sentence=sentence,
        look=HookLook(look.number, look.place, look.watermark_ms),
        effect=None if finding is None else _effect(finding),
        sample_ratio=report.srm if subject.event == "sample_ratio" else None,
        recommendation=report.recommendation,
        stall=None,
    )


def _effect(finding: Finding) -> HookEffect:
    contrast = finding.contrast
    return HookEffect(
        estimate=contrast.comparison.effect_size,
        relative=contrast.comparison.rel_effect_size,
        lower=math.nan if finding.reason else finding.anytime_lower,
        upper=math.nan if finding.reason else finding.anytime_upper,
        level=1.0 - contrast.alpha,
    )


def stall_content(store_id: str, generation: int, start_ms: int, now_ms: int) -> HookContent:
    """The event of a store into which nothing is committed."""
    seconds = (now_ms - start_ms) / 1000
    return HookContent(
        key=stall_key(store_id, start_ms),
        event=STORE_STALLED,
        created_ms=now_ms,
        store=store_id,
        generation=generation,
        experiment="",
        title="",
        fingerprint="",
        metric="",
        arm="",
        control="",
        verdict="",
        sentence=f"Nothing has been committed for {seconds:.0f} s although there are events.",
        look=None,
        effect=None,
        sample_ratio=None,
        recommendation=None,
        stall=HookStall(start_ms, seconds),
    )
