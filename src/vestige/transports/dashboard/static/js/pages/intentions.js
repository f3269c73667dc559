// Intentions: what to do later, and what triggers it.

import { act, api, get, html, may, post, setQuery, useData, useState, words } from "../lib.js";
import { Badge, Choice, Dialog, Empty, Loaded, Page, Panel, Time } from "../ui.js";
import { useLive } from "../live.js";

const STATUSES = [["active", "active"], ["due", "due"], ["snoozed", "snoozed"], ["fulfilled", "done"], ["cancelled", "cancelled"], ["all", "all"]];

function New({ onClose, reload }) {
  const submit = async (event) => {
    event.preventDefault();
    const { what, minutes, topic, priority } = event.target.elements;
    const trigger = topic.value ? { type: "context", topic: topic.value } : minutes.value ? { type: "time", in_minutes: Number(minutes.value) } : null;
    if (await act("Set.", () => post("/intentions", { description: what.value, trigger, priority: priority.value }), { after: reload, undo: (answer) => api("DELETE", `/intentions/${answer.intentionId ?? answer.id ?? answer.intention?.id}`, {}) })) onClose();
  };
  return html`<${Dialog} title="New intention" onClose=${onClose}><form class="form" onSubmit=${submit}>
    <label class="field"><span>What to do</span><input name="what" required /></label>
    <label class="field"><span>In minutes</span><input name="minutes" type="number" min="1" /></label>
    <label class="field"><span>or when about the topic</span><input name="topic" /></label>
    <label class="field"><span>Priority</span><select name="priority"><option>normal</option><option>high</option><option>critical</option><option>low</option></select></label>
    <div class="actions"><button class="primary">Set</button></div></form><//>`;
}

export function Intentions({ query }) {
  const status = query.status ?? "active";
  const from = useData((signal) => get("/intentions", { limit: 100, filter_status: status }, { signal }), [status]);
  const [open, setOpen] = useState(false);
  useLive(["IntentionTriggered"], from.reload);
  const change = (one, text, args, back) => act(text, () => api("PATCH", `/intentions/${one.id}`, args), { after: from.reload, undo: back && (() => api("PATCH", `/intentions/${one.id}`, back)) });
  return html`<${Page} title="Intentions" lead="What your agents will be reminded of, and when." twin=${`/api/v1/intentions?filter_status=${status}`} actions=${may("write") && html`<button class="primary" onClick=${() => setOpen(true)}>New</button>`}>
    <div class="filters"><${Choice} label="Status" value=${status} options=${STATUSES} onChange=${(value) => setQuery({ status: value })} /></div>
    <${Loaded} from=${from}>${({ intentions }) => intentions.length ? html`<ul class="plain rows intentions">${intentions.map((one) => html`<li class="intention"><div><p class="intention-what"><bdi>${one.description}</bdi></p><p class="note"><${Badge} tone=${one.status === "due" || one.isOverdue ? "warn" : ""}>${one.isOverdue ? "overdue" : words(one.status)}<//> <${Badge}>${one.priorityName}<//> ${one.when} · set <${Time} at=${one.createdAt} /></p></div>
      ${may("write") && !["fulfilled", "cancelled"].includes(one.status) && html`<div class="actions"><button onClick=${() => change(one, "Done.", { status: "fulfilled" }, { status: "active" })}>Done</button><button onClick=${() => change(one, "Snoozed for a day.", { status: "snoozed", snooze_minutes: 1440 }, { status: "active" })}>Tomorrow</button><button onClick=${() => change(one, "Cancelled.", { status: "cancelled" }, { status: "active" })}>Cancel</button></div>`}</li>`)}</ul>` : html`<${Empty} title="No such intention.">An agent sets one with the tool “intention”; or set one here.<//>`}<//>
    ${open && html`<${New} onClose=${() => setOpen(false)} reload=${from.reload} />`}<//>`;
}
