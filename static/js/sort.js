// Sorts the ranking in place. Without this script its links load the page in the new order.
"use strict";

let query = location.search;

async function load(address) {
  const response = await fetch(address, { headers: { Accept: "text/html" } });
  const page = new DOMParser().parseFromString(await response.text(), "text/html");
  const table = page.getElementById("ranking");
  const shown = document.getElementById("ranking");
  // A new board may have come out: then the rest of the page is old too.
  if (!response.ok || table?.dataset.board !== shown.dataset.board) throw new Error("another board");
  shown.replaceWith(document.adoptNode(table));
  query = new URL(address).search;
  return table;
}

document.addEventListener("click", async (event) => {
  const link = event.target.closest("#ranking th a");
  if (!link || event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
  event.preventDefault();
  const column = link.dataset.column;
  try {
    const table = await load(link.href);
    history.pushState(null, "", link.href);
    table.querySelector(`a[data-column="${column}"]`).focus({ preventScroll: true });
  } catch {
    location.assign(link.href);
  }
});

window.addEventListener("popstate", () => {
  if (location.search !== query) load(location.href).catch(() => location.reload());
});
