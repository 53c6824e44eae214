"""Published figures of the studies on recurrent models.

Jain and Wallace 2019: Table 2 in its first version, which the files of their repository hold too,
and what those files hold besides; figures of two classes are the mean of both. Changes under
permutation and ε-max JSD are read off their repository's plots.
"""

BINS = ("0 to 0.25", "0.25 to 0.5", "0.5 to 0.75", "0.75 to 1")  # of the largest weight
EDGES = (0.0, 0.25, 0.5, 0.75, 1.0)

# task: τ of attention and gradient (BiLSTM, average), of attention and leave-one-out (BiLSTM)
TABLE_2 = {
    "sst": (0.35, 0.605, 0.295),
    "imdb": (0.435, 0.675, 0.34),
    "20newsgroups": (0.14, 0.77, 0.13),
    "ag_news": (0.39, 0.77, 0.365),
    "facts": (0.25, 0.72, 0.16),  # their bAbI 1
}
TABLE_2_OF_CNN = {"sst": 0.477, "imdb": 0.452, "ag_news": 0.491, "20newsgroups": 0.446}
REMOVAL_OF_CNN = {"sst": 0.352, "imdb": 0.295, "ag_news": 0.360, "20newsgroups": 0.322}
SCALED_DOT_BILSTM = {"sst": 0.073, "imdb": 0.122, "ag_news": 0.305}
GRADIENT_AND_REMOVAL = {"sst": 0.656, "imdb": 0.517, "20newsgroups": 0.534, "ag_news": 0.612}
LATER_TABLE_2 = {"sst": (0.39, 0.69, 0.335)}  # the version of the proceedings

ACCURACY = {
    ("sst", "bilstm"): 0.808,
    ("sst", "average"): 0.807,
    ("sst", "cnn"): 0.823,
    ("imdb", "bilstm"): 0.898,
    ("imdb", "average"): 0.883,
    ("imdb", "cnn"): 0.901,
    ("20newsgroups", "bilstm"): 0.922,
    ("20newsgroups", "average"): 0.913,
    ("20newsgroups", "cnn"): 0.913,
    ("ag_news", "bilstm"): 0.958,
    ("ag_news", "average"): 0.954,
    ("ag_news", "cnn"): 0.958,
    ("facts", "bilstm"): 1.0,  # bAbI 1
}
AREA = {
    ("sst", "bilstm"): 0.902,
    ("sst", "average"): 0.895,
    ("sst", "cnn"): 0.908,
    ("imdb", "bilstm"): 0.960,
    ("imdb", "average"): 0.945,
    ("imdb", "cnn"): 0.962,
    ("20newsgroups", "bilstm"): 0.978,
    ("20newsgroups", "average"): 0.969,
    ("20newsgroups", "cnn"): 0.967,
    ("ag_news", "bilstm"): 0.990,
    ("ag_news", "average"): 0.988,
    ("ag_news", "cnn"): 0.990,
}
FAR_WITHIN_LOOSE = {
    ("sst", "bilstm"): 0.487,
    ("imdb", "bilstm"): 0.573,
    ("ag_news", "bilstm"): 0.632,
    ("20newsgroups", "bilstm"): 0.495,
    ("facts", "bilstm"): 0.468,
    ("sst", "average"): 0.479,
    ("imdb", "average"): 0.613,
    ("ag_news", "average"): 0.585,
    ("20newsgroups", "average"): 0.560,
}
OF_SMALL = "the published one is of texts whose largest weight is below 0.25."
# medians by bins of the largest weight
PERMUTED = {
    ("sst", "bilstm"): (0.030, 0.041, 0.071, 0.107),
    ("sst", "average"): (0.163, 0.173, 0.256, None),
    ("imdb", "bilstm"): (0.095, 0.167, 0.40, None),
    ("ag_news", "bilstm"): (0.003, 0.010, 0.041, 0.325),
}
