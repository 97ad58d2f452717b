// The list of queries: search, filters, sorting, keys. Without this script the page shows every
// query, hardest first. Texts are compared and never read as markup, and nothing is fetched.
"use strict";
(() => {
  const list = document.querySelector(".queries");
  const controls = document.querySelector(".controls");
  if (!list || !controls) return;
  const search = controls.querySelector("input");
  const selects = [...controls.querySelectorAll("select")];
  const count = controls.querySelector("output");
  const outcomes = ["perfect", "partial", "missed", "nothing retrieved", "no ground truth"];
  const queries = [...list.children].map((element, place) => ({
    element,
    place,
    facets: element.dataset.facets.split(" "),
    isMiss: !["perfect", "no ground truth"].includes(element.dataset.status),
  }));
  const sorted = { column: -1, down: false };

  const plain = (text) => text.normalize("NFC").toLowerCase();

  // What the search looks at, gathered when it is first asked for.
  function textOf(query) {
    if (query.text === undefined) {
      const parts = query.element.querySelectorAll(".question, .tag, .about, .told div");
      query.text = plain([...parts].map((part) => part.textContent).join("\n"));
    }
    return query.text;
  }

  // Every word must be there, wherever.
  function apply() {
    const words = plain(search.value).split(/\s+/).filter(Boolean);
    const chosen = selects.map((select) => select.value);
    let shown = 0;
    for (const query of queries) {
      const fits =
        chosen.every((value, i) => value === "" || value === query.facets[i]) &&
        words.every((word) => textOf(query).includes(word));
      if (query.element.hidden === fits) query.element.hidden = !fits;
      shown += fits;
    }
    const said = controls.dataset.count;
    const numbers = { "{shown}": shown, "{total}": queries.length };
    const counted = said.replace(/\{shown\}|\{total\}/g, (name) => numbers[name].toLocaleString());
    count.textContent = shown ? counted : `${counted}. ${controls.dataset.none}`;
  }

  function valueOf(query, column) {
    if (column === 0) return outcomes.indexOf(query.element.dataset.status);
    if (column === 1) return query.element.querySelector(".question").textContent;
    const value = query.element.querySelectorAll("summary data")[column - 2].value;
    return value === "" ? NaN : Number(value);
  }

  function compare(a, b) {
    if (typeof a === "string") return a.localeCompare(b, undefined, { numeric: true });
    return a - b;
  }

  // What has no number stays at the end, whichever way; equals stay hardest first.
  function sort() {
    const { column, down } = sorted;
    if (column >= 0) for (const query of queries) query.value = valueOf(query, column);
    const lacks = (query) => Number.isNaN(query.value);
    queries.sort((a, b) => {
      if (column < 0) return a.place - b.place;
      if (lacks(a) || lacks(b)) return lacks(a) - lacks(b) || a.place - b.place;
      return (down ? -1 : 1) * compare(a.value, b.value) || a.place - b.place;
    });
    const lines = document.createDocumentFragment();
    for (const query of queries) lines.append(query.element);
    list.append(lines);
    headings.forEach((heading, i) => {
      heading.removeAttribute("data-sorted");
      heading.setAttribute("aria-pressed", String(i === column));
      if (i === column) heading.dataset.sorted = down ? "down" : "up";
    });
  }

  const headings = [...document.querySelectorAll(".columns span")].map((place, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = place.textContent;
    button.addEventListener("click", () => {
      sorted.down = sorted.column === column && !sorted.down;
      sorted.column = column;
      sort();
      remember();
    });
    place.replaceChildren(button);
    return button;
  });

  // What is chosen stands in the address, behind the #, so that a link leads back to it.
  function remember() {
    const state = new URLSearchParams();
    if (search.value) state.set("q", search.value);
    selects.forEach((select, i) => select.value && state.set(`f${i}`, select.value));
    if (sorted.column >= 0) state.set(sorted.down ? "down" : "up", sorted.column);
    history.replaceState(null, "", `#${state}`);
  }

  function restore() {
    const state = new URLSearchParams(location.hash.slice(1));
    search.value = state.get("q") ?? "";
    selects.forEach((select, i) => {
      select.value = state.get(`f${i}`) ?? "";
      if (select.selectedIndex < 0) select.value = "";
    });
    const column = Number(state.get("down") ?? state.get("up") ?? -1);
    sorted.column = Number.isInteger(column) && column < headings.length ? column : -1;
    sorted.down = state.has("down");
    if (sorted.column >= 0 || queries.some((query, i) => query.place !== i)) sort();
    apply();
  }

  function reset() {
    search.value = "";
    for (const select of selects) select.value = "";
    sorted.column = -1;
    update();
    sort();
  }

  function update() {
    apply();
    remember();
  }

  // Open the next query, or the one before, that lost something and is shown.
  function go(step) {
    const misses = queries.filter((query) => query.isMiss && !query.element.hidden);
    const here = document.activeElement?.closest?.(".query");
    const at = misses.findIndex((query) => query.element === here);
    const next = misses[at < 0 ? (step > 0 ? 0 : misses.length - 1) : at + step];
    if (!next) return;
    next.element.open = true;
    next.element.querySelector("summary").focus({ preventScroll: true });
    next.element.scrollIntoView({ block: "start" });
  }

  const actions = { reset, next: () => go(1), previous: () => go(-1) };
  for (const button of controls.querySelectorAll("button")) {
    button.addEventListener("click", actions[button.dataset.do]);
  }
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.closest("input, select, textarea")) return;
    if (event.key === "n") go(1);
    if (event.key === "p") go(-1);
  });
  search.addEventListener("input", update);
  for (const select of selects) select.addEventListener("change", update);

  // Paper cannot be unfolded.
  let unfolded = [];
  addEventListener("beforeprint", () => {
    unfolded = [...document.querySelectorAll("details:not([open])")];
    for (const one of unfolded) one.open = true;
  });
  addEventListener("afterprint", () => {
    for (const one of unfolded) one.open = false;
  });

  addEventListener("hashchange", restore);
  controls.hidden = false;
  restore();
})();
