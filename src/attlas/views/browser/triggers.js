// Triggers: one row each; an open row shows all gold classes and where the trigger was found.

VIEWS.triggers = [drawHeader, drawReading, drawTriggers, drawNotes, drawFoot];

/** @param {number} share */
const percent = (share) => `${Math.round(100 * share)} %`;
/** @param {number} share */
const point = (share) => minus(String(Math.round(100 * share)));
/** @param {{drop: number, low: number, high: number}} given */
const points = ({drop, low, high}) => `${point(drop)} (${point(low)} to ${point(high)})`;

/** @param {HTMLElement} element @param {TriggersPayload} payload */
function drawTriggers(element, payload) {
  const made = section(element, "Triggers, the strongest first", "triggers");
  if (!payload.triggers.length) {
    made.append(make("p", "quiet", "None was found."));
    return;
  }
  made.append(make("p", "hint quiet", "Before: the texts unchanged. Random words: with words of " +
    "the same frequency at the same places. The drop is in points, with its 95 % interval in brackets. " +
    "Open a row to see every class."));
  const names = ["trigger", "harms texts labelled", "labelled correctly", "drop beyond random"];
  made.append(make("div", "head", ...names.map((name) => make("span", "", name))));
  const sure = payload.triggers.filter(isSure), others = payload.triggers.filter((trigger) => !isSure(trigger));
  const layers = layerNames(payload.triggers.map((trigger) => trigger.site));
  /** @param {TriggerRow} trigger */
  const row = (trigger) => triggerRow(trigger, headOfLayer(layers.get(trigger.site), trigger.head));
  made.append(...sure.map(row));
  if (!sure.length) made.append(make("p", "quiet", "None lowers the accuracy beyond chance."));
  if (!others.length) return;
  const words = `${others.length} more, whose drop may be chance: the interval reaches 0`;
  made.append(make("details", "others", make("summary", "", words), ...others.map(row)));
}

// Whether the whole interval of the drop is above zero.
/** @param {TriggerRow} trigger */
const isSure = (trigger) => trigger.strongest.low > 0;

/** @param {TriggerRow} trigger @param {string} where */
function triggerRow(trigger, where) {
  const most = trigger.strongest;
  const summary = make("summary", "", make("bdi", "mono strong", visible(trigger.text)),
    make("bdi", "quiet", visible(most.label)), accuracies(most),
    dropOf(most));
  /** @param {{query: string, key: string, attribution: number}} entry */
  const pair = (entry) => `${visible(entry.query)} reads ${visible(entry.key)} ${entry.attribution.toPrecision(3)}`;
  const source = make("p", "quiet", `Found in a text that the model calls ${visible(trigger.predicted)}, at ` +
    `${where}: ${trigger.entries.map(pair).join("; ")}`);
  const text = make("p", "mono", visible(trigger.found_in));
  const rows = trigger.effects.map((effect) => make("li", "", make("bdi", "", visible(effect.label)),
    make("span", "quiet", `${effect.texts} texts`), accuracies(effect), dropOf(effect)));
  return make("details", "", summary, make("ul", "", ...rows), source, text);
}

// On a phone no column stands over it, so it carries its name.
/** @param {TriggerEffect} effect */
const dropOf = (effect) => make("span", "figure", make("span", "name quiet", "drop beyond random "),
  make("span", "mono", points(effect)));

// Three bars: unchanged texts, with random words, with the trigger.
/** @param {TriggerEffect} effect */
function accuracies(effect) {
  /** @type {[string, number][]} */
  const bars = [["before", effect.before], ["random words", effect.control], ["trigger", effect.after]];
  const box = make("span", "accuracies");
  for (const [name, share] of bars) {
    const fill = make("span", name === "trigger" ? "fill marked" : "fill");
    fill.style.width = `${100 * share}%`;
    box.append(make("span", "quiet", name), make("span", "track", fill),
      make("span", "mono figure", percent(share)));
  }
  return box;
}
