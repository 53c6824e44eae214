// The ten steps of the tour. Each is a state of the page; the numbers in it are found on the built-in models.

const REVIEW = {text: "The acting is superb, but the plot is boring and far too long."};

/** @type {TourStep[]} */
export const STEPS = [
  {title: "x", says: ["a", "b"], question: "q", state: {model: "sentiment", input: REVIEW, method: "raw_attention"}},
];
