// What a payload holds, and the records that views pass on. Only the type checker reads this file.

type Theme = "light" | "dark";
type Level = "tokens" | "words" | "sentences";
type Colour = number[];
// What of the state a group of buttons chooses.
type ChoiceName = "unit" | "ranking" | "look" | "together" | "wordOrder" | "view" | "likeness";

interface Token {
  text: string; label: string; score?: number; special: boolean; segment: string;
  start: number | null; end: number | null;
}
interface Group { text: string; special: boolean; segment: string; positions: number[]; score?: number }
// A token, a word or a sentence, with its score; `weight` is that of a map instead of a score.
interface Placed extends Group { label?: string; start: number | null; end: number | null; weight?: number; told?: string }
interface Unit extends Placed { score: number }

interface MapSite {
  name: string; kind: string; layer: number; queries: number[]; keys: number[];
  shape: number[]; limits: number[]; data: string | DataView; codes: "uint8" | "int8" | "float16";
  patterns?: Record<string, number[]>; importance?: number[]; numbers?: number[];
}
interface MapsSection { signed: boolean; shows: string; sites: MapSite[] }
interface Picture { segment: string; grid: number[] | null; image: string | null }
interface Target { name: string; quantity: string; contrast: string | null; value: number | null; position?: number | null }
interface Answer { label: string; probability?: number | null; value?: number | null }
interface ScoreSum { base?: number; of?: string; rest_of?: string; scores: number }
interface Licence { word: string; why: string; signed: boolean; removals: LicenceRemoval[] }
interface LicenceRemoval {
  removal: string; share: number | null; p: number | null; reliability: number | null; right_way: number | null;
  for_target: number | null; enough: number[] | null; needed: number[] | null;
}
interface Interval { mean: number; low: number; high: number }
interface CurvePoint { place: number; accuracy: Interval }
interface Curve { name: string; area: Interval; ahead?: Interval | null; points: CurvePoint[] }
interface Chart { title?: string; axis: string; labels: string[]; curves: Curve[] }
interface HeadFigure { site: string; head: number; importance: number; low: number; high: number; rank: number }
interface Importance { by: string; reading: string; sites: {name: string, heads: HeadFigure[]}[] }

// Newer browsers have it.
interface Uint8ArrayConstructor { fromBase64?(text: string): Uint8Array<ArrayBuffer> }

// What a payload of any kind may have.
interface Payload {
  kind: string; headline?: string; model?: string; method?: string; task?: string; target?: Target | null;
  true_label?: string | null; warning?: string | null; notes?: string[]; reading?: string; paper?: string;
  options?: Record<string, unknown>; versions?: Record<string, string>; attlas?: string; code?: string;
  signed?: boolean; tokens: Token[]; words?: Group[] | null; sentences?: Group[] | null;
  pictures?: Picture[]; sinks?: Sink[]; maps?: MapsSection | null; outputs?: number[]; importances?: Importance[];
  sources?: Record<string, string>; opens?: Wishes;
}
interface Sink { position: number; share: number }
interface TextPayload extends Payload {
  signed: boolean; prediction?: Answer[];
  licence?: Licence | null; sum?: ScoreSum | null; sums?: (ScoreSum | null)[]; targets?: Target[];
}
interface MappedPayload extends TextPayload { maps: MapsSection }
interface GenerationPayload extends TextPayload {
  outputs: number[]; targets: Target[]; predictions: Answer[][]; shape: number[]; data: string | DataView;
}
interface CheckPayload extends Payload {
  passed: boolean; answers: {question: string, answer: string}[]; methods: Record<string, string>;
}
interface HeadsPayload extends Payload { importances: Importance[]; charts: Chart[] }
interface Measured {
  measure: string; removal: string | null; value: number | null; shuffled: number | null; ceiling: number | null;
  share: number | null; p: number | null; better: string; reading: string; circular: boolean; note: string | null;
}
interface JudgementPayload extends TextPayload { measured: Measured[] }
interface RedundancyPayload extends Payload {
  heads: string[]; distances: (number | null)[][]; nearest: {one: string, other: string, distance: number}[];
}
interface TreeEdge { parent: number; child: number; layer: number; attribution: number }
interface TreeBox { position: number; label: string; special: boolean; segment: string; x: number; y: number; width: number }
interface TreePayload extends TextPayload {
  root: number; edges: TreeEdge[]; layers: number; share: number;
  drawing: {width: number, height: number, layers: {layer: number, y: number}[], boxes: TreeBox[]};
}
interface TriggerEffect {
  label: string; texts: number; before: number; control: number; after: number; drop: number; low: number; high: number;
}
interface TriggerRow {
  text: string; strongest: TriggerEffect; effects: TriggerEffect[]; predicted: string; site: string; head: number;
  entries: {query: string, key: string, attribution: number}[]; found_in: string;
}
interface TriggersPayload extends Payload { triggers: TriggerRow[] }
interface TrialPayload extends Payload {
  model: string; reading: string; data: ReportData; trials: TrialSection[];
}
// The tokens of a comparison are words; `texts` are those of a row, where the texts differ.
interface ComparedRow {
  name: string; target: Target; signed: boolean; limit: number; special: number;
  scores: (number | null)[];  // null where its text does not have the word
  words: ({text: string, start: number | null, end: number | null} | null)[] | null;  // if the texts differ
  sources: Record<string, string> | null;
}
interface ComparedPair {
  one: number; other: number; tau: number | null; overlap: number; chance: number; by: string; words: number;
}
interface ComparisonPayload extends TextPayload { rows: ComparedRow[]; pairs: ComparedPair[]; top: number }

// One line of KEPT.
interface KeptName {
  start: (payload: Payload) => unknown;
  read: (text: string, payload: Payload, state: {layer: number}) => unknown;
}
// The state: what KEPT declares, and what a page finds out by itself.
type Kept = {
  [name in keyof typeof KEPT]:
    ReturnType<(typeof KEPT)[name]["start"]> | Exclude<ReturnType<(typeof KEPT)[name]["read"]>, undefined>
};
interface State extends Kept {
  tip: {element: Element, unit: Placed} | null; theme: Theme; width: number; over: number[] | null;
  scores: ArrayLike<number>; matrix: ScoreMatrix | null;
  on(names: (keyof State)[], listener: () => void): void;
  set(change: Partial<State>): void;
}
// The scores of a generation: rows are outputs, columns are tokens.
interface ScoreMatrix { rows: number; columns: number; values: Float32Array; rowAt: Map<number, number> }
interface WrittenState extends State { matrix: ScoreMatrix }
type Wishes = Record<string, unknown>;
type ElementsAt = Map<number, Element[]>;
type Draw = (element: HTMLElement, payload: any, state: any) => unknown;

// One head. `codes` index `shares`, the share of `limit` that each code stands for, and `ranks`, how far it is from zero.
interface Head {
  codes: Uint8Array; shares: Float64Array; ranks: Uint8Array; queries: number; keys: number; limit: number;
  value(row: number, column: number): number; step(weight: number): number;
}
// A part of a head, in weights; it may have fractions.
interface HeadPart { top: number; bottom: number; left: number; right: number }
interface HeadLevel { codes: Uint8Array; queries: number; keys: number; scale: number }
interface PackedStream { packed: Uint8Array; at: number; bits: number; count: number; out: Uint8Array<ArrayBuffer>; to: number }
interface SymbolTable { table: Uint16Array; mask: number }
// What the maps say of a word and every patch; without a link there are no values.
interface PatchLink { key: string; values: number[] | null; told: string[] }
// A matrix that the pointer and the arrow keys move over; `part` is what is shown of it.
interface Grid {
  head: {queries: number, keys: number}; cell: number; at: [number, number] | null; bands: Element[]; part?: HeadPart;
}
interface LargeMatrix extends Grid {
  site: MapSite; head: Head; part: HeadPart; canvas: HTMLCanvasElement; element: HTMLElement; labels: ElementsAt;
  named: Element[]; light(): void; listen(readout: HTMLElement): void;
}
interface ScoreTable extends Grid {
  rows: Unit[]; columns: Unit[]; values: number[][]; limit: number; element: HTMLElement; plot: HTMLElement;
  canvas: HTMLCanvasElement; down: HTMLElement[]; across: HTMLElement[];
}
// How bars are drawn.
interface Look {
  limit: number; places?: Map<number, string>; signed?: boolean;
  write?: (score: number, limit: number, signed: boolean) => string;
}
// What a notebook hands to a widget.
interface WidgetModel {
  get(name: string): any; set(name: string, value: unknown): void; save_changes(): void;
  on(name: string, listener: () => void): void; off(name: string, listener: () => void): void;
}
// Where the tokens of lines stand: at which place of the map, and at which position of the text.
interface LinePlace { position: number; place: number }
type LineSide = "query" | "key";
interface LineHead { head: Head; number: number }
interface LineFocus { side: LineSide; places: Set<number> }
interface LinesView {
  body: HTMLElement; canvas: HTMLCanvasElement; columns: Record<LineSide, HTMLElement>; left: LinePlace[]; right: LinePlace[];
  first: number; most: number; over: {side: LineSide, index: number} | null; marked: HTMLElement[];
  width: number; height: number; sharp: number;
}
// A head in the picture of the whole model, and one of its weights.
interface HeadSlot { site: MapSite; layer: number; head: number; row: number; column: number }
interface SlotPoint { slot: HeadSlot; query: number | null; key: number | null }
type Inks = Record<"paper" | "quiet" | "line" | "mark" | "mono", string>;
// `x`, `y` and `scale` say where the model lies on the canvas; a head takes `pitch` pixels of `tiles`, `tile` of them filled.
interface ModelView {
  canvas: HTMLCanvasElement; payload: MappedPayload; state: State; slots: HeadSlot[]; columns: number; rows: number; ordered: boolean;
  x: number; y: number; scale: number; fitted: number; filled: number; left: number; top: number; width: number; height: number;
  sharp: number; pitch: number; tile: number; tiles: HTMLCanvasElement; scrap: HTMLCanvasElement; drawn: number; until: number;
  near: Map<HeadSlot, HTMLCanvasElement>; at: SlotPoint | null; ink: Inks; told: string | null; later: number;
  stop(): void; ask(): void; tell(): void;
}
// A stack of layers, and where its flow is drawn. A tree has edges from the start, maps have them once they are drawn.
interface FlowEdge { layer: number; to: number; from: number; value: number }
interface Stack {
  kind: string; positions: number[]; names: string[]; signed: boolean; shows: string; sites: MapSite[]; tables: Float64Array[];
  edges: FlowEdge[] | null;
}
interface FlowPlan {
  top: number; reach: Float64Array[]; grown: FlowEdge[]; all: FlowEdge[]; shown: number[]; margin: number; height: number;
  wide: number; levels: number; ribbons: SVGElement; x(level: number): number; y(row: number): number;
}
// A part of the maps that was clicked; what is left out is meant as a whole. `again`: it was open already.
interface PickedPlace { site: MapSite; head?: number; row?: number; column?: number; again?: boolean }
interface Box { left: number; top: number; right: number; bottom: number }
type Picked = PickedPlace & {box: Box};
interface PatchedPicture extends Picture { patches: Placed[] }
// Picks rows of what was written: one unit, or all from the first of a drag to the last.
interface Chooser { begin(rows: number[]): void; reach(rows: number[]): void; pick(rows: number[], extend: boolean): void }
