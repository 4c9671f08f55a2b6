"use strict";
// Adds search, scrubbing and folding to a page that is complete without them. Asks nothing of any network.
(() => {
  const byId = (id) => document.getElementById(id);
  const tools = byId("tools");
  const items = [...document.querySelectorAll(".found > li")];
  const ticks = items.filter((item) => /^(r\d+)?t\d+$/.test(item.id));
  const find = byId("find");
  const scrub = byId("tick");
  const at = byId("at");
  const fold = byId("fold");
  let chosen = null;

  const choose = (index) => {
    if (chosen) chosen.classList.remove("at");
    chosen = ticks[index];
    chosen.classList.add("at");
    const section = chosen.closest("details");
    section.open = true;
    chosen.hidden = false;
    chosen.scrollIntoView({ block: "center" });
    at.value = "tick " + chosen.id.replace(/^.*t/, "") + ", " + (index + 1) + " of " + ticks.length;
  };

  const search = () => {
    const words = find.value.toLowerCase();
    let found = 0;
    for (const item of items) {
      const has = words === "" || item.textContent.toLowerCase().includes(words);
      item.hidden = !has;
      if (has) found += 1;
    }
    at.value = words === "" ? "" : found + " of " + items.length + " found";
  };

  tools.addEventListener("submit", (event) => event.preventDefault());
  find.addEventListener("input", search);
  scrub.addEventListener("input", () => choose(Number(scrub.value)));
  fold.addEventListener("click", () => {
    const sections = [...document.querySelectorAll("details")];
    const open = sections.some((section) => section.open);
    for (const section of sections) section.open = !open;
    fold.textContent = open ? "Unfold all" : "Fold all";
  });
  scrub.max = String(Math.max(0, ticks.length - 1));
  scrub.disabled = ticks.length === 0;
  tools.hidden = false;
})();
