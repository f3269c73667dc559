// Small charts as SVG, with the numbers in a text for screen readers.

import { day, html, many, number, percent } from "./lib.js";

export function Bars({ rows, label, unit = "", onPick }) {
  const most = Math.max(1, ...rows.map((row) => row.count));
  return html`<div class="bars" role="group" aria-label=${label}>${rows.map((row) => html`<div class="bar-row">
    <span class="bar-name">${row.to ? html`<a href=${row.to}>${row.name}</a>` : onPick ? html`<button class="linkish" onClick=${() => onPick(row)}>${row.name}</button>` : row.name}</span>
    <span class="bar-track" aria-hidden="true"><span class=${`bar-fill ${row.tone ?? ""}`} style=${{ width: `${(100 * row.count) / most}%` }}></span></span>
    <span class="bar-count">${number(row.count)}${unit}</span></div>`)}</div>`;
}

// Below this width of the window a chart is drawn smaller instead of scaled down with its letters.
const NARROW = 720;

// Points are [x, y]; `bounds` the range of both axes, `marks` vertical lines with a title, and a label if need be.
export function Curve({ points, bounds, label, marks = [], dots = [], levels = [], ticks = [], wide = 640, height = 180 }) {
  const width = innerWidth < NARROW ? 340 : wide;
  const edge = { left: 36, right: 8, top: 8, bottom: 22 };
  const x = (value) => edge.left + ((value - bounds.x[0]) / (bounds.x[1] - bounds.x[0] || 1)) * (width - edge.left - edge.right);
  const y = (value) => height - edge.bottom - ((value - bounds.y[0]) / (bounds.y[1] - bounds.y[0] || 1)) * (height - edge.top - edge.bottom);
  const line = points.map(([a, b], index) => `${index ? "L" : "M"}${x(a).toFixed(1)} ${y(b).toFixed(1)}`).join("");
  const first = points[0];
  const last = points.at(-1);
  const area = points.length ? `${line}L${x(last[0]).toFixed(1)} ${y(bounds.y[0])}L${x(first[0]).toFixed(1)} ${y(bounds.y[0])}Z` : "";
  return html`<svg class="curve" viewBox=${`0 0 ${width} ${height}`} role="img" aria-label=${label}>
    ${levels.map((level) => html`<g><line class=${`grid ${level.tone ?? ""}`} x1=${edge.left} x2=${width - edge.right} y1=${y(level.at)} y2=${y(level.at)} />
      <text class="axis" x=${edge.left - 6} y=${y(level.at) + 3.5} text-anchor="end">${level.text}</text></g>`)}
    ${ticks.map((tick) => html`<text class="axis" x=${x(tick.at)} y=${height - 6} text-anchor=${tick.anchor ?? "middle"}>${tick.text}</text>`)}
    <path class="area" d=${area} /><path class="line" d=${line} />
    ${marks.map((mark) => html`<line class=${`mark-line ${mark.tone ?? ""}`} x1=${x(mark.at)} x2=${x(mark.at)} y1=${edge.top} y2=${height - edge.bottom}><title>${mark.text}</title></line>${mark.label && html`<text class="axis" x=${x(mark.at) + (x(mark.at) > width / 2 ? -5 : 5)} y=${height - edge.bottom - 7} text-anchor=${x(mark.at) > width / 2 ? "end" : "start"}>${mark.label}</text>`}`)}
    ${dots.map((dot) => html`<circle class=${`dot ${dot.tone ?? ""}`} cx=${x(dot.at[0])} cy=${y(dot.at[1])} r="4"><title>${dot.text}</title></circle>`)}</svg>`;
}

export const FRACTIONS = [0, 0.25, 0.5, 0.75, 1].map((at) => ({ at, text: percent(at) }));

// Counts by day as columns: rows are { date, days, count }, oldest first.
export function Columns({ rows, label, toOf }) {
  const most = Math.max(1, ...rows.map((row) => row.count));
  return html`<figure class="columns-box"><div class="columns" role="group" aria-label=${label}>${rows.map((row) => {
    const text = `${row.days > 1 ? `${many(row.days, "day")} from ` : ""}${day(row.date)}: ${number(row.count)}`;
    const fill = html`<span class="column-fill" style=${{ height: `${(100 * row.count) / most}%` }}></span>`;
    return row.count && toOf
      ? html`<a class="column" href=${toOf(row)} title=${text} aria-label=${text}>${fill}</a>`
      : html`<span class="column" title=${text}>${fill}</span>`;
  })}</div><figcaption><span>${day(rows[0].date)}</span><span>most in ${rows[0].days > 1 ? many(rows[0].days, "day") : "a day"}: ${number(most)}</span><span>${day(rows.at(-1).date)}</span></figcaption></figure>`;
}

const STEPS = 4;
const monthOf = new Intl.DateTimeFormat("en-GB", { month: "short" });

// Days as squares, a column for each week from Monday: what was reviewed, then what falls due or fades.
export function Calendar({ days }) {
  const blank = (new Date(`${days[0].date}T12:00:00`).getDay() + 6) % 7;
  const past = days.filter((one) => one.due === undefined);
  const most = (rows, value) => Math.max(1, ...rows.map(value));
  const made = most(days, (one) => one.reviews ?? 0);
  const next = most(days, (one) => (one.due ?? 0) + (one.fading ?? 0));
  const level = (count, top) => (count ? Math.max(1, Math.ceil((STEPS * count) / top)) : 0);
  const text = (one) => [`${day(one.date)}:`, one.reviews !== undefined && `${number(one.reviews)} reviewed`, one.due !== undefined && `${number(one.due)} fall due, ${number(one.fading)} fade below 30%`].filter(Boolean).join(" ");
  const at = (one) => new Date(`${one.date}T12:00:00`);
  const weeks = Math.ceil((blank + days.length) / 7);
  // The name of a month stands over the week in which it begins.
  const months = Array.from({ length: weeks }, (_, week) => {
    const first = days.slice(Math.max(0, 7 * week - blank), 7 * (week + 1) - blank).find((one) => at(one).getDate() === 1);
    return first ? monthOf.format(at(first)) : "";
  });
  return html`<figure class="calendar"><div class="calendar-grid"><div class="calendar-months" aria-hidden="true"><span></span>${months.map((name) => html`<span>${name}</span>`)}</div>
      <div class="calendar-rows"><div class="calendar-weekdays" aria-hidden="true">${["Mon", "", "Wed", "", "Fri", "", ""].map((name) => html`<span>${name}</span>`)}</div>
      <div class="calendar-days" role="list" aria-label="Reviews by day">
      ${Array.from({ length: blank }, () => html`<span aria-hidden="true"></span>`)}
      ${days.map((one, index) => html`<span role="listitem" title=${text(one)} aria-label=${text(one)} class=${`day-cell ${one.due === undefined ? `made-${level(one.reviews, made)}` : `next-${level(one.due + one.fading, next)}`} ${index === past.length ? "today" : ""}`}></span>`)}</div></div></div>
    <figcaption><span>${day(days[0].date)}</span><span class="legend">outlined: today <i class="day-cell made-3"></i> reviewed <i class="day-cell next-3"></i> falls due or fades</span><span>${day(days.at(-1).date)}</span></figcaption></figure>`;
}
