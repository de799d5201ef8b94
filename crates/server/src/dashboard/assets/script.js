// What pages do by themselves: refresh what changed, tell times as the reader wants them, complete names, keys. Pages are whole without it.
"use strict";
(() => {
  const $ = (selector, root = document) => root.querySelector(selector);
  const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];
  const page = $("#page"), live = $("#live"), stale = $("#stale");

  // Times.
  const kind = document.documentElement.dataset.times;
  const span = seconds => {
    const s = Math.abs(seconds);
    if (s < 60) return `${Math.floor(s)} s`;
    if (s < 3600) return `${Math.floor(s / 60)} min`;
    if (s < 86400) return `${Math.floor(s / 3600)} h ${Math.floor(s % 3600 / 60)} min`;
    return `${Math.floor(s / 86400)} d ${Math.floor(s % 86400 / 3600)} h`;
  };
  const two = number => String(number).padStart(2, "0");
  const local = at => `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())} ${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
  const utc = at => at.toISOString().replace("T", " ").replace(/\.\d+Z$/, " UTC");
  const days = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];
  const clock = at => kind === "utc" ? at.toISOString().slice(11, 16) : `${two(at.getHours())}:${two(at.getMinutes())}`;
  function tellTimes(root = document) {
    const now = Date.now();
    for (const time of $$("time", root)) {
      const at = new Date(time.dateTime), ago = (now - at) / 1000;
      if (isNaN(at)) continue;
      let words;
      if (time.classList.contains("since")) words = span(ago);
      else if (time.classList.contains("clock")) words = clock(at);
      else if (time.classList.contains("day")) words = `${days[kind === "utc" ? at.getUTCDay() : at.getDay()]} ${kind === "utc" ? at.getUTCDate() : at.getDate()}. ${clock(at)}`;
      else if (time.classList.contains("due") && ago > -1) words = "now";
      else if (kind === "utc") words = utc(at);
      else if (kind === "local") words = local(at);
      else words = ago < -1 ? `in ${span(ago)}` : ago < 1 ? "now" : `${span(ago)} ago`;
      if (time.textContent !== words) time.textContent = words;
      if (!time.title) time.title = `${utc(at)} · ${local(at)} here`;
    }
    // The points of charts say their time first.
    for (const point of $$("g[data-at] > title", root)) {
      const at = new Date(point.parentNode.dataset.at), said = point.textContent;
      const words = (kind === "utc" ? utc(at) : local(at)) + said.slice(said.indexOf(": "));
      if (said !== words) point.textContent = words;
    }
  }

  // What is shown only with a script.
  function dress(root = document) {
    for (const button of $$("button.copy, .tick-all", root)) button.hidden = false;
    // On a phone, where a table has no heads, each cell says what it is.
    for (const table of $$("table.rows", root)) {
      const words = $$("thead th", table).map(head => head.textContent.replace(/ [↑↓]$/, ""));
      for (const row of $$("tbody tr", table)) [...row.children].forEach((cell, at) => { if (words[at]) cell.dataset.word = words[at]; });
    }
    tellTimes(root);
  }
  document.addEventListener("click", event => {
    const button = event.target.closest("button.copy");
    if (!button) return;
    const from = $(".copied", button.closest("section.document, .shell, section"));
    const said = words => { button.textContent = words; setTimeout(() => { button.textContent = "Copy"; }, 1500); };
    // Without TLS a browser has no clipboard for pages: then the text is chosen, for the reader's own keys.
    const choose = () => { getSelection().selectAllChildren(from); said("Chosen: press Ctrl+C"); };
    if (navigator.clipboard) navigator.clipboard.writeText(from.textContent).then(() => said("Copied"), choose); else choose();
  });

  // Refreshing: the page is asked for again, and regions that differ from what the server said before are swapped.
  let tag = null, source = null, asking = false, pending = null, paused = false, fresh = Date.now(), trouble = null, back = 1000;
  const regions = root => new Map($$("[data-live]", root).map(region => [region.id, region]));
  const known = new Map();
  if (page) for (const [id, region] of regions(page)) known.set(id, region.innerHTML);

  function swap(text) {
    const next = new DOMParser().parseFromString(text, "text/html");
    const here = regions(page);
    for (const [id, region] of regions(next)) {
      const old = here.get(id), html = region.innerHTML;
      if (!old) { location.reload(); return; }
      if (known.get(id) === html) continue;
      // Whoever types or chooses is not disturbed; what is ticked is kept instead.
      if (old.contains(document.activeElement) && types(document.activeElement)) continue;
      const chosen = $(".chosen", old)?.dataset.key, focus = document.activeElement, key = old.contains(focus) ? focus.getAttribute("href") : null;
      const kept = new Set($$("input[name=id]:checked", old).map(box => box.value)), box = old.contains(focus) && focus.name === "id" ? focus.value : null;
      const open = $$("details[open]", old).map(details => details.id);
      known.set(id, html);
      old.replaceChildren(...document.importNode(region, true).childNodes);
      for (const id of open) { const details = id && document.getElementById(id); if (details) details.open = true; }
      if (chosen) $$("[data-key]", old).find(row => row.dataset.key === chosen)?.classList.add("chosen");
      if (key) $$("a[href]", old).find(link => link.getAttribute("href") === key)?.focus({ preventScroll: true });
      for (const one of $$("input[name=id]", old)) { one.checked = kept.has(one.value); if (one.value === box) one.focus({ preventScroll: true }); }
      dress(old);
    }
    for (const [id, region] of here) if (!next.getElementById(id)) { region.replaceChildren(); known.delete(id); }
    countTicks();
  }

  // Rows that are ticked, to be acted on together.
  const ticked = $("form#ticked");
  const boxes = () => ticked ? [...ticked.elements].filter(box => box.name === "id") : [];
  function countTicks() {
    if (!ticked) return;
    const all = boxes(), count = all.filter(box => box.checked).length, words = count === 1 ? "1 row ticked" : `${count} rows ticked`;
    ticked.hidden = count === 0;
    const told = $(".ticked-count", ticked), head = $(".tick-all");
    if (told.textContent !== words) told.textContent = words;
    if (head) { head.checked = count > 0 && count === all.length; head.indeterminate = count > 0 && count < all.length; }
  }
  document.addEventListener("change", event => {
    if (event.target.matches(".tick-all")) for (const box of boxes()) box.checked = event.target.checked;
    countTicks();
  });
  // The way back brings rows back that were ticked.
  addEventListener("pageshow", countTicks);

  async function ask(address = location.href) {
    if (asking) { pending = address; return; }
    asking = true;
    // Whoever waits is told so; the answer may still come.
    const slow = setTimeout(() => { trouble = "the server has not answered for five seconds"; tell(); }, 5000);
    try {
      const headers = { "x-fragment": "yes" };
      if (tag && address === location.href) headers["if-none-match"] = tag;
      const answer = await fetch(address, { headers, redirect: "manual" });
      if (answer.status === 401 || answer.type === "opaqueredirect") { location.reload(); return; }
      if (answer.status !== 304) {
        const text = await answer.text();
        if (!answer.ok) throw new Error($(".trouble p", new DOMParser().parseFromString(text, "text/html"))?.textContent || `the answer was ${answer.status}`);
        if (address === location.href) tag = answer.headers.get("etag");
        swap(text);
      }
      fresh = Date.now(); trouble = null;
    } catch (error) {
      trouble = error instanceof TypeError ? "the server does not answer" : error.message;
    } finally {
      clearTimeout(slow);
      asking = false;
      tell();
      const next = pending;
      pending = null;
      // What somebody typed meanwhile is asked for at once.
      if (next) setTimeout(() => ask(next), next === location.href ? 1000 : 0);
    }
  }

  function tell() {
    if (!live) return;
    const state = paused ? "paused" : trouble ? "stale" : "live";
    live.dataset.state = state;
    const words = $(".words", live);
    if (words.textContent !== state) words.textContent = state;
    stale.hidden = !trouble;
    if (trouble) stale.textContent = `Not live: ${trouble}. This is the picture of ${local(new Date(fresh))}.`;
  }

  function listen() {
    if (source || paused || document.hidden || !live) return;
    source = new EventSource("/live");
    source.addEventListener("open", () => { back = 1000; });
    source.addEventListener("look", () => ask());
    source.addEventListener("error", () => {
      rest();
      ask();
      setTimeout(listen, back);
      back = Math.min(back * 2, 15000);
    });
  }
  function rest() { source?.close(); source = null; }
  function toggle() {
    paused = !paused;
    const button = $("#pause");
    button.textContent = paused ? "Go on" : "Pause";
    button.setAttribute("aria-pressed", String(paused));
    if (paused) rest(); else { ask(); listen(); }
    tell();
  }
  const refreshes = page && live && $("[data-live]", page) && !$("form[data-preview]", page);
  if (refreshes) {
    live.hidden = false;
    $("#pause").addEventListener("click", toggle);
    document.addEventListener("visibilitychange", () => { if (document.hidden) rest(); else if (!paused) { ask(); listen(); } });
    addEventListener("pagehide", rest);
    addEventListener("pageshow", event => { if (event.persisted && !paused) { ask(); listen(); } });
    tell();
    ask().then(listen);
  } else if ($("[data-again]")) {
    setTimeout(() => location.reload(), 3000);
  }

  // A form that shows what it would do, as one types.
  const form = $("form[data-preview]");
  if (form) {
    let timer = null;
    form.addEventListener("input", () => {
      clearTimeout(timer);
      timer = setTimeout(() => {
        const said = new FormData(form), pairs = new URLSearchParams();
        for (const name of ["cron", "zone", "dst", "tag"]) pairs.set(name, said.get(name) ?? "");
        ask(`${form.dataset.preview}?${pairs}`);
      }, 250);
    });
  }

  // Names as one types.
  let naming = null;
  document.addEventListener("input", event => {
    const input = event.target, noun = input.dataset.complete ?? (input.id === "jump" ? "any" : null);
    if (!noun || !input.list || input.value.trim().length < 1) return;
    clearTimeout(naming);
    naming = setTimeout(async () => {
      const pairs = new URLSearchParams({ noun, text: input.value.trim() });
      const workspace = input.form?.elements.workspace?.value;
      if (noun === "workflow" && workspace) pairs.set("workspace", workspace);
      const answer = await fetch(`/complete?${pairs}`).catch(() => null);
      if (answer?.ok) input.list.replaceChildren(...new DOMParser().parseFromString(await answer.text(), "text/html").querySelectorAll("option"));
    }, 150);
  });

  // Keys.
  let going = false;
  function types(element) { return element.matches("input:not([type=checkbox]), select, textarea"); }
  const rows = () => $$("#page [data-key]");
  function choose(step) {
    const all = rows(), at = all.findIndex(row => row.classList.contains("chosen"));
    const to = all[Math.min(Math.max(at + step, 0), all.length - 1)];
    all[at]?.classList.remove("chosen");
    to?.classList.add("chosen");
    to?.scrollIntoView({ block: "nearest" });
  }
  document.addEventListener("keydown", event => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (types(event.target)) { if (event.key === "Escape") event.target.blur(); return; }
    if (going) {
      going = false;
      const link = $(`.places a[data-key="${CSS.escape(event.key)}"]`);
      if (link) { event.preventDefault(); link.click(); }
      return;
    }
    switch (event.key) {
      case "/": event.preventDefault(); $("#jump")?.focus(); break;
      case "g": going = true; setTimeout(() => { going = false; }, 1500); break;
      case "j": choose(1); break;
      case "k": choose(-1); break;
      case "Enter": if (event.target === document.body || event.target.id === "main") $(".chosen a[href]")?.click(); break;
      case "x": { const box = $(".chosen input[name=id]"); if (box) { box.checked = !box.checked; countTicks(); } break; }
      case "p": if (refreshes) toggle(); break;
      case "?": $("#keys")?.showModal(); break;
    }
  });

  dress();
  countTicks();
  setInterval(() => { if (!document.hidden) tellTimes(); }, 1000);
})();
