// What the page and the server tell one another (docs/serve.md), and the page's own state. Only the type checker reads this file.

interface LabSite { name: string; kind: string; layer: number; heads: number }
interface LabInput { text?: string; pair?: string; prefix?: string; picture?: string }
interface LabModel {
  key: string; name: string; about: string; task: string; takes: string; labels: string[]; sites: LabSite[];
  longest: number; data: string[]; examples: LabInput[]; error: string | null;
}
interface LabMethod {
  name: string; family: string; family_name: string; signed: boolean; maps: string | null; cost: string;
  summary: string; reading: string; paper: string;
}
interface LabCatalogue {
  models: LabModel[]; methods: LabMethod[]; rankings: string[]; removals: string[]; actions: string[];
  default: {model: string, method: string}; limits: Record<string, number>;
}
interface LabEdit {
  action: string; kind?: string; layer?: number; heads?: number[]; queries?: number[]; keys?: number[];
  factor?: number; seed?: number; weights?: unknown[];
}
// One line of the list of interventions. `made` says which panel owns it.
interface LabItem { label: string; edits: LabEdit[]; made?: string }
// A word that was removed: its tokens. The order is that of the clicks.
type LabRemoved = number[];
interface LabMark { text: string; pair?: string; label: string; spans: number[][] }
interface LabAgainst { what: "method" | "text" | "model"; value: string }

// What the address keeps, and what undo brings back (`items` and `removed`).
interface LabKept {
  model: string; input: LabInput; target: string | null; position: number | null; method: string;
  items: LabItem[]; removed: LabRemoved[]; removal: string;
  mode: string; tab: string; shown: string; view: Record<string, unknown>; against: LabAgainst | null;
  tour: number | null; scheme: Theme | null;
}
interface LabState extends LabKept {
  catalogue: LabCatalogue; explanation: TextPayload | null; intervened: LabIntervened | null; without: LabWithout | null;
  marked: number[]; marks: LabMark[]; busy: boolean; search: LabJob | null;
}
interface LabStore {
  state: LabState;
  set(change: Partial<LabState>): void;
  on(names: (keyof LabState)[], listener: () => void): void;
  act(change: Partial<Pick<LabKept, "items" | "removed">>): void;
  undo(): void; redo(): void; canUndo(): boolean; canRedo(): boolean; forget(): void;
}

interface LabOutcome { prediction: Answer[]; score: number | null }
interface LabIntervened {
  before: LabOutcome; after: LabOutcome; target: string; flipped: boolean; moved: number | null;
  maps: {before: MappedPayload, after: MappedPayload} | null; seconds: number;
}
interface LabLeft { score: number | null; chosen: boolean | null }
interface LabWithout { target: string; whole: LabLeft; without: LabLeft[]; removable: number[]; seconds: number }
interface LabCurve { name: string; order: number[] | null; scores: (number | null)[]; mean: number | null }
interface LabCurves { target: string; counts: number[]; curves: LabCurve[]; standing: number | null; seconds: number }

interface LabProgress { what: string; done: number; total: number | null; left: number | null }
interface LabJobRequest { job: string; model: string; [name: string]: unknown }
interface LabJob {
  id: string; job: string; model: string; title: string; state: string; created: number; ended: number | null;
  request: LabJobRequest; progress: LabProgress | null; points?: number[][]; points_total?: number; result?: any; error: string | null;
}
interface LabFound {
  distance: number; largest: number; change: number; tolerance: number | null; site: string; before: LabOutcome; after: LabOutcome;
  own: MappedPayload; other: MappedPayload; edits: LabEdit[]; note: string;
}
interface LabPoint { heads: number; accuracy: number; low: number; high: number }
interface LabPruned {
  by: string; data: string; texts: number; heads: number; points: LabPoint[]; random: LabPoint[];
  order: {kind: string, layer: number, head: number, importance: number}[];
}

// A line of a small plot, in the units of its axes.
interface LabLine { name: string; points: number[][]; look: string; dots?: boolean }
interface LabAxes { across: string; up: string; from?: number[]; to?: number[]; label: string }

interface TourStep {
  title: string; says: [string, string]; question: string;
  state: Partial<LabKept>;
}
