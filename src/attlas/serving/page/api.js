// Questions to the server: JSON there and back, and one sentence where it refuses.

export class Refusal extends Error {
  /** @param {string} says @param {string | null} where @param {number} status */
  constructor(says, where, status) {
    super(says);
    this.where = where;
    this.status = status;
  }
}

/** @param {string} path @param {RequestInit} options */
async function request(path, options) {
  let answer;
  try {
    answer = await fetch(path, {credentials: "same-origin", ...options});
  } catch (problem) {
    if (problem instanceof DOMException && problem.name === "AbortError") throw problem;
    throw new Refusal("The server does not answer. Is `attlas serve` still running?", null, 0);
  }
  if (answer.ok) return answer;
  const told = await answer.json().catch(() => null);
  throw new Refusal(told?.error?.says ?? `The server answered with ${answer.status}.`, told?.error?.where ?? null, answer.status);
}

/** @param {string} path @returns {Promise<any>} */
export const get = async (path) => (await request(path, {})).json();

/** @param {string} path @param {unknown} body @param {AbortSignal} [signal] */
const send = (path, body, signal) => request(path, {method: "POST", body: JSON.stringify(body), signal,
  headers: {"Content-Type": "application/json"}});

/** @param {string} path @param {unknown} body @param {AbortSignal} [signal] @returns {Promise<any>} */
export const post = async (path, body, signal) => (await send(path, body, signal)).json();

/** @param {string} path @param {unknown} body */
export const postForText = async (path, body) => (await send(path, body)).text();

/** @param {string} path */
export const forget = (path) => request(path, {method: "DELETE"});

// Of several questions in a row only the last one counts: an answer to an earlier one is `null`.
export function lastOnly() {
  /** @type {AbortController | null} */
  let earlier = null;
  /** @param {string} path @param {unknown} body @returns {Promise<any>} */
  return async (path, body) => {
    earlier?.abort();
    const own = earlier = new AbortController();
    try {
      const found = await post(path, body, own.signal);
      return own === earlier ? found : null;
    } catch (problem) {
      if (own !== earlier || (problem instanceof DOMException && problem.name === "AbortError")) return null;
      throw problem;
    }
  };
}

/** @param {unknown} problem */
export const wordsOf = (problem) => (problem instanceof Error ? problem.message : String(problem));
