"""The order of the house: which room may import which, and how large folders and files may be."""

import ast
from collections import Counter
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import attlas

HOUSE = Path(attlas.__file__).parent
FLOORS = [
    {"errors", "keeping", "progress", "restoring", "shapes", "version"},
    {"catalogue", "data", "registry", "tokens", "verbs", "views"},
    {"results"},
    {"mathematics"},
    {"models"},
    {"engine", "removing"},
    {"methods"},
    {"checking", "explaining", "objectives"},
    {"embedded", "training"},
    {"heads", "measures", "scoring", "trials"},
    {"judging"},
    {"auditing", "studies"},
    {"listing", "planning", "registering"},
    {"serving"},
    {"cli"},
]
MODEL_FLOORS = [
    {"loading"},
    {"facts", "recurrent"},
    {"tap"},
    {"encoding"},
    {"asking"},
    {"states", "branching", "rows"},
    {"decomposing", "relevance"},
    {"intervening", "teaching"},
    {"subject"},
    {"adapting", "load"},
]
# One file for each registered part.
PART_FOLDERS = {"methods", "measures", "objectives", "trials", "studies"}
MOST_FILES = 15
MOST_LINES = 300
MOST_LEVELS = 3
MOST_WITH_ONE_USER = 56  # modules that one other module imports: this may only become smaller
# Class names that exist more than once. The list may only become shorter.
NAMES_TWICE: set[str] = set()
FLOOR_OF = {room: floor for floor, rooms in enumerate(FLOORS) for room in rooms}


def room_of(path):
    return path.relative_to(HOUSE).parts[0].removesuffix(".py")


@cache
def nodes(path):
    """Whatever a file says, as a list: all tests look at the same."""
    return list(ast.walk(ast.parse(path.read_text())))


def imported_modules(path):
    """The modules of attlas that a file imports, wherever in the file it does so."""
    for node in nodes(path):
        modules = []
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are written in full"
            modules = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        yield from (module for module in modules if module.startswith("attlas."))


def imported_rooms(path):
    return [module.split(".")[1] for module in imported_modules(path)]


def module_name(path):
    names = path.relative_to(HOUSE.parent).with_suffix("").parts
    return ".".join(names).removesuffix(".__init__")


def files():
    doors = {HOUSE / "__init__.py", HOUSE / "__main__.py"}
    return [path for path in HOUSE.rglob("*.py") if path not in doors]


def test_a_room_imports_only_from_floors_below():
    wrong = [
        f"{path.relative_to(HOUSE)} imports {room}"
        for path in files()
        for room in imported_rooms(path)
        if room != room_of(path) and FLOOR_OF[room] >= FLOOR_OF[room_of(path)]
    ]
    assert wrong == []


def test_every_room_has_a_floor():
    assert {room_of(path) for path in files()} == set(FLOOR_OF)


def test_a_storey_of_the_model_room_imports_only_from_storeys_below():
    floor_of = {storey: floor for floor, each in enumerate(MODEL_FLOORS) for storey in each}
    models = HOUSE / "models"
    wrong, storeys = [], set()
    for path in models.rglob("*.py"):
        own = path.relative_to(models).parts[0].removesuffix(".py")
        if own == "__init__":
            continue
        storeys.add(own)
        below = [name.split(".")[2] for name in imported_modules(path) if ".models." in name]
        wrong += [
            f"{path.relative_to(HOUSE)} imports {storey}"
            for storey in below
            if storey != own and floor_of[storey] >= floor_of[own]
        ]
    assert wrong == []
    assert storeys == set(floor_of)


def test_no_module_imports_itself_by_way_of_others():
    known = {module_name(path): path for path in files()}
    graph = {}
    for name, path in known.items():
        modules = imported_modules(path)
        graph[name] = {each if each in known else each.rpartition(".")[0] for each in modules}
        graph[name] -= {name}
    TopologicalSorter(graph).prepare()  # raises CycleError, which names the modules


def test_no_import_is_for_the_type_checker_alone():
    wrong = [path for path in files() if "TYPE_CHECKING" in path.read_text()]
    assert wrong == []


def test_folders_are_small_and_not_deep():
    folders = Counter(path.parent for path in HOUSE.rglob("*.py"))
    large = [
        str(folder.relative_to(HOUSE))
        for folder, count in folders.items()
        if count > MOST_FILES and str(folder.relative_to(HOUSE)) not in PART_FOLDERS | {"cli"}
    ]
    deep = [path for path in files() if len(path.relative_to(HOUSE).parts) > MOST_LEVELS]
    assert (large, deep) == ([], [])


def test_few_modules_have_a_single_user():
    """A helper with one user lives with it, unless both together would be hard to read."""
    known = {module_name(path): path for path in HOUSE.rglob("*.py")}
    users = {name: set() for name in known}
    for name, path in known.items():
        for each in imported_modules(path):
            users[each if each in known else each.rpartition(".")[0]].add(name)
    single = [name for name in users if len(users[name]) == 1 and is_helper(known[name])]
    assert len(single) <= MOST_WITH_ONE_USER, sorted(single)


def is_helper(path):
    """Whether a module is neither a folder's door, nor a registered part, nor a command."""
    *folders, _ = path.relative_to(HOUSE).parts
    parts = folders and folders[0] in PART_FOLDERS and len(folders) == 1
    parts = parts or folders == ["views", "figures"]  # each registers figures
    of_studies = (["studies", "recurrent"], ["studies", "better"], ["studies", "tables"])
    parts = parts or folders in of_studies  # of a study each
    parts = parts or folders in (["serving", "work"], ["serving", "jobs"])  # a request, a job each
    return path.name != "__init__.py" and not parts and folders[:1] != ["cli"]


def test_files_are_short():
    lengths = {path: len(path.read_text().splitlines()) for path in files()}
    assert [str(path) for path, length in lengths.items() if length > MOST_LINES] == []


def test_every_folder_says_in_one_sentence_what_it_is():
    for path in HOUSE.rglob("__init__.py"):
        text = ast.get_docstring(ast.parse(path.read_text())) or ""
        first = text.splitlines()[0] if text else ""
        assert first.endswith("."), f"{path} does not open with a sentence"


def test_no_class_name_exists_twice():
    names = Counter(
        node.name for path in files() for node in nodes(path) if isinstance(node, ast.ClassDef)
    )
    twice = {name for name, count in names.items() if count > 1}
    assert twice - NAMES_TWICE == set(), "choose another name"
    assert NAMES_TWICE - twice == set(), "unique now: take the name off the list"


def test_only_the_model_room_touches_modules():
    touching = {"register_forward_hook", "register_forward_pre_hook", "register_full_backward_hook"}
    wrong = [
        str(path.relative_to(HOUSE))
        for path in files()
        if room_of(path) != "models" and any(word in path.read_text() for word in touching)
    ]
    assert wrong == []


def test_private_names_of_transformers_stand_in_one_file():
    private = ("_attn_implementation", "masking_utils", "ALL_ATTENTION_FUNCTIONS")
    found = {path.name for path in files() if any(name in path.read_text() for name in private)}
    assert found == {"transformers_internals.py"}
