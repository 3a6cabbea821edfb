"""How a report looks: on a screen, on paper, and in black and white."""

from typing import Final

STYLE: Final = """
:root { font-family: system-ui, sans-serif; line-height: 1.45; color: #1a1a1a; background: #fff; }
body { margin: 0; }
main { max-width: 52rem; margin: 0 auto; padding: 1.5rem 1rem 3rem; }
h1 { font-size: 1.5rem; margin: 0 0 0.25rem; }
h2 { font-size: 1.15rem; margin: 2rem 0 0.5rem; border-bottom: 1px solid #bbb; break-after: avoid; }
h3 { font-size: 1rem; margin: 1.25rem 0 0.25rem; break-after: avoid; }
p { margin: 0.4rem 0; }
.verdict { font-size: 1.15rem; border-left: 4px solid #0072b2; padding: 0.25rem 0 0.25rem 0.75rem; }
.verdict.good { border-color: #00664b; }
.verdict.bad { border-color: #a3260c; }
.verdict.warn { border-color: #8a4b00; }
td:is(.good, .bad, .warn, .neutral) { min-width: 6rem; }
td.good, .verdict.good b { color: #00664b; font-weight: 600; }
td.bad, .verdict.bad b { color: #a3260c; font-weight: 600; }
td.warn, .verdict.warn b, .mixed { color: #8a4b00; font-weight: 600; }
.attention { border-left: 4px solid #d55e00; padding-left: 0.75rem; }
.small { font-size: 0.85rem; color: #444; }
.whole { white-space: nowrap; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: 0.85rem; margin: 0.5rem 0; }
table { min-width: min(100%, 26rem); }
caption { text-align: left; font-weight: 600; padding: 0.25rem 0; }
th, td { padding: 0.15rem 0.75rem 0.15rem 0; text-align: left; vertical-align: top; }
thead th { border-bottom: 1px solid #888; }
tbody tr { border-bottom: 1px solid #e4e4e4; }
.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
th, td { overflow-wrap: break-word; max-width: 16rem; }
figure { margin: 0.75rem 0; break-inside: avoid; }
figure img { max-width: 100%; height: auto; }
figcaption { font-size: 0.85rem; color: #444; }
code { font-size: 0.85em; overflow-wrap: anywhere; }
@page { margin: 15mm; }
@media print {
  main { max-width: none; padding: 0; }
  thead { display: table-header-group; }
  tr { break-inside: avoid; }
  .wide { overflow: visible; }
}
"""
