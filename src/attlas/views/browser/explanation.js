// An explanation: the text in the colours of its scores, the strongest units, and the maps.

VIEWS.explanation = [
  drawHeader, drawReading, drawScores, drawLicence, drawMaps, drawNotes, drawFoot, drawTip
];

const besideText = beside([drawPrediction, drawPicture, drawText], [drawBars, drawSum]);
const besidePicture = beside([drawPicture], [drawPrediction, drawText, drawBars, drawSum], "pair pictured");

// A picture keeps its size, and everything else has the rest of the width.
function drawScores(element, payload, state) {
  const isPictured = payload.pictures?.some((picture) => !isSound(picture));
  (isPictured ? besidePicture : besideText)(element, payload, state);
}
