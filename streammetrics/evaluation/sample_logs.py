"""Scores of samples in the logs of inspect_ai and lm-evaluation-harness.

inspect_ai: a log ends in `.json`, with `samples`, or in `.eval`, a zip file whose `summaries.json`
has the scores of each sample and its short metadata. A sample that was run in several epochs has
the mean of their scores, as by inspect's own default. lm-eval: `samples_TASK_TIME.jsonl`, which
`--log_samples` writes, has a document and a filter a line. A log is input from strangers: files,
members and lines have a greatest size, and JSON is all that is read.
"""

from __future__ import annotations

import gzip
import json
import math
import zipfile
import zlib
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from os import PathLike
from os.path import isdir
from pathlib import Path
from typing import BinaryIO, Final, TypeAlias, cast

from streammetrics.core.errors import InputError, shown
from streammetrics.evaluation.trec_files import decompressed, opened, refuse, text_name

MAX_JSON: Final = (
    1 << 30
)  # bytes of a log, of its summaries, or of the samples of a zip file together
MAX_SAMPLE: Final = 1 << 26  # bytes of one sample
MAX_DIRECTORY: Final = 1 << 25  # bytes of the directory of a zip file: some 400,000 samples
MAX_LINES: Final = 4 << 30  # bytes of all lines of a log of lm-eval

Scores: TypeAlias = dict[str, dict[Hashable, float]]
_JSON: Final = "convert it: inspect log convert --to json --output-dir DIR LOG"
_ZIP_HEAD: Final = b"PK\x03\x04"
_ZSTD: Final = 93  # the number of this compression in a zip file
_REMOVED: Final = "Key removed from summary (> 1k)"  # what summaries have in place of large objects
# What inspect's `value_to_float` makes of a text.
_WORDS: Final = {"C": 1.0, "I": 0.0, "P": 0.5, "N": 0.0, "yes": 1.0, "true": 1.0, "no": 0.0,
                 "false": 0.0}  # fmt: skip


@dataclass(frozen=True, slots=True)
class SampleLog:
    """The scores that a model reached, by the name of the score and by sample.

    model: its name. scores: a number for each sample; nan where a scorer gave none. metadata: what
    is known of a sample besides, such as its subject or the passage that it is about. notes:
    sentences on how the scores differ from those that the program prints.

    >>> SampleLog("gpt", {"match": {"q1": 1.0, "q2": 0.0}}).scores["match"]["q1"]
    1.0
    """

    model: str
    scores: Mapping[str, Mapping[Hashable, float]]
    metadata: Mapping[Hashable, Mapping[str, object]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def is_sample_log(path: str | PathLike[str]) -> bool:
    """Whether the file begins as a log of inspect_ai or lm-eval does, or the folder has logs of
    lm-eval; False if it is not there."""
    if isdir(path):
        return bool(_task_files(path))
    try:
        with opened(path) as plain, decompressed(plain) as file:
            head = file.read(1 << 16)
    except (OSError, EOFError, zlib.error):
        return False
    if Path(path).suffix == ".eval":
        return head.startswith(_ZIP_HEAD)
    keys = (b'"version"', b'"status"', b'"eval"')
    if head.lstrip()[:1] != b"{":
        return False
    return head.lstrip().startswith(b'{"doc_id"') or all(key in head[:4096] for key in keys)


def read_sample_log(path: str | PathLike[str]) -> SampleLog:
    """The log of a file of inspect_ai (`.eval` or `.json`) or of lm-eval (`samples_*.jsonl`, also
    compressed by gzip), or of a folder of a model with the tasks of lm-eval: of each task the last
    file by name. A sample is then `TASK/DOCUMENT`, and its metadata has the `task`.

    InputError for other files, and for a sample that is there twice.
    """
    name = text_name(path)
    if isdir(path) and (files := _task_files(path)):
        return _tasks_together({task: read_sample_log(file) for task, file in files.items()})
    try:
        with opened(path) as plain, decompressed(plain) as file:
            if not plain.peek(4).startswith(_ZIP_HEAD):
                return _log_of_text(path, name, _lines(file, name))
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        refuse("a whole file of gzip", str(error), name, "compress or download it again")
    except OSError as error:
        refuse("a log of inspect_ai or lm-eval", error.strerror or str(error), name,
               "check the path")  # fmt: skip
    return _log_of_zip(path, name)


def _lines(file: BinaryIO, name: str) -> Iterator[tuple[str, bytes]]:
    """The place and the bytes of each line that is not empty; the first one may be a whole log."""
    number, total = 1, 0
    most = MAX_JSON
    while line := file.readline(most + 1):
        total, where = total + len(line), f"{name}, line {number}"
        if len(line) > most:
            refuse(f"at most {most} bytes", "more", where, "log without what is that large")
        if total > MAX_LINES:
            refuse(f"a file of at most {MAX_LINES} bytes", "more", name, "cut it into several")
        if number == 1 and line.strip() in (b"{", b"["):  # JSON that is written over many lines
            remaining_data = file.read(MAX_JSON + 1)
            if len(remaining_data) > MAX_JSON:
                refuse(f"a file of at most {MAX_JSON} bytes", "more", name, "write a log of .eval")
            line += remaining_data
        if line.strip():
            yield where, line
        number, most = number + 1, MAX_SAMPLE


def _log_of_text(
    path: str | PathLike[str], name: str, lines: Iterable[tuple[str, bytes]]
) -> SampleLog:
    """The log of JSON, or of lines of it."""
    lines = iter(lines)
    where, first = next(lines, (name, b""))
    parsed = _object(first, where)
    if "doc_id" in parsed:
        samples = [(where, parsed), *((place, _object(line, place)) for place, line in lines)]
        return _document_scores(Path(path).absolute().parent.name, samples)
    if not isinstance(parsed.get("samples"), list) or not isinstance(parsed.get("eval"), dict):
        refuse("a log of inspect_ai with samples, or of lm-eval with a `doc_id` in each line",
               f"the keys {', '.join(map(shown, [*parsed][:6])) or 'of none'}", name,
               "log samples: lm_eval --log_samples; inspect does it by default")  # fmt: skip
    return _sample_scores(parsed, cast("list[object]", parsed["samples"]), name)


def _object(text: bytes, where: str) -> dict[str, object]:
    """A JSON object; InputError for everything else."""
    parsed = _parsed(text, where)
    if not isinstance(parsed, dict):
        refuse("a JSON object", shown(parsed), where, "pass a log as the program wrote it")
    return parsed


def _parsed(text: bytes, where: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        got = str(error)[:100] if isinstance(error, ValueError) else "too many nested brackets"
        raise InputError(
            expected="JSON", got=got, where=where, hint="pass a log as the program wrote it"
        ) from None


# inspect_ai.


def _log_of_zip(path: str | PathLike[str], name: str) -> SampleLog:
    try:
        with open(path, "rb") as file:
            _require_small_directory(file, name)
            archive = zipfile.ZipFile(file)
            members = {info.filename: info for info in archive.infolist()}
            budget = _Budget(MAX_JSON)

            def read(member: str) -> object:
                return _parsed(_member(file, archive, members[member], budget, name), member)

            starts = [
                member for member in ("header.json", "_journal/start.json") if member in members
            ]
            header = read(starts[0]) if starts else {}
            samples: list[object] = []
            for start in ("summaries.json", "_journal/summaries/", "samples/"):
                chosen = [m for m in members if m.startswith(start) and m.endswith(".json")]
                for member in chosen:
                    content = read(member)
                    samples += content if isinstance(content, list) else [content]
                if chosen:
                    break
    except (zipfile.BadZipFile, EOFError, zlib.error, ValueError, RuntimeError, OSError) as error:
        if isinstance(error, InputError):
            raise
        refuse("a log of inspect_ai, which is a zip file", str(error)[:100], name, _JSON)
    if not isinstance(header, dict):
        refuse("a JSON object in header.json", shown(header), name, _JSON)
    return _sample_scores(header, samples, name)


def _require_small_directory(file: BinaryIO, name: str) -> None:
    """InputError if a record at the end of a zip file tells of a large directory, all of which
    zipfile would read."""
    size = file.seek(0, 2)
    file.seek(max(0, size - (1 << 17)))
    tail = file.read()
    for mark, first, last in ((b"PK\x05\x06", 12, 16), (b"PK\x06\x06", 40, 48)):
        place = tail.find(mark)
        while place >= 0:
            length = int.from_bytes(tail[place + first : place + last], "little")
            if MAX_DIRECTORY < length < (1 << 8 * (last - first)) - 1:
                refuse(f"a directory of at most {MAX_DIRECTORY} bytes", f"{length}", name,
                       "log to several files")  # fmt: skip
            place = tail.find(mark, place + 1)
    file.seek(0)


class _Budget:
    """Bytes that may still be read."""

    def __init__(self, left: int) -> None:
        self.left = left


def _member(
    file: BinaryIO, archive: zipfile.ZipFile, info: zipfile.ZipInfo, budget: _Budget, name: str
) -> bytes:
    """The bytes of a member of a zip file; InputError for more than the budget."""
    if info.compress_type in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        with archive.open(info) as stream:
            data = stream.read(budget.left + 1)
    elif info.compress_type == _ZSTD:
        data = _decompressed_by_zstd(_raw(file, info), budget.left + 1, name)
        if len(data) <= budget.left and zlib.crc32(data) != info.CRC:
            refuse("a whole log", f"{shown(info.filename)} with another checksum", name, _JSON)
    else:
        refuse("members compressed by deflate or zstd",
               f"{shown(info.filename)} by method {info.compress_type}", name, _JSON)  # fmt: skip
    if len(data) > budget.left:
        refuse(f"at most {MAX_JSON} bytes of JSON", "more", f"{name}: {info.filename}",
               "log without what is that large")  # fmt: skip
    budget.left -= len(data)
    return data


def _raw(file: BinaryIO, info: zipfile.ZipInfo) -> bytes:
    """The compressed bytes of a member, which zipfile of Python 3.11 to 3.13 does not read."""
    file.seek(info.header_offset)
    head = file.read(30)
    if len(head) < 30 or not head.startswith(_ZIP_HEAD):
        raise zipfile.BadZipFile(f"no member at {info.header_offset}")
    file.seek(int.from_bytes(head[26:28], "little") + int.from_bytes(head[28:30], "little"), 1)
    return file.read(min(info.compress_size, MAX_JSON))


def _decompressed_by_zstd(data: bytes, most: int, name: str) -> bytes:
    """At most `most` bytes of what zstd compressed."""
    try:
        import pyarrow as pa
    except ModuleNotFoundError:
        refuse("the package pyarrow, since the log is compressed by zstd", "none", name,
               f"pip install pyarrow, or {_JSON}")  # fmt: skip
    with pa.CompressedInputStream(pa.BufferReader(data), "zstd") as stream:
        return cast("bytes", stream.read(most))


def _sample_scores(header: Mapping[str, object], samples: list[object], name: str) -> SampleLog:
    """The log of samples, or summaries of samples, each the mean over its epochs."""
    spec = header.get("eval")
    spec = spec if isinstance(spec, dict) else {}
    columns = _Columns(name)
    metadata: dict[Hashable, Mapping[str, object]] = {}
    for i, sample in enumerate(samples):
        where = f"{name}: samples[{i}]"
        if not isinstance(sample, dict) or not isinstance(sample.get("id"), (int, str)):
            refuse("a sample with an id", shown(sample), where, _JSON)
        about = sample.get("metadata")
        fields = about.items() if isinstance(about, dict) else ()
        metadata.setdefault(sample["id"], {k: v for k, v in fields if v != _REMOVED})
        scores = sample.get("scores")
        for scorer, score in scores.items() if isinstance(scores, dict) else ():
            value = score.get("value") if isinstance(score, dict) else score
            epoch = sample.get("epoch", 1)
            for key, part in _parts(scorer, value):
                columns.add(key, sample["id"], epoch, _number(part), where, raw_value=part)
    config = spec.get("config")
    reducers = config.get("epochs_reducer") if isinstance(config, dict) else None
    notes = []
    if columns.epochs > 1 and reducers not in (None, ["mean"]):
        notes.append(f"inspect reduced epochs by {shown(reducers)}; here a sample is their mean")
    if header.get("status") not in (None, "success"):
        notes.append(f"the log ended as {shown(header['status'])}: samples may be missing")
    return SampleLog(str(spec.get("model", "")), columns.scores(), metadata, tuple(notes))


def _parts(name: str, value: object) -> Iterator[tuple[str, object]]:
    """The values of a score by name: several, if it is an object."""
    if isinstance(value, dict):
        yield from ((f"{name}({key})", part) for key, part in value.items())
    else:
        yield name, value


def _number(value: object) -> float | None:
    """A score as a number, as inspect converts it; nan for none; None for what is no number."""
    if value is None:
        return math.nan
    if isinstance(value, (bool, int, float)):
        try:
            return float(value)
        except OverflowError:
            return None
    if not isinstance(value, str):
        return None
    word = _WORDS.get(value, _WORDS.get(value.lower()) if len(value) > 1 else None)
    if word is not None:
        return word
    try:
        number = float(value) if len(value) < 400 else math.nan
    except ValueError:
        return None
    return number if math.isfinite(number) else None


class _Columns:
    """The scores of a log as they are read, and what is no number among them."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._values: dict[str, dict[Hashable, dict[object, float]]] = {}
        self._others: dict[str, tuple[str, Hashable, object]] = {}
        self.epochs = 1

    def add(
        self,
        score: str,
        sample: Hashable,
        epoch: object,
        value: float | None,
        where: str,
        *,
        raw_value: object,
    ) -> None:
        """Note a value, None if the raw value is no number; InputError for a sample that is there
        twice."""
        score = "_".join(score.split())
        if value is None:
            self._others.setdefault(score, (where, sample, raw_value))
            return
        epochs = self._values.setdefault(score, {}).setdefault(sample, {})
        if epoch in epochs:
            refuse("each sample once", f"{shown(sample)} twice", where, "drop the later one")
        epochs[epoch] = value
        self.epochs = max(self.epochs, len(epochs))

    def scores(self) -> Scores:
        """By score and sample the mean over epochs with a value; scores without any number are
        left out. InputError for a score of which only some are numbers."""
        for score, (where, sample, value) in self._others.items():
            if any(map(math.isfinite, self._all(score))):
                refuse(f"a number as {shown(score)} of each sample",
                       f"{shown(value)} of {shown(sample)}", where,
                       "convert it and pass a SampleLog, or name other scores")  # fmt: skip
        return {
            score: {sample: _mean(epochs.values()) for sample, epochs in samples.items()}
            for score, samples in self._values.items()
            if score not in self._others
        }

    def _all(self, score: str) -> Iterator[float]:
        return (v for epochs in self._values.get(score, {}).values() for v in epochs.values())


def _mean(values: Iterable[float]) -> float:
    """The mean of those that are not nan; nan of none."""
    numbers = [value for value in values if not math.isnan(value)]
    return math.fsum(numbers) / len(numbers) if numbers else math.nan


# lm-eval.


def _document_scores(model: str, samples: list[tuple[str, dict[str, object]]]) -> SampleLog:
    """The log of documents; a score has the filter in its name if there are several."""
    filters = {sample.get("filter") for _, sample in samples}
    columns = _Columns(model)
    metadata: dict[Hashable, Mapping[str, object]] = {}
    for where, sample in samples:
        document = sample.get("doc_id")
        if isinstance(document, bool) or not isinstance(document, (int, str)):
            refuse("a `doc_id` of each line", shown(document), where, "log the samples again")
        about = sample.get("doc")
        fields = about if isinstance(about, dict) else {}
        metadata.setdefault(document, {"doc_hash": sample.get("doc_hash"), **fields})
        for name in _metric_names(sample):
            label = f"{name}({sample.get('filter')})" if len(filters) > 1 else name
            value = sample.get(name)
            number = _number(value) if isinstance(value, (bool, int, float)) else None
            columns.add(label, document, 1, number, where, raw_value=value)
    return SampleLog(model, columns.scores(), metadata)


def _task_files(path: str | PathLike[str]) -> dict[str, Path]:
    """By task the last file of a folder of lm-eval."""
    files: dict[str, Path] = {}
    for file in sorted(Path(path).glob("samples_*.jsonl")):
        files[file.stem.removeprefix("samples_").rpartition("_")[0]] = file
    return files


def _tasks_together(logs: Mapping[str, SampleLog]) -> SampleLog:
    """The logs of the tasks of a model as one."""
    scores: Scores = {}
    metadata: dict[Hashable, Mapping[str, object]] = {}
    for task, log in logs.items():
        for name, values in log.scores.items():
            of_name = scores.setdefault(name, {})
            of_name.update({f"{task}/{sample}": value for sample, value in values.items()})
        for sample, about in log.metadata.items():
            metadata[f"{task}/{sample}"] = {**about, "task": task}
    return SampleLog(next(iter(logs.values())).model, scores, metadata)


_FIELDS: Final = {
    *("doc_id", "doc", "target", "arguments", "resps", "filtered_resps", "filter", "metrics"),
    *("doc_hash", "prompt_hash", "target_hash"),
}


def _metric_names(sample: Mapping[str, object]) -> list[str]:
    """The names of the metrics of a line, which former versions do not list."""
    names = sample.get("metrics")
    if isinstance(names, list):
        return [name for name in names if isinstance(name, str)]
    return [name for name in sample if name not in _FIELDS]
