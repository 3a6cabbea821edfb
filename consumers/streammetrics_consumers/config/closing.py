"""When events that wait are counted: the one clock of [join] and [exposures].

An impression waits for its outcomes, and any event for the exposures of its unit. Both are closed,
and counted, up to a time that every partition has passed by more than the allowed lateness; an
event that is older than that in its own log is refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from streammetrics_consumers.config.join import JoinConfig

if TYPE_CHECKING:
    from streammetrics_consumers.config.exposures import ExposuresConfig
    from streammetrics_consumers.config.tables import WindowsConfig

PANES: Final = 4  # per allowed lateness, without a label window
LEAST_PANE_MS: Final = 1000


@dataclass(frozen=True, slots=True)
class Closing:
    """The settings of closing.

    label_window_ms: how long an impression waits for its outcomes, 0 without a [join]. reopen_s: by
    how much more than `lateness_s` an event may be late. idle_s: a partition that is this much
    behind the newest event keeps nothing open; None: every partition does. pane_ms: the length of
    the panes of event time by which waiting rows are stored and closed.
    """

    label_window_ms: int
    reopen_s: int
    idle_s: int | None
    pane_ms: int

    def lateness_ms(self, windows: WindowsConfig) -> int:
        """The allowed lateness: an event that is older than the newest one of its partition by more
        than this is refused.

        >>> from streammetrics_consumers.config.tables import WindowsConfig
        >>> Closing(0, reopen_s=30, idle_s=None, pane_ms=1000).lateness_ms(WindowsConfig())
        630000
        """
        return (windows.lateness_s + self.reopen_s) * 1000


def closing_of(
    join: JoinConfig | None, exposures: ExposuresConfig | None, windows: WindowsConfig
) -> Closing | None:
    """The closing of a config: that of [join] if there is one, else that of [exposures]; None if no
    event waits.

    >>> from streammetrics_consumers.config.tables import WindowsConfig
    >>> closing_of(None, None, WindowsConfig()) is None
    True
    """
    if join is not None:
        return Closing(join.label_window_ms, join.reopen_s, join.idle_s, join.pane_ms)
    if exposures is None:
        return None
    pane_ms = max(windows.lateness_s * 1000 // PANES, LEAST_PANE_MS)
    return Closing(0, exposures.reopen_s, exposures.idle_s, pane_ms)
