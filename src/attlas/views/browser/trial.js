// A trial that was run by itself: its question, what it found, its figures and its plots.

VIEWS.trial = [drawTrialHeader, drawTrialGuide, drawTrial, drawNotes, drawLeftOut, drawFoot];

function drawTrialHeader(element, payload, state) {
  element.classList.add("report");
  const facts = make("p", "facts");
  const fact = (name, ...values) =>
    facts.append(make("span", "fact", make("span", "quiet", `${name} `), ...values));
  fact("model", make("b", "mono", visible(payload.model)));
  fact("data", make("b", "mono", visible(payload.data.name)), ` ${reportTexts({n: payload.data.texts})}`);
  element.append(make("header", "", make("div", "", make("p", "brand quiet", "Attlas · trial"),
    make("h1", "", visible(payload.reading)), facts), themeSwitch(state)));
}

// What a line of figures says; of a ceiling only where there is one.
function drawTrialGuide(element, payload) {
  const figures = payload.trials.flatMap((trial) => trial.figures);
  const ceiling = figures.some((each) => isNumber(each.ceiling))
    ? " “Of” names the ceiling: the most that the figure could be." : "";
  drawGuide(element, `A dot is the mean over the texts; its line, and the brackets, say where it lies with 95 % certainty.${ceiling}`);
}

function drawTrial(element, payload, state) {
  drawTrials(section(element, "What the trial found", "part part-trials"), payload, state);
}
