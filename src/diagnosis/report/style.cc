#include "diagnosis/report/style.h"

namespace cutaway::report {

// Colours are named by what they mean. Each pair of text and ground has a contrast of 4.5 or more, in both themes.
const std::string_view kStyle = R"css(
:root { color-scheme: light dark; --ground: #ffffff; --panel: #f5f6f8; --ink: #1b1f24; --quiet: #57606a; --rule: #d5d9df; --link: #0b57c2;
  --bad: #b3261e; --bad-ground: #fdeceb; --good: #1a6e37; --good-ground: #e6f4ea; --warn: #8a4b00; --warn-ground: #fff4e0; --local: #0b57c2; --cumulative: #b45309; }
@media (prefers-color-scheme: dark) { :root { --ground: #14171b; --panel: #1d2127; --ink: #e6e9ee; --quiet: #a3acb8; --rule: #363c45; --link: #8ab8ff;
  --bad: #ff9b93; --bad-ground: #3a1d1c; --good: #7fd79a; --good-ground: #17301f; --warn: #ffc777; --warn-ground: #362a14; --local: #8ab8ff; --cumulative: #f5a95b; } }
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; }
body { margin: 0; background: var(--ground); color: var(--ink); font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif; }
main, header, footer { max-width: 60rem; margin: 0 auto; padding: 0 1.25rem; }
header { padding-top: 2rem; }
.product { margin: 0; color: var(--quiet); font-size: .875rem; }
h1 { margin: .25rem 0 .5rem; font-size: 1.75rem; line-height: 1.25; overflow-wrap: anywhere; text-wrap: balance; }
h2 { margin: 2.5rem 0 .75rem; padding-top: .75rem; border-top: 1px solid var(--rule); font-size: 1.25rem; }
h3 { margin: 1.5rem 0 .5rem; font-size: 1rem; }
p, ul { margin: .5rem 0; }
ul { padding-left: 1.25rem; }
li { overflow-wrap: anywhere; }
.lead { margin: 0; color: var(--quiet); font-size: 1.0625rem; overflow-wrap: anywhere; }
a { color: var(--link); }
nav ul { display: flex; flex-wrap: wrap; gap: 0 1.25rem; margin: 1rem 0 0; padding: 0; list-style: none; }
nav a { display: inline-block; padding: .25rem 0; }
code, pre, .code { font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace; font-size: .875rem; }
code { overflow-wrap: anywhere; }
pre { margin: .5rem 0; padding: .75rem 1rem; border-radius: 8px; background: var(--panel); overflow-x: auto; line-height: 1.5; }
pre code { overflow-wrap: normal; }
pre mark { display: inline-block; min-width: 100%; border-radius: 3px; background: var(--bad-ground); color: inherit; box-shadow: -4px 0 0 var(--bad-ground), 4px 0 0 var(--bad-ground); }
dl { display: grid; grid-template-columns: minmax(8rem, max-content) minmax(0, 1fr); gap: .35rem 1.25rem; margin: 0; }
dt { color: var(--quiet); }
dd { margin: 0; overflow-wrap: anywhere; }
.scroll { overflow-x: auto; }
.scroll:focus-visible, a:focus-visible, summary:focus-visible { outline: 2px solid var(--link); outline-offset: 2px; }
table { width: 100%; border-collapse: collapse; font-size: .9375rem; }
caption { padding-bottom: .5rem; color: var(--quiet); text-align: left; }
th, td { padding: .4rem .75rem .4rem 0; border-bottom: 1px solid var(--rule); text-align: left; vertical-align: top; }
th { color: var(--quiet); font-weight: 600; white-space: nowrap; }
tbody th { color: inherit; font-weight: 400; }
td.number, th.number { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }
td code, th code { overflow-wrap: normal; white-space: nowrap; }
td.short { white-space: nowrap; }
td.long { min-width: 14rem; overflow-wrap: anywhere; }
td.long code { overflow-wrap: anywhere; white-space: normal; }
tr.wrong td, tr.wrong th { background: var(--bad-ground); }
.badge { display: inline-block; padding: 0 .5rem; border-radius: 999px; font-size: .875rem; font-weight: 600; white-space: nowrap; }
.badge.bad { background: var(--bad-ground); color: var(--bad); }
.badge.good { background: var(--good-ground); color: var(--good); }
.badge.neutral { background: var(--panel); color: var(--quiet); }
.note { margin: .75rem 0; padding: .6rem 1rem; border-radius: 8px; background: var(--warn-ground); color: var(--warn); overflow-wrap: anywhere; }
.quiet { color: var(--quiet); }
summary { padding: .25rem 0; color: var(--link); cursor: pointer; }
figure { margin: .75rem 0; }
figcaption { color: var(--quiet); font-size: .9375rem; }
svg { display: block; }
svg.graph { max-width: 100%; height: auto; margin: 0 auto; }
svg text { font: 13px ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace; fill: var(--ink); }
svg.graph text { text-anchor: middle; }
svg .box rect { fill: var(--panel); stroke: var(--rule); stroke-width: 1.5; }
svg .box.op rect, svg .box.call rect { fill: var(--ground); stroke: var(--quiet); }
svg .box.call rect { stroke-dasharray: 5 3; }
svg .box.marked rect { fill: var(--bad-ground); stroke: var(--bad); stroke-width: 2; }
svg text.name { font-weight: 600; }
svg text.detail { fill: var(--quiet); }
svg text.mark { fill: var(--bad); font-weight: 600; }
svg .edge { fill: none; stroke: var(--quiet); stroke-width: 1.3; }
svg .tip { fill: var(--quiet); }
svg.plot { width: 100%; height: auto; }
svg.plot text { font: 12px system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif; }
svg .tick { fill: var(--quiet); }
svg .grid { stroke: var(--rule); stroke-width: 1; }
svg .line { fill: none; stroke-width: 1.8; }
svg .line.local { stroke: var(--local); }
svg .line.cumulative { stroke: var(--cumulative); stroke-dasharray: 5 3; }
svg circle.local { fill: var(--local); }
svg circle.cumulative { fill: var(--cumulative); }
svg .wrong { stroke: var(--bad); stroke-width: 1.5; stroke-dasharray: 2 3; }
svg.plot text.wrong-label { fill: var(--bad); font-weight: 600; }
.narrow { display: none; }
footer { margin-top: 3rem; padding-bottom: 2rem; color: var(--quiet); font-size: .875rem; }
@media (max-width: 40rem) {
  header { padding-top: 1.25rem; }
  main, header, footer { padding-left: 1rem; padding-right: 1rem; }
  h1 { font-size: 1.375rem; }
  dl { grid-template-columns: minmax(0, 1fr); gap: 0; }
  dd { margin-bottom: .6rem; }
  td.long { min-width: 10rem; }
  .wide { display: none; }
  .narrow { display: block; }
}
@media print { nav { display: none; } pre, .scroll { overflow: visible; white-space: pre-wrap; } }
)css";

}  // namespace cutaway::report
