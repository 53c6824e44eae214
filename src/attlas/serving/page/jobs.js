// The drawer at the bottom: run a quick audit, and what was run before, also before a restart.

import {button, make, visible} from "./views.js";
import {forget, get, wordsOf} from "./api.js";
import {byId, listBox, progressLine, tellTrouble, title, troubleLine} from "./parts.js";
import {begin, cancel, isOver} from "./running.js";
import {modelOf} from "./store.js";

const WAIT = 1000, COUNTS = ["20", "60", "200"];
/** @type {Record<string, string>} */
const STATES = {queued: "waits", running: "runs", done: "done", failed: "failed", cancelled: "cancelled"};

/** @param {LabStore} store @param {(job: LabJob) => void} open */
export function drawJobs(store, open) {
  const box = byId("jobs"), tools = make("div", "panel-tools"), trouble = troubleLine(), list = make("ul", "job-list");
  box.append(title("jobs-title", "Audit"), make("p", "hint quiet",
    "May the attention of this model be read as an explanation? An audit tests it on many texts, and writes a report."), tools, trouble, list);
  let data = "", count = COUNTS[1], timer = 0;
  /** @param {string} words */
  const fail = (words) => tellTrouble(trouble, words);
  const refresh = async () => {
    clearTimeout(timer);
    try {
      const answer = await get("api/jobs"), jobs = /** @type {LabJob[]} */ (Array.isArray(answer) ? answer : answer.jobs);
      show(jobs);
      if (jobs.some((job) => !isOver(job))) timer = setTimeout(refresh, WAIT);
    } catch (problem) {
      fail(wordsOf(problem));
    }
  };
  const start = () => {
    fail("");
    begin({job: "audit", model: store.state.model, data, count: Number(count), seed: 0}, () => {}, fail);
  };
  const arrange = () => {
    const model = modelOf(store.state);
    data = model.data.includes(data) ? data : model.data[0] ?? "";
    tools.replaceChildren(...(data ? [listBox("texts", model.data.map((each) => [each, each]), data, (value) => (data = value)),
      listBox("how many", COUNTS.map((each) => [each, each]), count, (value) => (count = value)), button("Run a quick audit", "go run-audit", start)]
      : [make("p", "quiet", `There are no texts for ${model.key} to audit it on.`)]));
  };
  /** @param {LabJob[]} jobs */
  const show = (jobs) => {
    const focused = document.activeElement instanceof HTMLElement && list.contains(document.activeElement) ? document.activeElement.dataset.name : null;
    list.replaceChildren(...jobs.map((job) => jobRow(job, store, {open, refresh, fail})));
    if (focused) /** @type {HTMLElement | null} */ (list.querySelector(`[data-name="${CSS.escape(focused)}"]`))?.focus();
    if (!jobs.length) list.append(make("li", "quiet", "Nothing was run yet."));
  };
  store.on(["model"], arrange);
  document.addEventListener("attlas-job", () => void refresh());
  arrange();
  void refresh();
  return {refresh};
}

/**
 * @param {LabJob} job
 * @param {LabStore} store
 * @param {{open: (job: LabJob) => void, refresh: () => Promise<void>, fail: (words: string) => void}} steps
 */
function jobRow(job, store, {open, refresh, fail}) {
  /** @param {string} label @param {() => Promise<unknown>} work */
  const act = (label, work) => {
    const made = button(label, "", () => { work().then(refresh).catch((problem) => fail(wordsOf(problem))); });
    made.dataset.name = `${job.id} ${label}`;
    made.setAttribute("aria-label", `${label}: ${job.title}`);
    return made;
  };
  const tools = make("span", "job-tools");
  if (!isOver(job)) tools.append(act("cancel", () => cancel(job.id)));
  else {
    if (job.state === "done" && job.job === "audit") tools.append(reportLink(job));
    if (job.state === "done" && job.job !== "audit") tools.append(act("show", async () => open(await get(`api/jobs/${job.id}`))));
    tools.append(act("forget", () => forget(`api/jobs/${job.id}`)));
  }
  const when = new Date(1000 * job.created).toLocaleString([], {dateStyle: "short", timeStyle: "short"});
  return make("li", `job ${job.state}`, make("span", "job-state", STATES[job.state] ?? job.state), make("span", "job-title", visible(job.title)),
    isOver(job) ? make("span", "quiet job-when", job.error ? visible(job.error) : when) : progressLine(job.progress, job.state), tools);
}

/** @param {LabJob} job */
function reportLink(job) {
  const link = make("a", "tool", "open the report");
  Object.assign(link, {href: `reports/${encodeURIComponent(job.id)}`, target: "_blank", rel: "noopener"});
  link.dataset.name = `${job.id} report`;
  return link;
}
