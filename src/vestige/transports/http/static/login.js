// The login page: sends the key once, keeps nothing of it, and shows who is logged in.

const form = document.getElementById("login");
const failure = document.getElementById("failure");
const session = document.getElementById("session");
const logout = document.getElementById("logout");
const asked = new URLSearchParams(location.search);

function show(who) {
  form.hidden = who !== null;
  session.hidden = who === null;
  if (who === null) {
    document.getElementById("key").focus();
    return;
  }
  const places = [...(who.scopes ?? []), ...(who.domains ?? [])];
  document.getElementById("label").textContent = who.label;
  document.getElementById("permissions").textContent = who.permissions.join(", ");
  document.getElementById("reach").textContent = places.length ? places.join(", ") : "everything";
  logout.hidden = who.csrf === "";
}

// Back to the page that asked for the login: a path of this server only.
function goOn(who) {
  const next = asked.get("next") ?? "/";
  if (/^\/(?![/\\])/.test(next)) location.replace(next);
  else show(who);
}

function fail(text) {
  failure.textContent = text;
  failure.hidden = false;
}

async function logIn(key) {
  const response = await fetch("/login", {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ api_key: key }),
  });
  const answer = await response.json();
  if (response.ok) goOn(answer);
  else if (response.status === 401) fail("Unknown, revoked or expired API key.");
  else fail([answer.detail, answer.hint].filter(Boolean).join(" "));
}

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  failure.hidden = true;
  const field = document.getElementById("key");
  try {
    await logIn(field.value);
  } catch {
    fail("The server does not answer.");
  }
  field.value = "";
});

logout.addEventListener("submit", async (event) => {
  event.preventDefault();
  failure.hidden = true;
  try {
    const response = await fetch("/logout", { method: "POST" });
    show(null);
    if (!response.ok) fail((await response.json()).detail);
  } catch {
    fail("The server does not answer.");
  }
});

const response = await fetch("/login/session");
if (response.ok) show(await response.json());
else if (asked.has("used")) {
  fail("This link was used already, or is older than a minute. Run “vestige dashboard” again, or log in with a key.");
}
