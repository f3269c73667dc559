// Draws diagrams with the copy of Mermaid beside this file. It is large, so only pages with a diagram load it.
const own = document.currentScript.src;
const diagrams = document.querySelectorAll("pre.diagram");
if (diagrams.length) {
  const script = document.createElement("script");
  script.src = new URL("mermaid.min.js", own);
  script.onload = () => {
    const dark = document.body.getAttribute("data-md-color-scheme") === "slate";
    mermaid.initialize({ startOnLoad: false, securityLevel: "strict", theme: dark ? "dark" : "neutral" });
    diagrams.forEach((pre) => {
      const div = document.createElement("div");
      div.className = "diagram";
      div.textContent = pre.textContent;
      pre.replaceWith(div);
    });
    mermaid.run({ querySelector: "div.diagram" });
  };
  document.head.append(script);
}
