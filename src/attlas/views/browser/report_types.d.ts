// What the payload of a report holds. Only the type checker reads this file.

// A figure with its 95 % interval and the number of texts; what is not known is null.
interface Figure { value: number | null; low: number | null; high: number | null; n?: number | null }
type Cell = string | number | boolean | null | undefined;
type Span = number[];
interface Mark { at: number }
interface TrackItem { figure: Figure; family: string; shape?: number }

interface LeftOutRow { row: string; reason: string; shown: string | null }
interface ReportData {
  name: string; texts: number; labels: string[]; accuracy: Figure | null;
  left_out: Record<string, number>; left_out_rows: LeftOutRow[];
}
interface Bounds {
  s: Figure; less_control: Figure | null; less_reference: Figure | null; control: string; reference: string;
  finding: "for" | "in part" | "against" | "open"; why: string;
}
interface Direction { removal: string; highlighted: Figure; all_tokens: Figure }
interface GroupFigure { group: string; removal: string; s: Figure; without_room: number; texts: number }
interface GridWord { floor: number; margin: number; word: string }
interface BetterReading { method: string; family: string; s: Figure; gain: Figure; better: boolean }
interface Verdict {
  word: string; sentence: string; which_way: string; next_step: string; method: string; bounds: Record<string, Bounds>;
  texts: number; used: Figure | null; same_word: number; directions: Direction[]; by_group: GroupFigure[]; grid: GridWord[];
  readings: BetterReading[]; notes: string[]; plain: string;
}
interface Rules { floor?: number; margin?: number; least_use?: number }
interface Finding {
  title: string; sentence: string; figure: Figure; section: string; does_not_show: string; span: Span; mark: number | null;
  difference: boolean;
}
interface TableColumn { measure: string; removal: string; better: string; kind: string }
interface PlacedColumn extends TableColumn { index: number }
interface TableCell { figure: Figure; best: boolean; p: number | null; note: string }
interface TableRow { method: string; family: string; cells: TableCell[] }
interface Standing { method: string; family: string; removal: string; figure: Figure }
interface PanelLine {
  method: string; family: string; mean: (number | null)[]; low: (number | null)[]; high: (number | null)[];
}
interface Panel { measure: string; removal: string; better: string; axis: string; places: number[]; lines: PanelLine[] }
interface Agreement { methods: string[]; by: Record<string, (number | null)[][]>; sentence: string }
interface RemovalPair { measure: string; one: string; other: string; figure: Figure }
interface UnusualTexts { removal: string; figure: Figure; usual: string; remedy: string }
interface SampleReading {
  method: string; scores: number[]; signed: boolean; removed: number[]; label: string; probability: number | null;
}
interface SampleTruth { importance: (number | null)[]; pull: (number | null)[]; s: number | null }
interface Sample {
  point: string; tokens: string[]; label: string; probability: number | null; removal: string; readings: SampleReading[];
  section: string; truth: SampleTruth | null; licence: Licence | null; words?: number[][]; true_label: string | null;
}
interface TestedSample extends Sample { truth: SampleTruth }
interface TrialFigure { name: string; figure: Figure; ceiling: number | null }
interface TrialSection {
  name: string; sentence: string; scope: string; figures: TrialFigure[]; plots: Plot[]; does_not_show: string;
}
interface Cost { part: string; seconds: number; texts: number | null }
interface Settings { rules?: Rules; [name: string]: unknown }

// What a report and a trial that was run by itself have in common.
interface TriedPayload extends Payload { data: ReportData; trials: TrialSection[] }
interface ReportPayload extends TriedPayload {
  question: string; model: string; verdict: Verdict; findings: Finding[]; table: {columns: TableColumn[], rows: TableRow[]};
  standings: Standing[]; panels: Panel[]; agreement: Agreement | null; removals: RemovalPair[]; unusual: UnusualTexts[];
  examples: Sample[]; plausibility: Finding | null; does_not_show: string[]; settings: Settings; versions: Record<string, string>;
  costs: Cost[]; seed: number; seconds: number; command: string;
}
// The title of a section, what draws it, whether there is anything to draw, and what its folded line says.
type ReportSection = [
  title: string, draw: (made: HTMLElement, payload: ReportPayload, state: State) => void,
  isThere: (payload: ReportPayload) => unknown, told: (payload: ReportPayload) => string,
];

// Plots, one shape for each kind.
interface PlotAxes { title: string; reading: string; x_label: string; y_label: string }
type Numbers = (number | null)[];
interface ScatterPlot extends PlotAxes { kind: "scatter"; groups: {name: string, x: Numbers, y: Numbers}[]; arrows_from?: string }
interface CurvePlot extends PlotAxes {
  kind: "curve"; x: Numbers; lines: {name: string, y: Numbers, low: Numbers | null, high: Numbers | null}[];
}
interface BarsPlot extends PlotAxes {
  kind: "bars"; bars: {name: string, value: number | null, low: number | null, high: number | null}[];
}
interface Violin { name: string; count: number; places: number[]; widths: number[]; marks: number[] }
interface ViolinsPlot extends PlotAxes { kind: "violins"; groups: Violin[] }
interface MatrixPlot extends PlotAxes { kind: "matrix"; rows: string[]; columns: string[]; values: Numbers[] }
interface MapsPlot extends PlotAxes { kind: "maps"; rows: string[]; columns: string[]; maps: {name: string, values: Numbers[]}[] }
interface TablePlot extends PlotAxes { kind: "table"; columns: string[]; rows: (string | number | null)[][] }
type Plot = ScatterPlot | CurvePlot | BarsPlot | ViolinsPlot | MatrixPlot | MapsPlot | TablePlot;
interface HeatScale { top: number; signed: boolean; numbered: boolean }

// The sheet that a drawing of a figure is made on.
interface Edge { right: number; bottom: number }
interface Sheet { frame: DOMRect; edge: Edge; parts: Element[] }
interface Place { x: number; y: number; width: number; height: number }

// A study: every published claim with ours beside it.
interface Ours { value: number | null; low: number | null; high: number | null }
interface StudyClaim {
  said: string; verdict: string; ours: Ours | null; published: number | null; difference: number | null;
  found: string; rule: string; source: string; over: string;
}
interface StudyTable {
  title: string; reading: string; cells: string[][]; rows: {name: string, ours: Ours, published: number | null}[];
}
interface StudyPayload extends Payload {
  name: string; question: string; paper: string; answer: string; warning: string; seeds: number[]; claims: StudyClaim[];
  tables: StudyTable[]; plots: Plot[]; differs: string[]; seconds: number; machine: string; code: string;
  settings: {[name: string]: unknown}; versions: {[name: string]: string};
}
