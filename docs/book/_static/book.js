// Filters: a <div class="filter"> shows buttons for the verdicts found below it on the page; one press keeps
// the rows and sections that have this one.
document.addEventListener("DOMContentLoaded", () => {
  for (const bar of document.querySelectorAll("div.filter")) {
    const rows = [...document.querySelectorAll("article table tbody tr, article section section")]
      .map((row) => [row, row.querySelectorAll(":scope > td span.verdict, :scope > .verdict-line span.verdict")])
      .filter(([, badges]) => badges.length)
      .map(([row, badges]) => [row, new Set([...badges].map((badge) => badge.textContent.trim()))]);
    const counts = new Map();
    rows.forEach(([, found]) => found.forEach((verdict) => counts.set(verdict, (counts.get(verdict) ?? 0) + 1)));
    if (counts.size < 2) continue;
    const buttons = [["all", rows.length], ...counts].map(([name, count]) => {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = `${name} (${count})`;
      button.dataset.verdict = name;
      button.setAttribute("aria-pressed", String(name === "all"));
      button.addEventListener("click", () => {
        buttons.forEach((other) => other.setAttribute("aria-pressed", String(other === button)));
        rows.forEach(([row, found]) => row.classList.toggle("filtered-out", name !== "all" && !found.has(name)));
      });
      return button;
    });
    bar.append(...buttons);
  }
});

// Pictures that move: a <figure class="moving"> names a file and its words for each setting; sliders swap them.
document.addEventListener("DOMContentLoaded", () => {
  for (const figure of document.querySelectorAll("figure.moving")) {
    const image = figure.querySelector("img");
    const { folder, sliders, frames } = JSON.parse(figure.querySelector("script").textContent);
    const panel = document.createElement("div");
    panel.className = "sliders";
    const rows = sliders.map(({ label, values, start }) => {
      const [line, name, input, shown] = ["label", "span", "input", "output"].map((tag) => document.createElement(tag));
      name.textContent = label;
      Object.assign(input, { type: "range", min: 0, max: values.length - 1, step: 1, value: start });
      line.append(name, input, shown);
      panel.append(line);
      return { input, shown, values };
    });
    const show = () => {
      let at = 0;
      for (const { input, shown, values } of rows) {
        at = at * values.length + Number(input.value);
        shown.textContent = values[input.value];
        input.setAttribute("aria-valuetext", values[input.value]);
      }
      image.src = folder + frames[at][0];
      image.alt = frames[at][1];
    };
    rows.forEach(({ input }) => input.addEventListener("input", show));
    image.after(panel);
    show();
  }
});

// A wide picture keeps letters that can be read: it is at least 250 pixels high, and its box scrolls.
document.addEventListener("DOMContentLoaded", () => {
  for (const image of document.querySelectorAll(".bd-article img")) {
    if (image.closest("figure.moving")) continue;
    const widen = () => {
      const { naturalWidth: width, naturalHeight: height } = image;
      if (width < 2.5 * height) return;
      const box = document.createElement("div");
      box.className = "table-box";
      image.replaceWith(box);
      box.append(image);
      Object.assign(image.style, { maxWidth: "none", width: `${Math.min(width, Math.round((250 * width) / height))}px` });
    };
    if (image.complete && image.naturalWidth) widen();
    else image.addEventListener("load", widen, { once: true });
  }
});

// Cards: on a phone a table that is wider than the page, or has a row higher than a few lines, shows a row as a card.
window.addEventListener("load", async () => {
  await window.MathJax?.startup?.promise;
  const tables = [...document.querySelectorAll(".bd-article table")].filter((table) =>
    table.querySelectorAll("thead tr:last-child th").length > 1 && !table.closest("div.cell_output"));
  for (const table of tables) {
    const heads = [...table.querySelectorAll("thead tr:last-child th")];
    for (const row of table.tBodies[0]?.rows ?? []) {
      [...row.cells].forEach((cell, at) => {
        const empty = !cell.textContent.trim() && !cell.querySelector("img, mjx-container");
        if (empty) cell.classList.add("blank");
        if (empty || !at || !heads[at]) return;
        const label = document.createElement("span");
        label.className = "label";
        label.innerHTML = `${(heads[at].querySelector("p") ?? heads[at]).innerHTML}: `;
        if (cell.textContent.trim().length < 24) cell.classList.add("short");
        cell.prepend(label);
      });
    }
  }
  const phone = matchMedia("(max-width: 576px)");
  const fit = () => {
    tables.forEach((table) => table.classList.remove("cards"));
    if (!phone.matches) return;
    const unfit = tables.filter((table) =>
      table.scrollWidth > table.closest("div, article").clientWidth + 1 ||
      [...(table.tBodies[0]?.rows ?? [])].some((row) => row.getBoundingClientRect().height > 130));
    unfit.forEach((table) => table.classList.add("cards"));
  };
  phone.addEventListener("change", fit);
  fit();
});

// Search: below a page that is found, the line that holds the words. texts.js has the words of all pages.
document.addEventListener("DOMContentLoaded", () => {
  const results = document.querySelector("#search-results");
  const query = new URLSearchParams(location.search).get("q")?.toLowerCase().trim();
  if (!results || !query) return;
  const words = query.split(/\s+/).filter((word) => word.length > 2);
  const show = (item) => {
    const page = item.querySelector("a")?.getAttribute("href")?.split(".html")[0];
    const text = window.bookTexts?.[page];
    if (!text || item.querySelector("p.context")) return;
    const at = [query, ...words].map((word) => text.toLowerCase().indexOf(word)).find((place) => place >= 0);
    if (at === undefined) return;
    const start = at < 60 ? 0 : text.indexOf(" ", at - 60) + 1;
    const line = document.createElement("p");
    line.className = "context";
    line.textContent = `${start ? "… " : ""}${text.slice(start, start + 180).replace(/\s\S*$/, "")} …`;
    item.append(line);
  };
  const texts = document.createElement("script");
  texts.src = `${document.documentElement.dataset.content_root ?? ""}_static/texts.js`;
  texts.addEventListener("load", () => {
    const all = () => results.querySelectorAll("li").forEach(show);
    new MutationObserver(all).observe(results, { childList: true, subtree: true });
    all();
  });
  document.head.append(texts);
});
