// Long work: begin a job, follow it, stop it.

import {get, post, wordsOf} from "./api.js";

const WAIT = 250;
const OVER = ["done", "failed", "cancelled"];

/** @param {LabJob} job */
export const isOver = (job) => OVER.includes(job.state);

// The list of jobs hears that there is news.
const tell = () => document.dispatchEvent(new Event("attlas-job"));

// `hear` gets the job with all its points so far; `fail` one sentence.
/** @param {LabJobRequest} request @param {(job: LabJob) => void} hear @param {(words: string) => void} fail */
export function begin(request, hear, fail) {
  let stopped = false;
  const work = async () => {
    const first = /** @type {LabJob} */ (await post("api/jobs", request));
    tell();
    if (!stopped) await follow(first.id, hear, () => stopped);
  };
  work().catch((problem) => fail(wordsOf(problem)));
  return () => (stopped = true);
}

/** @param {string} id @param {(job: LabJob) => void} hear @param {() => boolean} isLeft */
export async function follow(id, hear, isLeft) {
  /** @type {number[][]} */
  let points = [];
  for (;;) {
    const job = /** @type {LabJob} */ (await get(`api/jobs/${encodeURIComponent(id)}?points_from=${points.length}`));
    points = [...points, ...(job.points ?? [])];
    if (isLeft()) return;
    hear({...job, points});
    if (isOver(job)) return tell();
    await new Promise((resolve) => setTimeout(resolve, WAIT));
  }
}

/** @param {string} id */
export const cancel = (id) => post(`api/jobs/${encodeURIComponent(id)}/cancel`, {});
