// An explanation: the text in the colours of its scores, the strongest units, and the maps.

VIEWS.explanation = [
  drawHeader, drawPrediction, drawNotes, drawPicture, drawText, drawLicence, drawBars, drawMaps,
  drawReading, drawFoot, drawTip
];
