"use strict";
// The buttons that share what is seen: a link to it, and a picture of a part of the page. Nothing is sent anywhere.

const SAID_FOR = 2500; // milliseconds

function startSharing() {
  const link = document.getElementById("copy-link");
  link.hidden = !hasAddress();
  link.addEventListener("click", copyLink);
  for (const button of document.querySelectorAll(".save")) {
    button.dataset.key = `picture:${button.dataset.picture}`;
    button.setAttribute("aria-label", `Save a picture of the ${button.dataset.picture}, as SVG`);
    button.addEventListener("click", () => savePicture(button.dataset.picture));
  }
}

/** Where the browser keeps the clipboard from the page, the link stands in a field, chosen, to be copied by hand. */
async function copyLink() {
  const button = document.getElementById("copy-link");
  try {
    await navigator.clipboard.writeText(location.href);
    button.textContent = "Link copied";
    setTimeout(() => { button.textContent = "Copy link"; }, SAID_FOR);
  } catch {
    const field = Object.assign(make("input", "link"), {readOnly: true, value: location.href, ariaLabel: "The link"});
    button.parentElement.querySelector(".link")?.remove();
    button.after(field);
    field.select();
  }
}

/** Download a part of the page as an SVG file that is named after the place and the tensor. */
function savePicture(part) {
  const {place, state: {symbol, panel}} = currentView();
  const name = {map: "map", strip: place.path, stage: `${place.path}-${symbol}`, panel: `${place.path}-${panel}`}[part];
  const address = URL.createObjectURL(new Blob([pictureOf(document.getElementById(part))], {type: "image/svg+xml"}));
  const link = Object.assign(document.createElement("a"), {href: address, download: `${name}.svg`});
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), SAID_FOR);
}
