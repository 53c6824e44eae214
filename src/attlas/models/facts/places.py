"""Places of models: built-in names, folders and hub ids; nothing is loaded to find them."""

from importlib.resources import files
from pathlib import Path

from attlas.errors import ModelError


def embedded_names() -> list[str]:
    """The names of the models that come with Attlas."""
    folder = files("attlas.embedded")
    return sorted(item.name for item in folder.iterdir() if item.joinpath("config.json").is_file())


def find_model(name: str) -> str:
    """The folder of a built-in name or a folder; a hub id is returned as it is."""
    if name in embedded_names():
        return str(files("attlas.embedded").joinpath(name))
    path = Path(name).expanduser()
    if path.is_dir():
        if not (path / "config.json").is_file():
            raise ModelError(f"the folder {name} has no config.json, so it holds no model")
        return str(path)
    if path.exists():
        raise ModelError(f"{name} is a file: give the folder that holds the model")
    if name.startswith((".", "/", "~")) or name.count("/") > 1:
        raise ModelError(f"the folder {name} is not there")
    return name
