"""The files that `eval` is given: globs, standard input, the names of runs, and what a file says of
each query."""

from __future__ import annotations

import glob
import json
import re
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, cast

from streammetrics import InputError
from streammetrics_consumers.cli.arguments import UsageError
from streammetrics_consumers.model import formatting

STDIN: Final = "-"
_GLOB: Final = re.compile(r"[*?\[]")
_MOST_BYTES: Final = 1 << 28  # of a file of queries
_MOST_OF_STDIN: Final = 1 << 36
_PIECE: Final = 1 << 20
_WHOLE: Final = re.compile(r"-?[0-9]{1,15}")
_SEPARATORS: Final = re.compile(r"\t|,|\s+")


@dataclass(frozen=True, slots=True)
class InputFile:
    """A file: where its bytes are, and its name in messages."""

    path: Path
    name: str


@contextmanager
def input_files(
    words: Sequence[str], qrels: str | None
) -> Iterator[tuple[list[InputFile], InputFile | None]]:
    """The files that these words mean, in their order, and the one file of `qrels`: `-` is standard
    input, which is kept in a temporary file meanwhile, and patterns mean the files that match them,
    by name."""
    if [*words, qrels].count(STDIN) > 1:
        raise UsageError("eval: expected standard input once, got - twice; write it to a file")
    with tempfile.TemporaryDirectory() as folder:
        files = []
        for word in words:
            if word == STDIN:
                files.append(_spooled(Path(folder)))
            elif _GLOB.search(word) and not Path(word).exists():
                names = sorted(glob.glob(word, recursive=True))
                if not names:
                    raise UsageError(
                        f"eval: expected a pattern of files that are there, got "
                        f"{formatting.name(word)!r}, which none matches; correct it"
                    )
                files += [InputFile(Path(name), name) for name in names]
            else:
                files.append(InputFile(Path(word), word))
        if qrels is None:
            yield files, None
        else:
            is_stdin = qrels == STDIN
            yield files, _spooled(Path(folder)) if is_stdin else InputFile(Path(qrels), qrels)


def _spooled(folder: Path) -> InputFile:
    """Standard input as a file, whose suffix says what its bytes look like."""
    stream = sys.stdin.buffer
    head = stream.read(1 << 10)
    suffix = ".csv"
    for mark, meant in ((b"PAR1", ".parquet"), (b"{", ".jsonl"), (b"PK\x03\x04", ".eval")):
        if head.lstrip().startswith(mark):
            suffix = meant
    path = folder / f"stdin{suffix}"
    with open(path, "wb") as file:
        while head:
            file.write(head)
            if file.tell() > _MOST_OF_STDIN:
                raise UsageError(
                    f"eval: expected at most {_MOST_OF_STDIN} bytes of standard input, got more; "
                    "write them to files"
                )
            head = stream.read(_PIECE)
    return InputFile(path, "standard input")


def run_names(files: Sequence[InputFile], models: Sequence[str] = ()) -> list[str]:
    """A name for each run: of its model if each has another, or of its file, with as many of its
    folders as tell the files apart."""
    if models and all(models) and len({*models}) == len(files):
        return [*models]
    parts = [[*Path(file.name).absolute().parts[:-1], Path(file.name).stem] for file in files]
    if len({(*names,) for names in parts}) < len(files):
        parts = [[*Path(file.name).absolute().parts] for file in files]
    if len({(*names,) for names in parts}) < len(files):
        raise UsageError("eval: expected different files, got one twice; leave it out")
    n = 1
    while len({(*names[-n:],) for names in parts}) < len(files):
        n += 1
    return ["/".join(names[-n:]) for names in parts]


def query_values(path: Path, flag: str) -> Mapping[str, str | int]:
    """What a file says of each query: lines with a query and a value, which a tab, a comma or
    spaces separate, or a JSON object. Whole numbers are numbers."""
    try:
        with open(path, "rb") as file:
            data = file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise UsageError(
            f"--{flag}: expected a file of queries and their values, got "
            f"{formatting.name(str(path))!r} ({error.strerror}); write one query a line"
        ) from None
    if len(data) > _MOST_BYTES:
        raise _refused(path, f"at most {_MOST_BYTES} bytes", "more")
    text = data.decode("utf-8-sig", errors="backslashreplace")
    if text.lstrip().startswith("{"):
        try:
            pairs = cast("dict[str, object]", json.loads(text))
        except (ValueError, RecursionError) as error:
            raise _refused(path, "JSON", str(error)[:100]) from None
        values = {query: _value(value, path) for query, value in pairs.items()}
    else:
        values = {}
        for number, line in enumerate(text.splitlines(), 1):
            if not line.strip() or line.startswith("#"):
                continue
            query, *value_texts = _SEPARATORS.split(line.strip(), maxsplit=1)
            if not value_texts or not value_texts[0].strip():
                raise _refused(path, f"a query and its value in line {number}", "one word")
            values[query] = _value(value_texts[0].strip(), path)
    if not values:
        raise _refused(path, "at least one query", "none")
    return values


def _value(value: object, path: Path) -> str | int:
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise _refused(path, "a text or a whole number for each query", repr(value)[:60])
    return int(value) if isinstance(value, str) and _WHOLE.fullmatch(value) else value


def _refused(path: Path, expected: str, got: str) -> InputError:
    return InputError(
        expected=expected, got=got, where=formatting.name(str(path)),
        hint="write a query and its value a line, or a JSON object",
    )  # fmt: skip
