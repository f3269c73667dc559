// Settings: of this browser, of your login, and those of the server with where each value comes from.

import { act, get, html, may, number, post, seesAll, session, setQuery, useData, useStore } from "../lib.js";
import { Badge, Empty, Facts, Loaded, Page, Panel, Prose } from "../ui.js";
import { previewPulse } from "../live.js";

const SOURCES = { default: "default", file: "vestige.toml", environment: "environment", flag: "command line" };

function shown(value) {
  return value === "" ? html`<span class="muted">empty</span>` : html`<code>${String(value)}</code>`;
}

function Row({ one }) {
  return html`<tr title=${one.description}><th scope="row"><code>${one.name}</code></th><td class="setting-value">${shown(one.value)}</td>
    <td><${Badge} tone=${one.source === "default" ? "" : "good"}>${SOURCES[one.source]}<//></td><td class="setting-about"><${Prose} text=${one.description} /></td></tr>`;
}

function Server({ query }) {
  const from = useData((signal) => get("/settings", {}, { signal }), []);
  const wanted = (query.q ?? "").trim().toLowerCase();
  const set = query.show !== "all";
  return html`<${Panel} title="Settings of the server" extra=${html`<input type="search" aria-label="Filter the settings" placeholder="Filter" value=${query.q ?? ""} onInput=${(event) => setQuery({ q: event.target.value }, { replace: true })} />
      <label class="check"><input type="checkbox" checked=${!set} onChange=${(event) => setQuery({ show: event.target.checked ? "all" : "" }, { replace: true })} /> defaults too</label>`}>
    <${Loaded} from=${from} rows=${6}>${({ file, fileExists, settings }) => {
      const rows = settings.filter((one) => (!set || one.source !== "default") && `${one.name} ${one.description}`.toLowerCase().includes(wanted));
      return html`<p class="note">File: <code>${file}</code>${fileExists ? "" : ", which does not exist"}. The environment overrides it, and the command line overrides both. ${number(settings.filter((one) => one.source !== "default").length)} of ${number(settings.length)} settings are not at their default. Changes take effect when the server starts again.</p>
        ${rows.length ? html`<table class="settings"><thead><tr><th scope="col">setting</th><th scope="col">value</th><th scope="col">from</th><th scope="col" class="setting-about">meaning</th></tr></thead><tbody>${rows.map((one) => html`<${Row} one=${one} key=${one.name} />`)}</tbody></table>`
          : html`<${Empty} title=${wanted ? "No such setting." : "Every setting has its default."} />`}`;
    }}<//><//>`;
}

export function Settings({ query }) {
  const who = useStore(session);
  const limits = [...(who.scopes ?? []), ...(who.domains ?? [])];
  const sees = may("admin") && seesAll();
  return html`<${Page} title="Settings" lead="Of this browser, of your login, and of the server." twin=${sees ? "/api/v1/settings" : null}>
    <div class="grid three"><${Panel} title="Cognitive operations"><p>Toasts tell what the memory does while you work: dreams, new links, forgetting.</p>
      <div class="actions"><button class="primary" onClick=${previewPulse}>Preview Pulse</button>
      ${may("write") && html`<button onClick=${() => act("Dreamed.", () => post("/dream", {}))}>Dream now</button><button onClick=${() => act("Consolidated.", () => post("/consolidate", {}))}>Consolidate now</button>`}</div><//>
      <${Panel} title="Your login"><${Facts} rows=${[["Key", who.label], ["May", who.permissions.join(", ")], ["Sees", limits.join(", ") || "everything"], ["Time zone", Intl.DateTimeFormat().resolvedOptions().timeZone]]} /><//>
      <${Panel} title="Appearance"><p>The theme follows your system until you choose one with ◐ above.</p><div class="actions"><button onClick=${() => { localStorage.removeItem("vestige-theme"); delete document.documentElement.dataset.theme; }}>Follow the system</button></div><//></div>
    <div class="after">${sees ? html`<${Server} query=${query} />` : html`<${Panel} title="Settings of the server"><${Empty} title="Your key does not see them.">They need a key with the permission admin and access to everything; <code>vestige config</code> shows them on the machine of the server.<//><//>`}</div><//>`;
}
