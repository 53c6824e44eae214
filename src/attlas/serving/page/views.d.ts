// The names that views/page.py exports from the views; the functions themselves are those of views/browser.

declare const _draw: typeof draw, _make: typeof make, _drawn: typeof drawn, _button: typeof button,
  _rove: typeof rove, _visible: typeof visible, _minus: typeof minus, _keptIn: typeof keptIn, _headOf: typeof headOf,
  _headNumber: typeof headNumber, _layerNames: typeof layerNames, _codeBox: typeof codeBox, _saveText: typeof saveText,
  _figureDrawing: typeof figureDrawing, _drawText: typeof drawText, _drawBars: typeof drawBars,
  _drawPicture: typeof drawPicture, _drawMaps: typeof drawMaps, _drawFlow: typeof drawFlow, _drawMatrix: typeof drawMatrix,
  _drawTip: typeof drawTip, _drawSideBySide: typeof drawSideBySide, _drawPairs: typeof drawPairs,
  _drawDifference: typeof drawDifference;

export {
  _draw as draw, _make as make, _drawn as drawn, _button as button, _rove as rove,
  _visible as visible, _minus as minus, _keptIn as keptIn, _headOf as headOf, _headNumber as headNumber, _layerNames as layerNames,
  _codeBox as codeBox, _saveText as saveText, _figureDrawing as figureDrawing, _drawText as drawText,
  _drawBars as drawBars, _drawPicture as drawPicture, _drawMaps as drawMaps, _drawFlow as drawFlow,
  _drawMatrix as drawMatrix, _drawTip as drawTip, _drawSideBySide as drawSideBySide, _drawPairs as drawPairs,
  _drawDifference as drawDifference,
};
