"""The axes of every tensor, named once. The test run checks them; production code pays nothing.

batch: inputs of equal length · head, query, key: attention · token: what has a score
place, choice: a model's output seen as rows of alternatives · feature: hidden width
width: of the value that a head mixes of a key · layer: of a stack, from the bottom
network, top, node: attention as a graph, its highest nodes, all of them
sample, player: sets of tokens that stay, and the tokens that may go · direction: in a hidden state
output: tokens that a model wrote · row, column, colour: a picture
way: sets of a text's content tokens that are removed · option: what a model can answer
every: the heads of all sites, in their order · example: texts of a data set · draw: means of them
copy: other attentions of the same texts · order: of erasing weights
text, method: what is compared over a data set · statistic, term: figures, and ratios they add up

Where one input has several targets, what is of the input has a batch of one, and what is of the
targets a row for each: such a batch is written `#batch`.
"""

import numpy as np
from jaxtyping import Bool, Float, Int, UInt8
from torch import Tensor

Attention = Float[Tensor, "#batch head query key"]
Visible = Bool[Tensor, "#batch #head query key"]
ManyAttentions = Float[Tensor, "#variant batch head query key"]
EntryMarks = Bool[Tensor, "batch #head query key"]
HeadOutput = Float[Tensor, "head width"]
HeadMean = Float[Tensor, "#batch query key"]
HeadValues = Float[Tensor, "... key width"]
OneRowSees = Bool[Tensor, "... 1 key"]
OneRowWeighs = Float[Tensor, "... 1 key"]
HeadKeys = Float[Tensor, "... key feature"]
HeadVectors = Float[Tensor, "#batch head key feature"]
HeadMatrices = Float[Tensor, "head width feature"]
GatedValues = Float[Tensor, "#batch query key head width"]
HeadRanks = Int[Tensor, "..."]
HeadScores = Float[Tensor, "batch every"]
HeadSwitches = Bool[Tensor, "set #batch every"]
HeadMeans = Float[Tensor, "#batch head"]
QueryWeights = Float[Tensor, "batch query"]
QuerySizes = Float[Tensor, "#batch query"]
ReadRows = Float[Tensor, "batch head key"]  # of an attention, those that are read as one
KeyOrders = Int[Tensor, "batch key"]
MixedValues = Float[Tensor, "batch head token width"]
QueryMarks = Bool[Tensor, "batch query"]
KeyMarks = Bool[Tensor, "batch key"]
FreeWeights = Float[Tensor, "... batch head row key"]
SiteWeights = Float[Tensor, "... _ _ _ _"]  # the same, where sites of different sizes come together
CopiedAttention = Float[Tensor, "_ head query key"]  # a row for each copy of each input
FreeMarks = Bool[Tensor, "batch head row key"]
Holders = Int[Tensor, " token"]  # the place of a later stage that holds each token
SpreadAttention = Float[Tensor, "#batch head token token"]
SpreadVisible = Bool[Tensor, "#batch #head token token"]
PlacedMap = Float[Tensor, "#batch _ _"]  # over the places of a stage, or over tokens
PlacedRows = Float[Tensor, "batch _"]
TokenScores = Float[Tensor, "batch token"]
Hidden = Bool[Tensor, "sample token"]
TokenIds = Int[Tensor, "batch token"]
TokenKinds = Bool[Tensor, "batch token"]
WantedKeys = Bool[Tensor, "batch token token"]
BatchScores = Float[Tensor, " batch"]
Vectors = Float[Tensor, "batch token feature"]
StateVectors = Float[Tensor, "token feature"]
StateRows = Float[Tensor, "batch feature"]
StreamVectors = Float[Tensor, "batch _ _"]  # where streams of different lengths come together
SharedVectors = Float[Tensor, "#batch token feature"]
TokenSums = Float[Tensor, " token"]
Directions = Float[Tensor, "direction feature"]
Coalitions = Bool[Tensor, "sample player"]
SampleWeights = Float[Tensor, " sample"]
SampleValues = Float[Tensor, "sample target"]
TargetValues = Float[Tensor, " target"]
PlayerScores = Float[Tensor, "target player"]
Table = Float[Tensor, "input target"]
Logits = Float[Tensor, "batch place choice"]
Distributions = Float[Tensor, "*#rows choice"]
PaddedRows = Float[Tensor, "text token"]  # texts of different lengths, with marks of what counts
PaddedMarks = Bool[Tensor, "text token"]
CopiedRows = Float[Tensor, "copy text token"]
CopiedMarks = Bool[Tensor, "copy text token"]
CopiedAnswers = Float[Tensor, "copy text choice"]
CopyValues = Float[Tensor, "copy text"]
OrderRows = Float[Tensor, "order text token"]

TokenVector = Float[np.ndarray, " token"]
KeyVector = Float[np.ndarray, " key"]
KeyValues = Float[np.ndarray, "key width"]
TokenMarks = Bool[np.ndarray, " token"]
Ways = Bool[np.ndarray, "_ token"]  # `[way, token]`, where ways of different number come together
WayScores = Float[np.ndarray, " way"]
WayMarks = Bool[np.ndarray, " way"]
WayDistributions = Float[np.ndarray, "way option"]
OutputScores = Float[np.ndarray, "output token"]
Picture = UInt8[np.ndarray, "row column colour"]
LayerMap = Float[np.ndarray, "query key"]
LayerMaps = Float[np.ndarray, "layer token token"]
NodesBelow = Bool[np.ndarray, "top node"]
NodesAbove = Bool[np.ndarray, "token node"]
ChosenTops = Bool[np.ndarray, "network top"]
Capacities = Int[np.ndarray, "_ _"]  # where levels of different sizes come together
SiteMap = Float[np.ndarray, "head query key"]
HeadVector = Float[np.ndarray, " every"]
HeadTable = Float[np.ndarray, "example every"]
HeadDraws = Float[np.ndarray, "draw every"]
HeadPairs = Float[np.ndarray, "every every"]
TextValues = Float[np.ndarray, " text"]
TextMarks = Bool[np.ndarray, " text"]
SomeTextValues = Float[np.ndarray, " _"]
StateTable = Float[np.ndarray, "_ feature"]
StateVector = Float[np.ndarray, " feature"]
ToleranceTexts = Float[np.ndarray, "tolerance text"]
ShareTexts = Float[np.ndarray, "_ text"]  # `[share of tokens removed, text]`
TextSites = Float[np.ndarray, "text site"]
TextGroups = Int[np.ndarray, " text"]
MethodValues = Float[np.ndarray, "text method"]
MethodVector = Float[np.ndarray, " method"]
MethodScores = Float[np.ndarray, "method token"]
MethodPairs = Float[np.ndarray, "method method"]
TextTerms = Float[np.ndarray, "text statistic term"]
