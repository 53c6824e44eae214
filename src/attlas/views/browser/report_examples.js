// Texts that illustrate a point.

function drawExamples(made, payload, state, section = "examples") {
  for (const example of payload.examples.filter((each) => each.section === section)) {
    const box = make("article", "example", make("p", "lead", visible(example.point)),
      make("p", "quiet", "The whole text: ", answer(example.label, example.probability)));
    for (const reading of example.readings) box.append(exampleReading(example, reading, state));
    made.append(box);
  }
}

const answer = (label, probability) =>
  make("span", "", make("bdi", "strong", visible(label)), make("span", "mono", ` ${reportNumber(probability)}`));

// If the answer changes, only the probability of the first answer is known.
const afterwards = (example, reading) => reading.label === example.label
  ? answer(reading.label, reading.probability)
  : make("span", "", make("bdi", "strong", visible(reading.label)),
    make("span", "turned", " ⚑ the answer turns "), make("span", "quiet",
      `${visible(example.label)} has ${reportNumber(reading.probability)} left`));

function exampleReading(example, reading, state) {
  const flow = make("p", "flow"), chips = [];
  example.tokens.forEach((token, place) => {
    const gap = token.match(/^\s*/)[0], chip = make("span", "unit", visible(token.slice(gap.length)));
    if (gap) flow.append(" ");
    if (reading.removed.includes(place)) chip.classList.add("removed");
    chip.title = exact(reading.scores[place], reading.signed);
    chips.push(chip);
    flow.append(chip);
  });
  const top = Math.max(...reading.scores.map(Math.abs));
  const colour = () => chips.forEach((chip, place) =>
    paint(chip, strength(reading.scores[place], top), reading.signed, state.theme));
  state.on(["theme"], colour);
  colour();
  const after = make("p", "", make("span", "quiet",
    `Without the ${reading.removed.length} marked (${visible(example.removal)}): `), afterwards(example, reading));
  return make("div", "reading", make("p", "mono strong", visible(reading.method)), flow, after);
}
