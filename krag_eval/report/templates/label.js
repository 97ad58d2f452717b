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
  const UNDONE = "undone";
  let name = "";
  let answers = new Map(); // by labeller, then by the digest of a pair: what was said, and when
  let forgotten = ""; // when somebody started anew
  let done = []; // for undo: where, and what was said there before
  let place = 0;
  let isDownloaded = true;
  let last = 0;

  // Later than every answer before it, whatever the clock does.
  function now() {
    last = Math.max(Date.now(), last + 1);
    return new Date(last).toISOString();
  }

  function answerOf({ pair }) {
    const answer = answers.get(name)?.get(pair);
    return answer && answer[0] !== UNDONE ? answer : undefined;
  }

  function say({ pair }, relevant) {
    if (!answers.has(name)) answers.set(name, new Map());
    answers.get(name).set(pair, [relevant, now()]);
    isDownloaded = false;
    keep();
  }

  const isAnswer = (answer) =>
    Array.isArray(answer) && answer.length === 2 && typeof answer[1] === "string" &&
    [true, false, null, UNDONE].includes(answer[0]);
  const isNewer = (one, other) =>
    one[1] > other[1] || (one[1] === other[1] && String(one) > String(other));

  function written() {
    const byName = [...answers].map(([labeller, said]) => [labeller, Object.fromEntries(said)]);
    const marks = !root.classList.contains("unmarked");
    const kept = { name, forgotten, language: root.lang, marks };
    return JSON.stringify({ ...kept, answers: Object.fromEntries(byName) });
  }

  // What this browser keeps of the page, from this tab or another; null if that is nothing.
  function kept() {
    const text = localStorage.getItem(store);
    if (text === null) return null;
    try {
      const entry = { forgotten: "", ...JSON.parse(text) };
      // A page of an earlier version kept the answers of one labeller, as `said`.
      const each = Object.entries(entry.answers ?? { [entry.name]: entry.said });
      const byName = each.map(([labeller, said]) => [labeller, new Map(Object.entries(said))]);
      const texts = [entry.name, entry.forgotten, entry.language];
      const isWhole = byName.every(([, said]) => [...said.values()].every(isAnswer));
      if (!isWhole || !texts.every((one) => typeof one === "string")) throw new Error("damaged");
      return { ...entry, answers: new Map(byName) };
    } catch {
      at("damaged").hidden = false;
      localStorage.setItem(`${store} damaged`, text);
      localStorage.removeItem(store);
      return null;
    }
  }

  // Take in what another tab kept: of two answers the newer one, and none older than a start anew.
  function merge(stored) {
    const sides = [{ answers, forgotten }, stored];
    const since = sides.map((side) => side.forgotten).sort()[1];
    const merged = new Map();
    for (const side of sides) {
      for (const [labeller, said] of side.answers) {
        if (!merged.has(labeller)) merged.set(labeller, new Map());
        const newest = merged.get(labeller);
        for (const [pair, answer] of said) {
          if (side.forgotten < since && answer[1] <= since) continue;
          if (!newest.has(pair) || isNewer(answer, newest.get(pair))) newest.set(pair, answer);
        }
      }
    }
    if (forgotten < since) done = [];
    [answers, forgotten] = [merged, since];
  }

  // Whether another tab keeps all that this one knows.
  const holds = (stored) =>
    stored.forgotten === forgotten &&
    [...answers].every(([labeller, said]) =>
      [...said].every(
        ([pair, answer]) => String(stored.answers.get(labeller)?.get(pair)) === String(answer),
      ),
    );

  function keep() {
    try {
      const stored = kept();
      if (stored) merge(stored);
      localStorage.setItem(store, written());
      sessionStorage.setItem(store, name);
    } catch {
      at("unkept").hidden = false;
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
    const given = asked.map(({ row }) => answerOf(row)).filter(Boolean);
    const unsure = given.filter(([relevant]) => relevant === null).length;
    at("bar").value = given.length;
    at("n").textContent = given.length;
    at("unsure").hidden = unsure === 0;
    at("unsure").querySelector("b").textContent = unsure;
    at("who").textContent = name;
    at("pair").hidden = isEnd;
    at("end").hidden = !isEnd;
    const words = { true: "yes", false: "no", null: "skip" };
    const pressed = isEnd ? undefined : words[String(answerOf(asked[place].row)?.[0])];
    for (const word of Object.values(words)) {
      button(word).setAttribute("aria-pressed", String(word === pressed));
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
    place = asked.findIndex(({ row }) => !answerOf(row));
    if (place < 0) place = asked.length;
    show();
  }

  function answer(relevant) {
    if (place >= asked.length) return;
    const { row } = asked[place];
    const before = answerOf(row);
    done.push([place, before]);
    say(row, relevant);
    // What was passed over comes again at the end; the end, where the last answer is given.
    const left = asked.findIndex((one) => !answerOf(one.row));
    place += 1;
    if (left < 0 && !before) place = asked.length;
    else if (left >= 0 && place === asked.length) place = left;
    show();
  }

  function undo() {
    if (done.length === 0) return;
    let before;
    [place, before] = done.pop();
    say(asked[place].row, before ? before[0] : UNDONE);
    show();
  }

  function go(step) {
    place = Math.min(Math.max(place + step, 0), asked.length);
    show();
  }

  function download() {
    const lines = data.rows.map((row) => {
      const [relevant, time] = answerOf(row) ?? [row.relevant, null];
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
    const said = rows.filter((row) => row.time).map((row) => [row.pair, [row.relevant, row.time]]);
    if (!said.every(([, answer]) => isAnswer(answer))) throw new Error("damaged");
    name = rows[0].labeller;
    merge({ answers: new Map([[name, new Map(said)]]), forgotten });
    keep();
    open();
  }

  function anew() {
    const words = at("sure").querySelector(`[lang="${root.lang}"]`).textContent;
    if (!confirm(words)) return;
    name = "";
    answers = new Map();
    forgotten = now();
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

  // Another tab has written, or all that was kept is gone.
  addEventListener("storage", ({ key }) => {
    if (key !== store && key !== null) return;
    try {
      const stored = kept();
      if (stored) merge(stored);
      if (!stored || !holds(stored)) keep();
    } catch {
      at("unkept").hidden = false;
    }
    if (!at("work").hidden) show();
  });

  try {
    const stored = kept();
    if (stored) {
      root.lang = stored.language;
      root.classList.toggle("unmarked", !stored.marks);
      merge(stored);
      name = sessionStorage.getItem(store) ?? stored.name; // each tab has its labeller
    }
  } catch {
    at("unkept").hidden = false;
  }
  if (name) open();
  else at("start").hidden = false;
})();
