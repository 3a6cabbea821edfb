"""The generated part of README.zh-CN.md: that of README.md with these words in Chinese."""

from __future__ import annotations

from typing import Final

# Longer texts stand before those that they contain. What is not here stays English.
WORDS: Final = {
    "| work | ns | × `np.sort` | fastest peer, × ours |": (
        "| 任务 | 纳秒 | × `np.sort` | 最快的同类库，为我们的几倍 |"
    ),
    "`HistogramAUC`, batches of 10,000 rows": "`HistogramAUC`，每批 10,000 行",
    "`ExactAUC`, one batch of float32": "`ExactAUC`，float32，一批",
    "`GroupedAUC`, 20 rows a user, one batch": "`GroupedAUC`，每个用户 20 行，一批",
    "`RankingMetrics`, NDCG, MRR, HR and AP at 10, a list of 20 to 100 items": (
        "`RankingMetrics`，截断为 10 的 NDCG、MRR、HR 和 AP，每个列表 20 到 100 项"
    ),
    "`Ratio`: exact, order-free sums of values in [0, 1]": (
        "`Ratio`：[0, 1] 内数值的精确求和，与顺序无关"
    ),
    "`SlidingAUC`, a window of 1,000 rows: an event in, one out, and the area": (
        "`SlidingAUC`，1,000 行的窗口：进一个事件、出一个事件，并求面积"
    ),
    "Processor: ": "处理器：",
    ". Measured with ": "。测量环境：",
    "Measured with ": "测量环境：",
    "; see docs/performance.md.": "；见 docs/performance.md。",
    " and no ": "，未设 ",
    " and `": ",`",
}


def translated(summary: str) -> str:
    """A summary in English with its words in Chinese; its figures and names stay."""
    for english, chinese in WORDS.items():
        summary = summary.replace(english, chinese)
    return summary
