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
