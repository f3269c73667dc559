// Operate: the store, its model, backups, keys, processes and the doctor.

import { act, api, get, html, many, may, number, percent, post, seesAll, session, useData, useState, when, bytes } from "../lib.js";
import { Badge, Choice, Dialog, Facts, Link, Loaded, Page, Pager, Panel, Prose, Time } from "../ui.js";
import { Bars } from "../charts.js";

function Doctor() {
  const [found, setFound] = useState(null);
  const check = (args, done) => act(done, () => post("/doctor", args)).then((answer) => answer && setFound(answer));
  return html`<${Panel} title="Doctor">
    ${found ? html`<p><${Badge} tone=${found.status === "ok" ? "good" : "warn"}>${found.status}<//> ${found.message}</p>
      <ul class="plain rows">${found.findings.map((one) => html`<li class="change"><${Badge} tone="warn">${one.severity ?? one.check ?? "finding"}<//><span class="change-what">${one.message ?? one.what ?? JSON.stringify(one)}</span></li>`)}</ul>
      <p class="note">Checked: ${found.checked.join(", ")}.</p>` : html`<p class="note">Checks the integrity of the store; changes nothing.</p>`}
    <div class="actions"><button onClick=${() => check({}, "Checked.")}>Check</button>${found && found.findings.length > 0 && html`<button class="primary" onClick=${() => check({ repair: true }, "Repaired.")}>Repair</button>`}</div><//>`;
}

const BACKUPS = 8;

function Backups({ advice, last }) {
  const [offset, setOffset] = useState(0);
  const from = useData((signal) => get("/backups", { limit: BACKUPS, offset }, { signal }), [offset]);
  const make = () => act("The backup is written and verified.", () => post("/backup", {}), { after: () => { setOffset(0); from.reload(); } });
  return html`<${Panel} title="Backups">
    ${advice.map((one) => html`<p class="note"><${Prose} text=${one} /></p>`)}
    <${Loaded} from=${from}>${(found) => html`<${Facts} rows=${[["Last backup", last ? html`<${Time} at=${last} />` : "none yet"], ["In the folder", found.total ? `${many(found.total, "file")}, ${bytes(found.sizeBytes)}` : null], ["Folder", html`<code>${found.folder}</code>`]]} />
      ${found.backups.length ? html`<ul class="plain rows">${found.backups.map((one) => html`<li class="file-row" key=${one.file}><code>${one.file}</code>${one.last ? html`<${Badge} tone="good">last<//>` : null}${one.kind === "snapshot" ? html`<${Badge}>with settings<//>` : null}<span class="num">${bytes(one.sizeBytes)}</span><${Time} at=${one.at} /></li>`)}</ul>` : null}
      <${Pager} total=${found.total} offset=${offset} limit=${BACKUPS} onMove=${setOffset} />`}<//>
    <p class="note">A backup is a copy of the whole store, checked by opening it before it gets its name. <code>vestige restore</code> brings one back.</p>
    <div class="actions"><button onClick=${make}>Back up now</button></div><//>`;
}

function Sync() {
  const from = useData((signal) => get("/peers", {}, { signal }), []);
  return html`<${Panel} title="Sync"><${Loaded} from=${from}>${({ at, folder, peers }) => at || peers.length ? html`<${Facts} rows=${[["Last sync", at && html`<${Time} at=${at} />`], ["Folder", folder && html`<code>${folder}</code>`]]} />
    ${peers.length ? html`<ul class="plain rows">${peers.map((one) => html`<li class="file-row" key=${one.node}><code>${one.node}</code>${one.refused ? html`<${Badge} tone="warn">refused<//>` : null}<${Time} at=${one.at} />${one.refused ? html`<p class="note">${one.refused}</p>` : null}</li>`)}</ul>` : html`<p class="note">No other installation has written a file there yet.</p>`}` : html`<p class="note">Not synchronised with another machine. <code>vestige sync FOLDER</code> does it through a folder that both see.</p>`}<//><//>`;
}

// A revoked key never comes back: it may be known to others. So this asks first, and names the key.
function Revoke({ one, onClose, after }) {
  const revoke = () => act(`The key “${one.label}” is revoked.`, () => api("DELETE", `/keys/${one.id}`, {}), { after }).then(onClose);
  return html`<${Dialog} title=${`Revoke the key “${one.label}”?`} onClose=${onClose}>
    <div class="form"><p>Every client that uses it is refused from now on. It may ${one.permissions.join(", ")} ${one.scopes?.length ? html`in <code>${one.scopes.join(", ")}</code>` : "everywhere"} and was ${one.lastUsed ? html`used <${Time} at=${one.lastUsed} />` : "never used"}.</p>
    <p>This cannot be undone, because others may know a key that had to be revoked. Create a new one instead.</p>
    ${one.label === session.value.label && html`<p class="state failed" role="alert">You are logged in with this key: revoking it logs you out.</p>`}
    <div class="actions"><button class="danger" onClick=${revoke}>Revoke “${one.label}”</button><button onClick=${onClose}>Cancel</button></div></div><//>`;
}

function Keys() {
  const from = useData((signal) => get("/keys", {}, { signal }), []);
  const [made, setMade] = useState(null);
  const [ending, setEnding] = useState(null);
  const create = async (event) => {
    event.preventDefault();
    const { label, level, scopes } = event.target.elements;
    const permissions = { read: ["read"], write: ["read", "write"], admin: ["read", "write", "admin"] }[level.value];
    const limits = scopes.value.split(",").map((one) => one.trim()).filter(Boolean);
    const answer = await act("The key is made.", () => post("/keys", { label: label.value, permissions, scopes: limits.length ? limits : null }, { quiet: true }), { after: from.reload });
    if (answer) setMade(answer);
  };
  return html`<${Panel} title="Keys"><${Loaded} from=${from}>${({ keys }) => keys.length ? html`<ul class="plain rows">${keys.map((one) => html`<li class="key-row"><span><strong><bdi>${one.label}</bdi></strong><br /><small class="muted">${one.permissions.join(", ")}${one.scopes?.length ? ` · ${one.scopes.join(", ")}` : ""}</small></span><span class="muted">${one.lastUsed ? html`used <${Time} at=${one.lastUsed} />` : "never used"}</span>
      <button class="danger" onClick=${() => setEnding(one)}>Revoke…</button></li>`)}</ul>` : html`<p class="note">There is no key yet.</p>`}<//>
    ${ending && html`<${Revoke} one=${ending} onClose=${() => setEnding(null)} after=${from.reload} />`}
    ${made && html`<div class="secret" role="status"><p>Save it now; it is not shown again:</p><code>${made.key}</code> <button onClick=${() => setMade(null)}>I have saved it</button></div>`}
    <form class="filters" onSubmit=${create}><label class="field"><span>Label</span><input name="label" required /></label><label class="field"><span>May</span><select name="level"><option value="read">read</option><option value="write" selected>write</option><option value="admin">admin</option></select></label><label class="field"><span>Only scopes</span><input name="scopes" placeholder="all" /></label><button>Create</button></form><//>`;
}

function CleanUp() {
  const [limit, setLimit] = useState("0.1");
  const [plan, setPlan] = useState(null);
  const archives = useData((signal) => get("/archive", { limit: 5 }, { signal }), []);
  const preview = () => act((answer) => answer.message, () => post("/gc", { min_retention: Number(limit), dry_run: true })).then((answer) => answer && setPlan(answer));
  const run = () => act((answer) => answer.message, () => post("/gc", { min_retention: Number(limit), dry_run: false }), { after: () => { setPlan(null); archives.reload(); }, undo: (answer) => post(`/archive/${answer.archiveId}/undo`, {}) });
  return html`<${Panel} title="Clean up"><p class="note">Faded memories go to the archive; nothing is deleted.</p>
    <div class="filters"><${Choice} label="Retention below" value=${limit} options=${[["0.1", "10%"], ["0.2", "20%"], ["0.3", "30%"], ["0.5", "50%"]]} onChange=${(value) => { setLimit(value); setPlan(null); }} /><button onClick=${preview}>Preview</button></div>
    ${plan && html`<p><strong>${many(plan.candidateCount, "memory", "memories")}</strong> of ${number(plan.memories)} would be archived.</p><ul class="plain rows">${plan.sample.slice(0, 8).map((one) => html`<li class="memory-row"><${Link} to=${`/memories/${one.id}`}><bdi>${one.contentPreview ?? "suppressed"}</bdi><//><span class="num">${percent(one.retention)}</span></li>`)}</ul>${plan.candidateCount > 0 && html`<div class="actions"><button class="primary" onClick=${run}>Archive ${number(plan.candidateCount)}</button></div>`}`}
    <${Loaded} from=${archives}>${({ archives: all }) => all.length ? html`<h3>Archive</h3><ul class="plain rows">${all.map((one) => html`<li class="memory-row"><span>${many(one.count, "memory", "memories")} <${Time} at=${one.archivedAt} /></span><button onClick=${() => act("Restored.", () => post(`/archive/${one.id}/undo`, {}), { after: archives.reload })}>Restore</button></li>`)}</ul>` : null}<//><//>`;
}

export function Operate() {
  const from = useData((signal) => get("/stats", {}, { signal }), []);
  const runs = may("admin") && seesAll();
  return html`<${Page} title="Operate" lead="The store and everything around it." twin="/api/v1/stats">
    <${Loaded} from=${from} rows=${8}>${(stats) => html`
      ${stats.warnings.map((one) => html`<p class="state failed" role="alert">${one}</p>`)}
      <div class="grid two"><div class="stack">
        <${Panel} title="Store"><${Facts} rows=${[["Status", html`<${Badge} tone=${stats.status === "healthy" ? "good" : "warn"}>${stats.status}<//>`], ["Version", stats.version], ["Store", stats.store && html`<code>${stats.store}</code>`], ["Data", stats.dataDir && html`<code>${stats.dataDir}</code>`], ["Size", stats.sizeBytes && bytes(stats.sizeBytes)], ["Memories", number(stats.totalMemories)], ["Links", number(stats.connections)], ["Archived", number(stats.archived)], ["Superseded", number(stats.superseded)], ["Oldest", stats.oldest && when(stats.oldest)], ["Newest", stats.newest && when(stats.newest)], ["Read-only", stats.readOnly ? "yes" : "no"], ["Kernel", stats.kernel]]} /><//>
        <${Panel} title="Model and index"><${Facts} rows=${[["Model", stats.embeddingModel.name], ["State", stats.embeddingModel.state], ["Detail", stats.embeddingModel.detail], ["Dimensions", stats.embeddingModel.dimension], ["With vectors", `${number(stats.withEmbeddings)} of ${number(stats.totalMemories)} (${percent(stats.embeddingCoverage)})`], ["Progress", percent(stats.embeddingModel.progress)]]} /><//>
        ${stats.autopilot && html`<${Panel} title="Processes"><ul class="plain rows">${stats.processes.map((one) => html`<li class="change"><span class="change-kind">process ${one.pid}</span><span class="change-what">${one.command}${one.server ? " · server" : ""}</span><${Time} at=${one.since} /></li>`)}</ul>
          <${Facts} rows=${[["Autopilot", stats.autopilot.running ? "running" : "off"], ["Events handled", number(stats.autopilot.handled)], ["Events waiting", number(stats.autopilot.waiting)], ["Events failed", number(stats.autopilot.failed)]]} /><//>`}
        <${Panel} title="By scope"><${Bars} label="Memories by scope" rows=${Object.entries(stats.byScope).map(([name, count]) => ({ name, count, to: `/memories?scope=${encodeURIComponent(name)}` }))} /><//>
      </div><div class="stack">${runs && html`<${Doctor} /><${Backups} advice=${stats.recommendations.filter((one) => one.includes("backup"))} last=${stats.lastBackup} /><${Sync} /><${Keys} />`}${may("write") && html`<${CleanUp} />`}
        ${!runs && html`<p class="note">Processes, doctor, backups and keys need a key with the permission admin and access to everything.</p>`}</div></div>`}<//><//>`;
}
