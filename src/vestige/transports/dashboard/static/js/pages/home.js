// Home: how the memory is, how it grows, what changed since the last visit, and what waits for a person.

import { get, html, many, number, percent, seesAll, store, useData, useStore, words } from "../lib.js";
import { Empty, Figure, Link, Loaded, MemoryLink, Meter, Page, Panel, Prose, Time, TypeMark } from "../ui.js";
import { Bars } from "../charts.js";
import { useLive } from "../live.js";

const VISIT = "vestige-visit";
const CHANGES = ["MemoryCreated", "MemoryUpdated", "MemoryDeleted", "MemorySuppressed", "MemoryUnsuppressed", "DreamCompleted", "ConsolidationCompleted", "MemoriesArchived", "MemoriesRestored"];

// What the log calls a change, as a person says it.
const KINDS = { remarked: "strength", kept: "saved", revised: "changed" };

// What a change is about, if it is no memory: "2 intentions", or alone "intention".
function thing(one, count) {
  const [name, more] = one.document === "pending" ? ["proposed memory", "proposed memories"] : [words(one.document ?? "change")];
  return count > 1 ? many(count, name, more) : name;
}

function nameOf(one) {
  if (one.toState) return `now ${words(one.toState)}`;
  if (one.change === "revised" && one.reason) return words(one.reason);
  return KINDS[one.change] ?? words(one.change);
}

// A run changes many memories alike: those follow each other as one row with a count.
function grouped(changes, more) {
  const rows = [];
  for (const one of changes) {
    const name = nameOf(one);
    const last = rows.at(-1);
    if (last?.name === name && last.one.document === one.document) last.count += 1;
    else rows.push({ one, name, count: 1 });
  }
  if (more && rows.length > 1) rows.pop(); // the last one may go on beyond this answer
  return rows.slice(0, MOST_ROWS);
}

const MOST_ROWS = 12;
const REST_MS = 60_000; // between two comparisons of all memories, however often they change

// The end of the visit before this one, kept in this browser.
const before = store(localStorage.getItem(VISIT));
addEventListener("pagehide", () => localStorage.setItem(VISIT, new Date().toISOString()));

export const WAITING = [
  { path: "/inbox", name: "proposed memories", load: (signal) => get("/review", { limit: 1 }, { signal, quiet: true }).then((answer) => answer.total) },
  { path: "/contradictions", name: "contradictions", slow: true, load: (signal) => get("/contradictions", { limit: 1 }, { signal, quiet: true }).then((answer) => answer.total) },
  { path: "/duplicates", name: "duplicate groups", slow: true, load: (signal) => get("/duplicates", { limit: 1 }, { signal, quiet: true }).then((answer) => answer.totalClusters) },
  { path: "/domains", name: "domain proposals", whole: true, load: (signal) => get("/domains/proposals", {}, { signal, quiet: true }).then((answer) => answer.proposals.length) },
  { path: "/inbox", name: "insights", load: (signal) => get("/insights", { limit: 100 }, { signal, quiet: true }).then((answer) => answer.insights.length) },
];

// Each row counts for itself: comparing all memories takes longer than everything else here.
function WaitingRow({ one }) {
  const from = useData(one.load, []);
  useLive(["ReviewWaiting", "MemoryUpdated", "DreamCompleted", "DomainsChanged", "MemoryDeleted"], from.reload, one.slow ? REST_MS : undefined);
  if (from.error) return null;
  return html`<li><${Link} to=${one.path} class="row-link"><span>${one.name}</span><strong class=${from.data ? "" : "muted"}>${from.data === null ? "…" : number(from.data)}</strong><//></li>`;
}

function Waiting({ due }) {
  return html`<${Panel} title="Waits for you" extra=${html`<${Link} to="/inbox">Open the inbox<//>`}>
    <ul class="plain rows">${WAITING.filter((one) => !one.whole || seesAll()).map((one) => html`<${WaitingRow} one=${one} key=${one.name} />`)}
      <li><${Link} to="/schedule" class="row-link"><span>due for review</span><strong class=${due ? "" : "muted"}>${number(due)}</strong><//></li></ul><//>`;
}

function Growth() {
  const since = new Date(Date.now() - 30 * 86_400_000).toISOString().slice(0, 10);
  const from = useData((signal) => get("/memories", { limit: 1, created_from: since, detail_level: "brief" }, { signal, quiet: true }), [since]);
  useLive(["MemoryCreated", "MemoryDeleted"], from.reload);
  return html`<${Figure} value=${from.data ? `+${number(from.data.total)}` : "…"} label="in 30 days" to="/memories" query=${{ from: since }} />`;
}

function Changes() {
  const since = useStore(before);
  const from = useData((signal) => get("/changelog", { limit: 100, start: since ?? undefined }, { signal }), [since]);
  useLive(CHANGES, from.reload);
  return html`<${Panel} title=${since ? "Since you were here" : "Latest changes"} extra=${html`<${Link} to="/timeline">Timeline<//>`}>
    <${Loaded} from=${from} rows=${14}>${({ changes, more }) => changes.length
      ? html`<ul class="plain rows">${grouped(changes, more).map(({ one, name, count }) => html`<li class="change"><span class="change-kind">${name}</span>
        <span class="change-what">${count > 1 ? html`${one.link ? many(count, "link") : one.memoryId ? many(count, "memory", "memories") : thing(one, count)}` : one.memoryId ? html`<${MemoryLink} id=${one.memoryId} text=${one.preview || "a hidden memory"} />` : html`<span class="muted">${one.document ? thing(one, 1) : ""}</span>`}</span><${Time} at=${one.timestamp} /></li>`)}</ul>${more && html`<p class="note">There were earlier changes too.</p>`}`
      : html`<${Empty} title=${since ? "Nothing has changed since your last visit." : "Nothing has happened yet."} />`}<//><//>`;
}

function Retention() {
  const from = useData((signal) => get("/memory-health", {}, { signal }), []);
  return html`<${Panel} title="Retention">
    <${Loaded} from=${from} rows=${6}>${(health) => html`
      <${Bars} label="Memories by retention" rows=${health.distribution.map((one, index) => ({
        name: one.bucket.replace("-", "–"), count: one.count, tone: ["low", "low", "fair", "good", "good"][index],
        to: `/memories?order=retention&suppressed=1&min_retention=${index / 5}&max_retention=${(index + 1) / 5}`,
      }))} />
      <p class="note">${health.recommendation} The target is ${percent(health.retentionTarget)}.</p>`}<//><//>`;
}

export function Home() {
  const from = useData((signal) => get("/stats", {}, { signal }), []);
  const newest = useData((signal) => get("/memories", { limit: 8 }, { signal }), []);
  useLive(CHANGES, () => {
    from.reload();
    newest.reload();
  });
  return html`<${Page} title="Home" lead="How the memory is, and what waits for you." twin="/api/v1/stats">
    <${Loaded} from=${from} rows=${6}>${(stats) => html`
      <div class="figures">
        <${Figure} value=${stats.totalMemories} label="memories" to="/memories" query=${{ suppressed: 1 }} />
        <${Figure} value=${stats.totalMemories ? percent(stats.averageRetention) : "–"} label="retention" title="on average" to="/schedule" />
        <${Figure} value=${stats.connections} label="links" to="/map" />
        <${Figure} value=${stats.dueForReview} label="due for review" to="/schedule" />
        <${Figure} value=${stats.pinned} label="pinned" to="/memories" query=${{ pinned: true }} />
        <${Figure} value=${stats.suppressed} label="suppressed" to="/memories" query=${{ suppressed: "only" }} />
        <${Growth} />
        <${Figure} value=${stats.status} label="health" tone=${stats.status === "healthy" ? "good" : "fair"} to="/operate" />
      </div>
      ${stats.totalMemories === 0 && html`<${Empty} title="The memory is empty.">Connect an agent with <code>vestige connect</code>, or remember the first thing by hand: press <kbd>Ctrl K</kbd>, “Remember something”.<//>`}
      <div class="grid two">
        <div class="stack">
        <${Waiting} due=${stats.dueForReview} />
        <${Panel} title="Newest memories" extra=${html`<${Link} to="/memories">All<//>`}>
          <${Loaded} from=${newest} rows=${10}>${({ results }) => results.length ? html`<ul class="plain rows">${results.map((one) => html`<li class="memory-row">
            <${TypeMark} type=${one.nodeType} /><${MemoryLink} id=${one.id} text=${one.content} /><${Meter} value=${one.retentionStrength} /><${Time} at=${one.createdAt} /></li>`)}</ul>` : html`<${Empty} title="No memories yet." />`}<//>
        <//>
          ${stats.recommendations.length > 0 && html`<${Panel} title="Advice"><ul class="plain rows">${stats.recommendations.map((one) => html`<li><${Prose} text=${one} /></li>`)}</ul><//>`}
        </div>
        <div class="stack">
          <${Changes} />
          <${Retention} />
          ${stats.totalMemories > 0 && html`<${Panel} title="By type"><${Bars} label="Memories by type" rows=${Object.entries(stats.byType).sort((a, b) => b[1] - a[1]).map(([name, count]) => ({ name, count, to: `/memories?suppressed=1&type=${encodeURIComponent(name)}` }))} /><//>`}
        </div>
      </div>`}<//>
  <//>`;
}
