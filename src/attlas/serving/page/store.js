// The state of the page, who hears of its changes, and undo.

const MOST_STEPS = 200;

/** @param {LabState} start @returns {LabStore} */
export function makeStore(start) {
  /** @typedef {Pick<LabKept, "items" | "removed">} Step */
  /** @type {[(keyof LabState)[], () => void][]} */
  const listeners = [];
  /** @type {Step[]} */
  let past = [];
  /** @type {Step[]} */
  let future = [];
  const state = start;
  /** @returns {Step} */
  const step = () => ({items: state.items, removed: state.removed});
  /** @type {LabStore} */
  const store = {
    state,
    set(change) {
      const names = /** @type {(keyof LabState)[]} */ (Object.keys(change));
      const changed = names.filter((name) => state[name] !== change[name]);
      Object.assign(state, change);
      for (const [heard, listener] of listeners) if (heard.some((name) => changed.includes(name))) listener();
    },
    on(names, listener) { listeners.push([names, listener]); },
    act(change) {
      past = [...past.slice(-MOST_STEPS), step()];
      future = [];
      store.set(change);
    },
    undo() {
      const before = past.at(-1);
      if (!before) return;
      [past, future] = [past.slice(0, -1), [step(), ...future]];
      store.set(before);
    },
    redo() {
      const [after, ...rest] = future;
      if (!after) return;
      [past, future] = [[...past, step()], rest];
      store.set(after);
    },
    canUndo: () => past.length > 0,
    canRedo: () => future.length > 0,
    forget() { [past, future] = [[], []]; },
  };
  return store;
}

/** @param {LabState} state */
export const modelOf = (state) => state.catalogue.models.find((each) => each.key === state.model) ?? state.catalogue.models[0];

/** @param {LabState} state */
export const methodOf = (state) => state.catalogue.methods.find((each) => each.name === state.method);

/** @param {LabState} state */
export const editsOf = (state) => state.items.flatMap((item) => item.edits);

/** @param {LabState} state */
export const questionOf = ({model, input, target, position}) => ({model, input, target, position});

/** @param {LabState} state */
export const isAsked = ({input}) => Boolean(input.text?.trim() || input.picture);
