// Dreams and consolidations, and the schedule of reviews.

import { act, api, day, get, go, html, many, may, number, percent, post, useData, useEffect, useRef, useState, when, words } from "../lib.js";
import { Badge, Choice, Empty, Facts, Link, Loaded, MemoryLink, MemoryText, Meter, Page, Panel, Prose, Time, TypeMark } from "../ui.js";
import { Bars, Calendar, Curve, FRACTIONS } from "../charts.js";
import { useLive } from "../live.js";
import { Insight } from "./inbox.js";

// What a run counts, as a person says it: one, more.
const COUNTED = {
  consolidation: {
    memories: ["memory looked at", "memories looked at"], states: ["change of state", "changes of state"], embeddings: ["vector made", "vectors made"],
    curve: ["review read for your curve", "reviews read for your curve"], cascade: ["neighbour of a suppression weakened", "neighbours of suppressions weakened"],
    duplicates: ["likely duplicate", "likely duplicates"], dream: ["memory replayed in a dream", "memories replayed in a dream"],
    insights: ["insight dropped, as its sources changed", "insights dropped, as their sources changed"], intentions: ["old intention removed", "old intentions removed"],
    windows: ["expired note removed", "expired notes removed"], history: ["old row removed", "old rows removed"], links: ["link faded", "links faded"],
  },
  dream: {
    replayed: ["memory replayed", "memories replayed"], linked: ["new link", "new links"], reinforced: ["link strengthened", "links strengthened"],
    pruned: ["weak link removed", "weak links removed"], strengthened: ["memory strengthened", "memories strengthened"], insights: ["insight", "insights"],
  },
};
const AROUND_MS = 120_000; // a run without a duration is looked for in the two minutes before its end
const MOST_CHANGES = 100;

function What({ one }) {
  if (one.fromState) return html`<span class="num">${one.fromState} → ${one.toState}</span>`;
  if (one.link) return html`<span class="num">${words(one.link)} ${one.weight?.toFixed(2) ?? ""}</span>`;
  return null;
}

// What the log says was changed while it ran, memory by memory.
function Changed({ run }) {
  const end = new Date(run.at).getTime();
  const args = { start: new Date(end - (run.durationMs ? run.durationMs + 1000 : AROUND_MS)).toISOString(), end: new Date(end + 1000).toISOString(), limit: MOST_CHANGES };
  const from = useData((signal) => get("/changelog", args, { signal, quiet: true }), [run.id]);
  return html`<${Loaded} from=${from}>${({ changes, more }) => {
    const rows = changes.filter((one) => one.documentId !== run.id);
    return rows.length ? html`<ul class="plain rows run-changes">${rows.map((one) => html`<li class="memory-row"><span class="change-kind">${one.change === "remarked" ? "strengthened" : words(one.change === "revised" && one.reason ? one.reason : one.change)}</span>
      ${one.memoryId ? html`<${MemoryLink} id=${one.memoryId} text=${one.preview || "a hidden memory"} />` : html`<span class="muted">${words(one.document ?? "")}</span>`}<${What} one=${one} />${one.targetId && html`<span aria-hidden="true">→</span><${Link} to=${`/memories/${one.targetId}`}>the other<//>`}</li>`)}</ul>${more ? html`<p class="note">The latest ${MOST_CHANGES} changes; <a href=${`/api/v1/changelog?start=${encodeURIComponent(args.start)}&end=${encodeURIComponent(args.end)}&limit=100`} data-native>the log</a> has all.</p>` : null}` : html`<p class="note">The log has no change of a memory from this time.</p>`;
  }}<//>`;
}

function Run({ run }) {
  const [open, setOpen] = useState(false);
  const counts = Object.entries(run.counts).filter(([, count]) => count);
  return html`<li class="run"><p class="revision-head"><${Badge} tone=${run.kind === "dream" ? "dream" : ""}>${run.kind}<//> <${Time} at=${run.at} /> ${run.durationMs ? html`<span class="muted">${(run.durationMs / 1000).toFixed(1)} s</span>` : null}</p>
    ${counts.length ? html`<p class="counts">${counts.map(([name, count]) => html`<span><strong>${number(count)}</strong> ${COUNTED[run.kind]?.[name]?.[count === 1 ? 0 : 1] ?? words(name)}</span>`)}</p><details onToggle=${(event) => setOpen(event.target.open)}><summary>What changed</summary>${open && html`<${Changed} run=${run} />`}</details>` : html`<p class="note">Nothing had to be done.</p>`}</li>`;
}

export function Dreams({ query }) {
  const kind = query.kind ?? "";
  const runs = useData((signal) => get("/runs", { limit: 50, kind }, { signal }), [kind]);
  const insights = useData((signal) => get("/insights", { limit: 50 }, { signal }), []);
  const [dreamt, setDreamt] = useState(null);
  const reload = () => {
    runs.reload();
    insights.reload();
  };
  useLive(["DreamCompleted", "ConsolidationCompleted"], reload);
  const dream = () => act("Dreamed.", () => post("/dream", {}), { after: (answer) => { setDreamt(answer ?? null); reload(); } });
  return html`<${Page} title="Dreams" lead="What dreams and consolidations changed, and what they think they saw." twin="/api/v1/runs?limit=50"
      actions=${may("write") && html`<button class="primary" onClick=${dream}>Dream now</button><button onClick=${() => act("Consolidated.", () => post("/consolidate", {}), { after: reload })}>Consolidate</button>`}>
    ${dreamt?.connections?.length ? html`<${Panel} title=${`This dream: ${many(dreamt.connectionsPersisted, "new link")}`}><ul class="plain rows">${dreamt.connections.slice(0, 12).map((one) => html`<li class="memory-row"><${Badge}>${words(one.type)}<//><span class="num">${one.weight.toFixed(2)}</span><${MemoryLink} id=${one.source} /><span aria-hidden="true">→</span><${MemoryLink} id=${one.target} /></li>`)}</ul><//>` : null}
    <div class="grid two">
      <${Panel} title="Runs" extra=${html`<${Choice} label="Kind" value=${kind} options=${[["", "both"], ["dream", "dreams"], ["consolidation", "consolidations"]]} onChange=${(value) => go("/dreams", { kind: value })} />`}>
        <${Loaded} from=${runs}>${({ runs: all }) => all.length ? html`<ol class="plain rows">${all.map((one) => html`<${Run} run=${one} key=${one.id} />`)}</ol>` : html`<${Empty} title="No dream yet." />`}<//><//>
      <${Panel} title="Insights" className="flat">
        <${Loaded} from=${insights}>${({ insights: all }) => all.length ? all.map((one) => html`<${Insight} insight=${one} key=${one.id}>${may("write") && html`<div class="actions"><button onClick=${() => act("Dismissed: no dream draws it again.", () => api("DELETE", `/insights/${one.id}`, {}), { after: insights.reload })}>Dismiss</button></div>`}<//>`) : html`<${Empty} title="No insight yet.">A dream draws them when memories fit together.<//>`}<//><//>
    </div><//>`;
}

const RATINGS = [["again", "I did not know it"], ["hard", "with effort"], ["good", "I knew it"], ["easy", "at once"]];

function Review({ onEnd }) {
  const from = useData((signal) => get("/memories", { order: "due", due: true, limit: 50 }, { signal }), []);
  const [at, setAt] = useState(0);
  const items = from.data?.results ?? [];
  const item = items[at];
  const rate = async (rating) => {
    if (!item) return;
    if (await act((answer) => answer.message, () => post(`/memories/${item.id}/reviews`, { rating }))) setAt(at + 1);
  };
  const latest = useRef(null);
  latest.current = rate;
  useEffect(() => {
    const listen = (event) => {
      if (event.ctrlKey || event.metaKey || event.target.closest?.("input, textarea, select") || !/^[1-4]$/.test(event.key)) return;
      event.preventDefault();
      latest.current(Number(event.key));
    };
    document.addEventListener("keydown", listen, true);
    return () => document.removeEventListener("keydown", listen, true);
  }, []);
  return html`<${Panel} title="Review" className="review" extra=${html`<button class="quiet" onClick=${onEnd}>End</button>`}><${Loaded} from=${from}>${() => item
    ? html`<p class="note">${at + 1} of ${items.length}</p><${MemoryText} text=${item.content} /><p><${TypeMark} type=${item.nodeType} /> <${Meter} value=${item.retentionStrength} /> <${Time} at=${item.createdAt} /></p>
      <div class="actions">${RATINGS.map(([name, text], index) => html`<button title=${text} onClick=${() => rate(index + 1)}>${name} <kbd>${index + 1}</kbd></button>`)}</div>`
    : html`<${Empty} title="Nothing more is due." />`}<//><//>`;
}

function Past({ history }) {
  const points = history.map((one) => [new Date(one.at).getTime(), one.avgRetention]).sort((a, b) => a[0] - b[0]);
  if (points.length < 2) return html`<${Empty} title="Not enough history yet.">Each consolidation adds a point.<//>`;
  const [first, last] = [points[0][0], points.at(-1)[0]];
  return html`<${Curve} wide=${480} label="Average retention over time" points=${points} bounds=${{ x: [first, last], y: [0, 1] }} levels=${FRACTIONS}
    ticks=${[{ at: first, text: day(first), anchor: "start" }, { at: last, text: day(last), anchor: "end" }]} />`;
}

export function Schedule({ query }) {
  const health = useData((signal) => get("/memory-health", { forecast: true, calendar: true }, { signal }), []);
  const due = useData((signal) => get("/memories", { order: "due", due: true, limit: 12 }, { signal }), []);
  const weak = useData((signal) => get("/memories", { order: "retention", limit: 6 }, { signal }), []);
  const reviewing = query.review === "1";
  useLive(["MemoryPromoted", "MemoryDemoted", "ConsolidationCompleted"], () => { health.reload(); due.reload(); });
  return html`<${Page} title="Schedule" lead="When memories fade, and which to review." twin="/api/v1/memory-health?forecast=true&calendar=true"
      actions=${may("write") && !reviewing && html`<button class="primary" onClick=${() => go("/schedule", { review: 1 })}>Review now</button>`}>
    ${reviewing && may("write") ? html`<${Review} onEnd=${() => go("/schedule")} />` : html`
    <${Loaded} from=${health} rows=${16}>${(state) => html`
      <div class="figures"><div class="figure"><span class="figure-value">${state.totalMemories ? state.avgRetention : "–"}</span><span class="figure-label">average retention, target ${percent(state.retentionTarget)}</span></div>
        <div class="figure"><span class="figure-value">${number(state.memoriesBelow30pct)}</span><span class="figure-label">below 30% now</span></div>
        ${state.forecast.map((one) => html`<div class="figure"><span class="figure-value">${number(one.below30pct)}</span><span class="figure-label">below 30% in ${one.days} days</span></div>`)}</div>
      <div class="grid memory-grid after"><${Panel} title="Day by day" extra=${`${number(state.calendar.reduce((sum, one) => sum + (one.reviews ?? 0), 0))} reviews in 12 weeks`}><${Calendar} days=${state.calendar} /><//>
      <${Panel} title="Due by week"><${Bars} label="Reviews due by week" rows=${state.due.map((one) => ({ name: one.weeks === 0 ? "overdue" : one.weeks === 1 ? "this week" : `in ${one.weeks - 1} ${one.weeks === 2 ? "week" : "weeks"}`, count: one.count, tone: one.weeks === 0 ? "fair" : "good" }))} /><p class="note"><${Prose} text=${state.recommendation} /></p><//></div>`}<//>
    <div class="grid two">
      <${Panel} title="Due now" extra=${due.data && html`<${Link} to="/memories" query=${{ due: 1, order: "due" }}>${number(due.data.total)}<//>`}><${Loaded} from=${due} rows=${14}>${({ results }) => results.length ? html`<ul class="plain rows">${results.map((one) => html`<li class="memory-row"><${TypeMark} type=${one.nodeType} /><${MemoryLink} id=${one.id} text=${one.content} /><${Meter} value=${one.retentionStrength} /></li>`)}</ul>` : html`<${Empty} title="Nothing is due." />`}<//><//>
      <div class="stack">${health.data && html`<${Panel} title="Retention over time"><${Past} history=${health.data.history} /><//>`}
      <${Panel} title="Weakest"><${Loaded} from=${weak} rows=${8}>${({ results }) => results.length ? html`<ul class="plain rows">${results.map((one) => html`<li class="memory-row"><${TypeMark} type=${one.nodeType} /><${MemoryLink} id=${one.id} text=${one.content} /><${Meter} value=${one.retentionStrength} /></li>`)}</ul>` : html`<${Empty} title="No memories yet." />`}<//><//></div>
    </div>`}<//>`;
}
