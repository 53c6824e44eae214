"""A room imports only from the floors below it, and knows its own neighbours in the room."""

import ast
from pathlib import Path

import attlas

HOUSE = Path(attlas.__file__).parent
FLOORS = [
    {"errors", "progress", "shapes", "version"},
    {"data", "registry", "tokens", "views"},
    {"results"},
    {"mathematics"},
    {"models"},
    {"removing"},
    {"methods"},
    {"explaining", "checking"},
    {"embedded"},
    {"heads", "measures", "scoring", "trials"},
    {"judging"},
    {"auditing", "studies"},
    {"cli"},
]
FLOOR_OF = {room: floor for floor, rooms in enumerate(FLOORS) for room in rooms}


def room_of(path):
    return path.relative_to(HOUSE).parts[0].removesuffix(".py")


def imported_rooms(path):
    for node in ast.walk(ast.parse(path.read_text())):
        modules = []
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are written in full"
            modules = [node.module]
            if node.module == "attlas":
                modules = [f"attlas.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        for module in modules:
            parts = module.split(".")
            if parts[0] == "attlas" and len(parts) > 1:
                yield parts[1]


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
