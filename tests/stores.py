"""A store of objects that processes share: `disk:///a/folder/name`, each object whole or not there.

It has no locks and no renaming, and folders are only parts of names, as in the stores of clouds.
"""

import io
import os
from pathlib import Path
from uuid import uuid4

import fsspec
from fsspec.spec import AbstractFileSystem


class DiskStore(AbstractFileSystem):
    """Objects in files; `fails` is called with each name before it is written."""

    protocol = "disk"
    cachable = False
    fails = staticmethod(lambda path: None)

    @classmethod
    def _strip_protocol(cls, path):
        return str(path).removeprefix("disk://").rstrip("/")

    def info(self, path, **_):
        place = Path(self._strip_protocol(path))
        if place.is_file():
            return {"name": str(place), "type": "file", "size": place.stat().st_size}
        if place.is_dir() and any(place.iterdir()):
            return {"name": str(place), "type": "directory", "size": 0}
        raise FileNotFoundError(path)

    def ls(self, path, detail=True, **_):
        if self.info(path)["type"] == "file":
            found = [self.info(path)]
        else:
            found = [self.info(each) for each in sorted(Path(self._strip_protocol(path)).iterdir())]
        return found if detail else [each["name"] for each in found]

    def mkdir(self, path, create_parents=True, **_):
        if not Path(path).parent.is_dir():
            raise FileNotFoundError(path)

    def cat_file(self, path, start=None, end=None, **_):
        return Path(self._strip_protocol(path)).read_bytes()[start:end]

    def pipe_file(self, path, value, mode="overwrite", **_):
        self.fails(path)
        place = Path(self._strip_protocol(path))
        place.parent.mkdir(exist_ok=True)
        draft = place.parent.parent / f".{uuid4().hex}"
        draft.write_bytes(value)
        os.replace(draft, place)

    def put_file(self, lpath, rpath, **_):
        self.pipe_file(rpath, Path(lpath).read_bytes())

    def _open(self, path, mode="rb", **_):
        assert mode == "rb"
        return io.BytesIO(self.cat_file(path))

    def _rm(self, path):
        place = Path(self._strip_protocol(path))
        place.unlink()
        if not any(place.parent.iterdir()):
            place.parent.rmdir()


fsspec.register_implementation("disk", DiskStore, clobber=True)
