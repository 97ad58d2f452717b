// The labelling page: a pair at a time, answered by keys or buttons. Texts are shown as text and
// never read as markup; nothing is fetched, and nothing is sent.
"use strict";
(() => {
  const at = (id) => document.getElementById(id);
  const data = JSON.parse(at("data").textContent);
  const asked = data.rows.flatMap((row, place) =>
    row.predicted !== null && row.relevant === null ? [{ row, shared: data.shared[place] }] : [],
  );
  const acting = new RegExp(data.acting, "gu");
  const store = ["krag-eval", data.page, ...data.settles].join(" ");
  const root = document.documentElement;
  let name = "";
  let said = {}; // by the digest of a pair: what was said of it, and when
  let done = []; // for undo: where, and what was said there before
  let place = 0;
  let isDownloaded = true;

  function keep() {
    try {
      const kept = { name, said, language: root.lang, marks: !root.classList.contains("unmarked") };
      localStorage.setItem(store, JSON.stringify(kept));
    } catch {
      at("unkept").hidden = false;
    }
  }

  function kept() {
    try {
      return JSON.parse(localStorage.getItem(store));
    } catch {
      return null;
    }
  }

  // A character that would act instead of showing is spelled out; line ends and tabs are layout.
  const visible = (text) =>
    text.replace(acting, (one) =>
      "\n\t\r".includes(one) ? one : `\\u${one.codePointAt(0).toString(16).padStart(4, "0")}`,
    );

  // Spans count characters, of which some take two places in a string here.
  function paragraph(text, spans) {
    const made = document.createElement("p");
    made.dir = "auto";
    const letters = [...text];
    let from = 0;
    for (const [start, stop] of spans) {
      const mark = document.createElement("mark");
      mark.textContent = visible(letters.slice(start, stop).join(""));
      made.append(visible(letters.slice(from, start).join("")), mark);
      from = stop;
    }
    made.append(visible(letters.slice(from).join("")));
    return made;
  }

  function show() {
    const isEnd = place >= asked.length;
    const answers = asked.map(({ row }) => said[row.pair]).filter(Boolean);
    const unsure = answers.filter(([relevant]) => relevant === null).length;
    at("bar").value = answers.length;
    at("n").textContent = answers.length;
    at("unsure").hidden = unsure === 0;
    at("unsure").querySelector("b").textContent = unsure;
    at("who").textContent = name;
    at("pair").hidden = isEnd;
    at("end").hidden = !isEnd;
    const words = { true: "yes", false: "no", null: "skip" };
    const now = isEnd ? undefined : words[String(said[asked[place].row.pair]?.[0])];
    for (const word of Object.values(words)) {
      button(word).setAttribute("aria-pressed", String(word === now));
      button(word).disabled = isEnd;
    }
    button("marks").setAttribute("aria-pressed", String(!root.classList.contains("unmarked")));
    if (!isEnd) {
      const { row, shared } = asked[place];
      const several = row.actual === null ? [] : (row.actual.any_of ?? [row.actual]);
      at("question").textContent = visible(row.question);
      at("wanted").hidden = at("ask-passage").hidden = several.length === 0;
      at("ask-question").hidden = several.length > 0;
      const texts = several.map((text, i) => paragraph(text, shared[i + 1]));
      at("wanted").lastChild.replaceChildren(...texts);
      at("found").lastChild.replaceChildren(paragraph(row.predicted, shared[0] ?? []));
      at("wanted").scrollTop = at("found").scrollTop = 0;
    }
    // Away from a button that was pressed, so that a space answers and does not press it again.
    (isEnd ? at("end") : at("pair")).querySelector("h2").focus({ preventScroll: true });
  }

  function open() {
    at("start").hidden = true;
    at("work").hidden = false;
    place = asked.findIndex(({ row }) => !said[row.pair]);
    if (place < 0) place = asked.length;
    show();
  }

  function answer(relevant) {
    if (place >= asked.length) return;
    const { pair } = asked[place].row;
    const before = said[pair];
    done.push([place, before]);
    said[pair] = [relevant, new Date().toISOString()];
    isDownloaded = false;
    keep();
    // What was passed over comes again at the end; the end, where the last answer is given.
    const left = asked.findIndex(({ row }) => !said[row.pair]);
    place += 1;
    if (left < 0 && !before) place = asked.length;
    else if (left >= 0 && place === asked.length) place = left;
    show();
  }

  function undo() {
    if (done.length === 0) return;
    let before;
    [place, before] = done.pop();
    const { pair } = asked[place].row;
    if (before) said[pair] = before;
    else delete said[pair];
    isDownloaded = false;
    keep();
    show();
  }

  function go(step) {
    place = Math.min(Math.max(place + step, 0), asked.length);
    show();
  }

  function download() {
    const lines = data.rows.map((row) => {
      const [relevant, time] = said[row.pair] ?? [row.relevant, null];
      const settles = data.settles.length ? { settles: data.settles } : {};
      return `${JSON.stringify({ ...row, relevant, labeller: name, time, ...settles })}\n`;
    });
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob(lines, { type: "application/jsonl" }));
    link.download = `labels-${name.replace(/[^\p{L}\p{N}_-]+/gu, "-")}.jsonl`;
    link.click();
    isDownloaded = true;
  }

  // A file of this page and of one labeller, whose answers are gone on with.
  function read(text) {
    const rows = text.split("\n").filter(Boolean).map(JSON.parse);
    const pairs = new Set(data.rows.map((row) => row.pair));
    const isOurs = (row) =>
      row.page === data.page && row.labeller === rows[0].labeller && pairs.has(row.pair) &&
      String(row.settles ?? []) === String(data.settles);
    if (rows.length !== pairs.size || !rows.every(isOurs)) throw new Error("another page");
    name = rows[0].labeller;
    said = {};
    for (const row of rows) if (row.time) said[row.pair] = [row.relevant, row.time];
    keep();
    open();
  }

  function anew() {
    const words = at("sure").querySelector(`[lang="${root.lang}"]`).textContent;
    if (!confirm(words)) return;
    name = "";
    said = {};
    done = [];
    isDownloaded = true;
    keep();
    at("work").hidden = true;
    at("start").hidden = false;
    at("name").focus();
  }

  function marks() {
    root.classList.toggle("unmarked");
    keep();
    show();
  }

  const actions = {
    yes: () => answer(true), no: () => answer(false), skip: () => answer(null),
    back: () => go(-1), next: () => go(1), undo, marks, download, anew,
  };
  const keys = {
    1: "yes", y: "yes", 0: "no", n: "no", s: "skip", " ": "skip", u: "undo", m: "marks", d: "download",
    ArrowLeft: "back", Backspace: "back", ArrowRight: "next",
  };
  const button = (action) => document.querySelector(`[data-do="${action}"]`);

  for (const one of document.querySelectorAll("[data-do]")) {
    one.addEventListener("click", actions[one.dataset.do]);
  }
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.repeat || at("work").hidden) return;
    if (event.target.closest("button") && event.key === " ") return;
    // A Korean keyboard writes ㅛ where y is; while it composes a syllable, only the place is known.
    const isKorean = event.key === "Process" || /^[ㄱ-ㅣ]$/.test(event.key);
    const key = isKorean ? event.code.replace("Key", "").toLowerCase() : event.key;
    const action = keys[key.length === 1 ? key.toLowerCase() : key];
    if (!action) return;
    event.preventDefault();
    actions[action]();
  });
  for (const one of document.querySelectorAll("[data-language]")) {
    one.addEventListener("click", () => {
      root.lang = one.dataset.language;
      keep();
    });
  }
  at("start").addEventListener("submit", (event) => {
    event.preventDefault();
    name = at("name").value.trim();
    if (!name) return;
    keep();
    open();
  });
  at("file").addEventListener("change", async () => {
    try {
      at("strange").hidden = true;
      read(await at("file").files[0].text());
    } catch {
      at("strange").hidden = false;
    }
  });
  addEventListener("beforeunload", (event) => {
    if (!isDownloaded) event.preventDefault();
  });

  const before = kept();
  if (before) {
    root.lang = before.language;
    root.classList.toggle("unmarked", !before.marks);
    ({ name, said } = before);
  }
  if (name) open();
  else at("start").hidden = false;
})();
