// The timeline of memories, and the live feed of events.

import { address, ago, get, html, longDay, many, number, percent, route, setQuery, urlOf, useData, useState, useStore, when, words } from "../lib.js";
import { Badge, Choice, Empty, Link, Loaded, MemoryLink, Meter, Page, Panel, Tags, Time, TYPES, TypeMark } from "../ui.js";
import { Columns } from "../charts.js";
import { feed, link, useLive } from "../live.js";

const DAY_MS = 86_400_000;
const SPANS = [["7", "a week"], ["30", "a month"], ["90", "three months"], ["365", "a year"]];

const dayAfter = (date, days) => new Date(Date.parse(date) + days * DAY_MS).toISOString().slice(0, 10);

export function Timeline({ query }) {
  const days = SPANS.some(([name]) => name === query.days) ? Number(query.days) : 30;
  const end = query.as_of ? new Date(query.as_of) : new Date(Math.ceil(Date.now() / 60_000) * 60_000);
  const start = new Date(end - (days - 1) * DAY_MS);
  start.setHours(0, 0, 0, 0);
  const args = { start: start.toISOString(), end: end.toISOString(), limit: 200, counts: true, node_type: query.type, tags: query.tags ? query.tags.split(",") : [], as_of: query.as_of, known_at: query.as_of };
  const from = useData((signal) => get("/timeline", args, { signal }), [days, query.type, query.tags, query.as_of]);
  useLive(["MemoryCreated", "MemoryDeleted"], from.reload);
  return html`<${Page} title="Timeline" lead="What was written, day by day, in your time zone." twin=${urlOf("/timeline", args)}>
    <div class="filters"><${Choice} label="Span" value=${String(days)} options=${SPANS} onChange=${(value) => setQuery({ days: value })} />
      <${Choice} label="Type" value=${query.type ?? ""} options=${[["", "any"], ...Object.keys(TYPES).map((one) => [one, one])]} onChange=${(type) => setQuery({ type })} />
      ${query.tags && html`<button class="tag" onClick=${() => setQuery({ tags: "" })}>${query.tags} ✕</button>`}</div>
    <${Loaded} from=${from} rows=${8}>${({ days: all, counts, total, shown }) => {
      const written = Object.fromEntries(counts.filter((one) => one.days === 1).map((one) => [one.date, one.count]));
      const listed = new Set(all.map((one) => one.date));
      // A day of the list is below; of another one, or of a week, the memories are on their own page.
      const toOf = ({ date, days: width }) => width === 1 && listed.has(date) ? `#day-${date}` : address("/memories", { from: date, to: dayAfter(date, width - 1), type: query.type, tags: query.tags, as_of: query.as_of });
      return html`${total > 0 && html`<${Columns} label="Memories by day" rows=${counts} toOf=${toOf} />`}
      <p class="note">${many(total, "memory", "memories")}${shown < total ? `, the latest ${number(shown)} of them below` : ""}.</p>
      ${all.length ? html`<div class="days">${all.map((one) => html`<section class="day" id=${`day-${one.date}`}><h2><span>${longDay(`${one.date}T12:00:00`)}</span> <span class="muted" title="memories">${number(written[one.date] ?? one.count)}${one.date in written || one !== all.at(-1) || shown === total ? "" : " or more"}</span></h2>
        <ul class="plain rows">${one.memories.map((memory) => html`<li class="memory-row"><${TypeMark} type=${memory.nodeType} /><${MemoryLink} id=${memory.id} text=${memory.content} /><${Tags} tags=${memory.tags.slice(0, 2)} /><${Meter} value=${memory.retentionStrength} /></li>`)}</ul></section>`)}</div>` : html`<${Empty} title="Nothing was written in this time." />`}`;
    }}<//><//>`;
}

function detail(event) {
  const { data } = event;
  if (event.type === "SearchPerformed") return html`<bdi>“${data.query}”</bdi> <span class="muted">${many(data.result_count, "result")} in ${Number(data.duration_ms).toFixed(0)} ms</span>`;
  const id = data.id ?? data.memory_id ?? data.source_id;
  const to = data.target_id;
  const rest = Object.entries(data).filter(([name, value]) => !["timestamp", "scope", "id", "content_preview", "tags", "by", "client", "session"].includes(name) && !name.endsWith("_id") && ["string", "number"].includes(typeof value)).slice(0, 4);
  return html`${id ? html`<${MemoryLink} id=${id} text=${data.content_preview || undefined} />` : null}${to && html` → <${MemoryLink} id=${to} />`} <span class="muted">${rest.map(([name, value]) => `${words(name)} ${typeof value === "number" ? Number(value.toFixed(3)) : value}`).join(" · ")}</span>`;
}

// Who did it, as far as this login may know: the key, the program behind it, and its session.
function Origin({ data }) {
  if (!data.by && !data.session) return null;
  return html`<span class="feed-origin muted">${data.by && html`<bdi>${[data.by, data.client].filter(Boolean).join(" · ")}</bdi>`}
    ${data.session && html` <${Link} to="/memories" query=${{ session: data.session }} title="What this session wrote"><bdi>session ${data.session}</bdi><//>`}</span>`;
}

const SLOW_MS = 500;
const FEED_STATES = { live: "Connected", connecting: "Connecting", lost: "The connection is lost; it is tried again.", ended: "The login has ended." };

export function Feed() {
  const all = useStore(feed);
  const now = useStore(link);
  const [kept, setKept] = useState(null);
  const [kind, setKind] = useState("");
  const shown = (kept ?? all).filter((one) => !kind || one.type === kind);
  const kinds = [...new Set(all.map((one) => one.type))].sort();
  return html`<${Page} title="Live feed" lead="What agents and the memory itself do, as it happens."
      actions=${html`<button aria-pressed=${kept !== null} onClick=${() => setKept(kept ? null : all)}>${kept ? `Go on (${all.length && all[0].id - (kept[0]?.id ?? 0)} new)` : "Pause"}</button>`}>
    <div class="filters"><${Choice} label="Event" value=${kind} options=${[["", "all"], ...kinds.map((one) => [one, words(one)])]} onChange=${setKind} />
      <span class="note">${FEED_STATES[now.state]}${now.heartbeat ? ` · ${many(now.heartbeat.memory_count, "memory", "memories")} · average retention ${percent(now.heartbeat.avg_retention)}` : ""}</span></div>
    ${shown.length ? html`<ol class="plain rows feed">${shown.map((one) => html`<li class="feed-row" key=${one.id}><span class=${`event-dot event-${one.type}`} aria-hidden="true"></span><span class="change-kind">${words(one.type)}</span><span class="change-what">${detail(one)}</span><${Origin} data=${one.data} />${one.data.duration_ms > SLOW_MS ? html`<${Badge} tone="warn">slow<//>` : null}<${Time} at=${one.data.timestamp} /></li>`)}</ol>` : html`<${Empty} title="Nothing has happened since you opened the dashboard.">Searches, new memories, dreams and everything else appear here at once.<//>`}
  <//>`;
}
