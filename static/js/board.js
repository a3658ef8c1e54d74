// Sorts, filters, plots and sets the reference in place. Without this script links and forms load the page anew.
"use strict";

const PARTS = ["targets", "kept", "narrowed", "views", "list", "plot"]; // what another view changes; the count is read out
const form = document.getElementById("bar");
let query = location.search; // of what is shown
let loading = new AbortController();

// Shows the view of an address. A later call ends an earlier one, whose answer may come last.
async function load(address) {
  loading.abort();
  loading = new AbortController();
  const { signal } = loading;
  const response = await fetch(address, { headers: { Accept: "text/html" }, signal });
  const page = new DOMParser().parseFromString(await response.text(), "text/html");
  signal.throwIfAborted();
  // A new board may have come out: then the rest of the page is old too.
  const [shown, found] = [document, page].map((one) => one.querySelector(".board")?.dataset.board);
  if (!response.ok || found !== shown) throw new Error("another board");
  const ticked = [...document.querySelectorAll("[name=a]:checked")];
  for (const id of PARTS) {
    document.getElementById(id).replaceWith(document.adoptNode(page.getElementById(id)));
  }
  ticked.forEach(keep);
  document.getElementById("count").textContent = page.getElementById("count").textContent;
  query = new URL(address).search;
}

// Ticks an agent again; one that is no longer shown stands in the bar, where it can be left out.
function keep(box) {
  const again = document.querySelector(`.c-check [value="${box.value}"]`);
  if (again) {
    again.checked = true;
    return;
  }
  const label = document.createElement("label");
  label.className = "c-check";
  label.append(box, ` ${box.ariaLabel.replace("Compare ", "")}`);
  picked().append(label);
}

function picked() {
  return document.getElementById("compare");
}

function unlessEnded(otherwise) {
  return (error) => {
    if (error.name !== "AbortError") otherwise();
  };
}

// The same link as before, in the view that has taken its place.
function again(link) {
  const { column } = link.dataset;
  const row = link.closest("tbody tr")?.querySelector(".c-held a")?.getAttribute("href");
  const number = new URLSearchParams(row?.split("#")[0]).get("vs");
  if (link.closest("#plot")) return document.querySelector("#plot [aria-current]");
  const links = [...document.querySelectorAll(column ? `a[data-column="${column}"]` : ".c-held a")];
  return column ? links[0] : links.find((one) => new RegExp(`[?&]vs=${number}#`).test(one.getAttribute("href")));
}

document.addEventListener("click", (event) => {
  const link = event.target.closest("#ranking thead a, #ranking .c-held a, .more a, .reference a, #plot nav a");
  if (event.target.id === "copy") copy(event.target);
  if (!link || event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
  event.preventDefault();
  const { href } = link;
  load(href)
    .then(() => {
      history.pushState(null, "", href);
      again(link)?.focus({ preventScroll: true });
    })
    .catch(unlessEnded(() => location.assign(href)));
});

async function copy(button) {
  const asked = new URLSearchParams(new FormData(picked()));
  await navigator.clipboard.writeText(`${picked().action}?${asked}`);
  button.textContent = "Copied";
}

document.addEventListener("change", (event) => {
  const button = document.getElementById("copy");
  if (event.target.name !== "a") return;
  button.hidden = !navigator.clipboard; // which a page has that came over HTTPS
  button.textContent = "Copy link";
});

// Points at an agent, in the plot or in its row: both light up, and a line below the plot reads it.
function point({ target }) {
  const at = target.closest("#plot svg a, #ranking tbody tr");
  const link = at?.matches("tr") ? at.querySelector(".who") : at;
  if (!link) return;
  const address = link.getAttribute("href");
  for (const one of document.querySelectorAll(".lit")) one.classList.remove("lit");
  const dot = document.querySelector(`#plot svg a[href="${address}"]`);
  dot?.classList.add("lit");
  document.querySelector(`#ranking .who[href="${address}"]`)?.closest("tr").classList.add("lit");
  const title = dot?.querySelector("title");
  if (title) document.getElementById("reading").textContent = title.textContent;
}
document.addEventListener("pointerover", point);
document.addEventListener("focusin", point);

// The address of what the form asks for, without what it leaves open.
function asked() {
  const told = [...new FormData(form)].filter(([, text]) => text);
  return new URL(`?${new URLSearchParams(told)}`, location.href).href.replace(/#.*/, "");
}

function filter() {
  const href = asked();
  load(href)
    .then(() => history.replaceState(null, "", href))
    .catch(unlessEnded(() => location.assign(href)));
}

let pause;
form?.querySelector(".filters ~ button").setAttribute("hidden", ""); // what is asked for is shown at once
form?.addEventListener("input", () => {
  clearTimeout(pause);
  pause = setTimeout(filter, 150);
});
form?.addEventListener("submit", (event) => {
  if (event.submitter?.form !== form) return;
  event.preventDefault();
  clearTimeout(pause);
  filter();
});

window.addEventListener("popstate", () => {
  loading.abort();
  if (location.search !== query) load(location.href).catch(unlessEnded(() => location.reload()));
});
