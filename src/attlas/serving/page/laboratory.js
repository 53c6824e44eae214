import { embed } from "./views.js";

const form = document.getElementById("ask");
form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const text = document.getElementById("text").value;
  const answer = await fetch("api/explain", {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ model: "sentiment", input: { text } }),
  });
  const found = await answer.json();
  const view = document.getElementById("view");
  view.replaceChildren();
  embed(view, found.explanation);
});
