// Share and export: a link, Python lines, a page, pictures, rationales.

import {button, codeBox, figureDrawing, make, saveText} from "./views.js";
import {post, postForText, wordsOf} from "./api.js";
import {byId, troubleLine, tellTrouble} from "./parts.js";
import {editsOf, questionOf} from "./store.js";

/** @param {LabStore} store @param {{flush: () => void, startTour: () => void}} steps */
export function drawActions(store, {flush, startTour}) {
  const dialog = /** @type {HTMLDialogElement} */ (byId("dialog"));
  /** @param {string} heading @param {...Node} parts */
  const open = (heading, ...parts) => {
    const name = make("h2", "", heading);
    name.id = "dialog-title";
    dialog.replaceChildren(make("div", "menu-head", name, button("close", "", () => dialog.close())), ...parts);
    dialog.showModal();
  };
  const share = () => {
    flush();
    open("A link to this state", make("p", "hint quiet", store.state.input.picture
      ? "Whoever opens it on this server sees the same, but for the picture: it stays with you." : "Whoever opens it on this server sees the same."),
    codeBox(location.href, "copy the link"));
  };
  byId("actions").append(button("tour", "start-tour", startTour), button("share", "", share), button("export", "", () => open("Export", exportList(store, open))), themeSwitch(store));
}

/** @param {LabStore} store @param {(heading: string, ...parts: Node[]) => void} open */
function exportList(store, open) {
  const trouble = troubleLine(), {state} = store, has = state.explanation !== null;
  /** @param {string} label @param {string} about @param {boolean} able @param {() => Promise<void> | void} work */
  const row = (label, about, able, work) => {
    const made = button(label, "", () => {
      tellTrouble(trouble, "");
      Promise.resolve().then(work).catch((problem) => tellTrouble(trouble, wordsOf(problem)));
    });
    made.disabled = !able;
    return make("li", "", made, make("span", "quiet", about));
  };
  const code = async () => {
    const {code: lines} = await post("api/code", {...questionOf(state), method: state.method, edits: editsOf(state), removed: state.removed.flat(), removal: state.removal});
    open("Python", make("p", "hint quiet", "These lines run as they are, and print the numbers of the page."), codeBox(lines));
  };
  const marks = async () => saveText("rationales.jsonl", "application/x-ndjson", await postForText("api/rationales", {marks: state.marks}));
  const words = state.marks.length === 1 ? "1 marked text" : `${state.marks.length} marked texts`;
  return make("div", "", make("ul", "export-list",
    row("copy as code", "the Python lines that compute what is seen", has, code),
    row("save as a page", "the explanation as one file that needs no server", has, () => savePage(store)),
    row("text as SVG", "the text in its colours, as a drawing", has, () => saveText("text.svg", "image/svg+xml", drawingOf("#tokens .rows"))),
    row("text as PNG", "the same as a picture", has, () => savePicture("text.png", "#tokens .rows")),
    row("view as SVG", "what is open in the middle, as a drawing", has, () => saveText("view.svg", "image/svg+xml", drawingOf(openView()))),
    row("view as PNG", "the same as a picture", has, () => savePicture("view.png", openView())),
    row("rationales", state.marks.length ? `${words} as JSON lines to train on` : "mark words first: the mode “mark” of the text", state.marks.length > 0, marks)), trouble);
}

const openView = () => ["#views .map-panel:not([hidden]) .large", "#views .lines", "#views .flow-fold .scroll", "#views .compare-body", "#views .two", "#views .views-body"]
  .find((each) => /** @type {HTMLElement | null} */ (document.querySelector(each))?.offsetParent) ?? "#views";

/** @param {string} selector */
function drawingOf(selector) {
  const box = /** @type {HTMLElement | null} */ (document.querySelector(selector));
  if (!box) throw new Error("there is nothing to save here");
  return figureDrawing(box);
}

/** @param {string} name @param {string} selector */
async function savePicture(name, selector) {
  const drawing = drawingOf(selector), picture = new Image(), sharp = 2;
  const loaded = new Promise((resolve, reject) => { [picture.onload, picture.onerror] = [resolve, () => reject(new Error("the drawing cannot be made a picture"))]; });
  picture.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(drawing)}`;
  await loaded;
  const canvas = make("canvas", ""), pen = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  Object.assign(canvas, {width: picture.width * sharp, height: picture.height * sharp});
  pen.scale(sharp, sharp);
  pen.drawImage(picture, 0, 0);
  const link = make("a", "");
  [link.href, link.download] = [canvas.toDataURL("image/png"), name];
  link.click();
}

// The explanation in one file: the views, their style and the payload, as `to_html` writes it.
/** @param {LabStore} store */
async function savePage({state}) {
  const [script, style, {explanation}] = await Promise.all([textOf("page/views.js"), textOf("page/views.css"),
    post("api/explain", {...questionOf(state), method: state.method, maps: true})]);
  const payload = JSON.stringify(explanation).replace(/[<>&\u2028\u2029]/g, (sign) => `\\u${sign.charCodeAt(0).toString(16).padStart(4, "0")}`);
  const start = `${script}\nembed(document.getElementById("view"), JSON.parse(document.getElementById("payload").textContent));\n`;
  const policy = `default-src 'none'; script-src ${await hashOf(start)}; style-src ${await hashOf(style)}; img-src data:; base-uri 'none'; form-action 'none'`;
  saveText("explanation.html", "text/html", `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<link rel="icon" href="data:,">
<title>Attlas: an explanation</title>
<style>${style}</style>
</head>
<body class="attlas-page">
<main id="view"></main>
<script type="application/json" id="payload">${payload}</script>
<script type="module">${start}</script>
</body>
</html>
`);
}

// By its hash, only this text may run; a page on another machine without encryption cannot compute it.
/** @param {string} text */
async function hashOf(text) {
  if (!isSecureContext) return "'unsafe-inline'";
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text)));
  return `'sha256-${btoa(String.fromCharCode(...digest))}'`;
}

/** @param {string} path */
const textOf = async (path) => (await fetch(path)).text();

/** @param {LabStore} store */
function themeSwitch(store) {
  const dark = matchMedia("(prefers-color-scheme: dark)"), root = byId("laboratory");
  const theme = () => store.state.scheme ?? (dark.matches ? "dark" : "light");
  const made = button("", "switch", () => store.set({scheme: theme() === "dark" ? "light" : "dark"}));
  const show = () => {
    root.dataset.theme = theme();
    document.documentElement.dataset.theme = theme();
    made.textContent = theme() === "dark" ? "☀" : "☾";
    made.setAttribute("aria-label", theme() === "dark" ? "light" : "dark");
  };
  store.on(["scheme"], show);
  dark.addEventListener("change", show);
  show();
  return made;
}
