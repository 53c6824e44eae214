// An explanation: the text in the colours of its scores, the strongest units, and the maps.

VIEWS.explanation = [
  drawHeader, drawReading, beside([drawPrediction, drawPicture, drawText], [drawBars, drawSum]),
  drawLicence, drawMaps, drawFlow, drawNotes, drawFoot, drawTip
];
