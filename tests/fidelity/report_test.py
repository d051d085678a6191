#!/usr/bin/env python3
"""`report` in every format: what is written is well formed, says what --json says, and hides what is to be hidden.

The page in a browser is web/test/page.mjs's; here are its text, the exports, and evidence that means harm.
"""
import argparse
import base64
import csv
import gzip
import html.parser
import io
import json
import os
import pathlib
import pickle
import struct
import subprocess
import sys
import tempfile
import xml.etree.ElementTree
import zlib

DATA = pathlib.Path(__file__).resolve().parent.parent / "data"
OOM = DATA / "demo_oom.pickle.zst"
HARM = "</script><script>alert(1)</script>"
NAME = "ada-lovelace"
failures = []


def check(condition, text):
    if not condition:
        failures.append(text)


class Program:
    def __init__(self, path, folder):
        self.path, self.folder, self.count = path, pathlib.Path(folder), 0

    def run(self, *words, **more):
        run = subprocess.run([self.path, *map(str, words)], capture_output=True, timeout=120, **more)
        if run.returncode != 0:
            sys.exit(f"{words}: {run.stderr.decode(errors='replace')}")
        return run.stdout

    def json(self, *words):
        return json.loads(self.run(*words, "--json"))

    def report(self, ending, *words):
        self.count += 1
        file = self.folder / f"out{self.count}{ending}"
        self.run("report", *words, "-o", file, "--lang", "en")
        return file.read_bytes()


class Page(html.parser.HTMLParser):
    """Scripts, visible text, and the exact bytes that titles carry."""

    def __init__(self, text):
        super().__init__()
        self.scripts, self.text, self.tags, self.inside = [], "", [], None
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag in ("script", "style"):
            self.inside = tag
            if tag == "script":
                self.scripts.append((dict(attributes), ""))

    def handle_endtag(self, tag):
        if tag == self.inside:
            self.inside = None

    def handle_data(self, data):
        if self.inside == "script":
            self.scripts[-1] = (self.scripts[-1][0], self.scripts[-1][1] + data)
        elif self.inside is None:
            self.text += data + " "


def unpack(page):
    """The header and the columns of each recording in the page, by a reader of its own."""
    recordings = []
    for attributes, text in page.scripts:
        if attributes.get("class") != "recording":
            continue
        raw = gzip.decompress(base64.b64decode(text))
        check(raw[:8] == b"OOMVIEW1", "the payload's first bytes")
        (length,) = struct.unpack("<I", raw[8:12])
        header, at = json.loads(raw[12:12 + length]), 12 + length
        columns = {}
        for column in header["columns"]:
            columns[column["name"]] = varints(raw[at:at + column["bytes"]], column["coding"] == "delta")
            check(len(columns[column["name"]]) == column["count"], f"count of {column['name']}")
            at += column["bytes"]
        check(at == len(raw), "nothing behind the last column")
        recordings.append((header, columns))
    return recordings


def varints(data, is_delta):
    values, value, shift, before = [], 0, 0, 0
    for byte in data:
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            if is_delta:
                before += (value >> 1) ^ -(value & 1)
            values.append(before if is_delta else value)
            value = shift = 0
    return values


def test_page(program):
    page = Page(program.report(".html", OOM).decode())
    why, show = program.json("why", OOM), program.json("show", OOM, "--at", "oom")
    check(why["findings"][0]["claim"] in page.text, "the claim stands in the page")
    check("0 mismatches" in page.text, "the proof stands in the page")
    titles = [attributes.get("title", "") for tag, attributes in page.tags if tag == "td"]
    expected = [row["bytes"] for row in why["balance"] if row["bytes"] is not None] + [why["balance_total"]]
    shown = [int(title[:-2].replace(",", "")) for title in titles if title.endswith(" B")][:len(expected)]
    check(shown == expected, f"balance {shown} is not {expected}")
    for row in show["rows"]:
        check(f"{row['bytes']:,} B" in titles, f"{row['key']}: {row['bytes']} stands in the page")
    (header, columns), = unpack(page)
    check(header["peak_allocated"]["bytes"] == show["totals"]["peak_allocated"], "peak allocated")
    check(header["peak_reserved"]["bytes"] == show["totals"]["peak_reserved"], "peak reserved")
    check(len(header["curves"]) == len(why["runs"]), "a curve for each run")
    for curve, run in zip(header["curves"], why["runs"]):
        check(curve["conf"] == run["conf"] and curve["peak_reserved"] == run["peak_reserved"], f"run {run['conf']}")
        check(max(curve["reserved"]) == run["peak_reserved"], f"the curve of {run['conf']} reaches its peak")
    requests = [tag for tag, attributes in page.tags if attributes.get("src") or tag in ("link", "img", "iframe")
                and not attributes.get("href", "").startswith("data:")]
    check(not requests, f"nothing is loaded: {requests}")
    check("http://" not in page.text and "https://" not in page.text, "no address in the text")


def test_exports(program):
    show = program.json("show", OOM, "--at", "oom")
    peak = program.json("show", OOM)["totals"]
    rows = list(csv.DictReader(io.StringIO(program.report(".csv", OOM).decode())))
    check(rows[-1]["action"] == "oom", "the last event is the failure")
    check(int(rows[-1]["active"]) == show["totals"]["active"], "active at the failure, CSV")
    check(max(int(row["reserved"]) for row in rows) == peak["peak_reserved"], "peak reserved, CSV")
    live = list(csv.DictReader(io.StringIO(program.report(".live.csv", OOM).decode())))
    check(sum(int(row["size"]) for row in live) == show["totals"]["active"], "live set, CSV")
    report = json.loads(program.report(".json", OOM))
    recording = report["recordings"][0]
    check(report["schema"] == "oomscope.report/1", "schema")
    check(report["answer"] == program.json("why", OOM), "the answer is that of why --json")
    check(sum(row["size"] for row in recording["live"]) == show["totals"]["active"], "live set, JSON")
    check(max(recording["events"]["reserved"]) == peak["peak_reserved"], "peak reserved, JSON")
    check(recording["peak_allocated"]["bytes"] == peak["peak_allocated"], "peak allocated, JSON")
    markdown = program.report(".md", OOM).decode()
    check(markdown.startswith("### ") and "| live tensors | 4.69 GiB |" in markdown, "Markdown")
    for language in ("en", "zh"):
        file = program.folder / f"{language}.svg"
        program.run("report", OOM, "-o", file, "--lang", language)
        xml.etree.ElementTree.fromstring(file.read_bytes())
    test_png(program.report(".png", OOM))
    test_perfetto(program.report(".perfetto-trace", OOM), peak)


def test_names(program):
    """What the page is called: by its file, by what tells files apart, or by what was piped in."""
    packed = OOM.read_bytes()
    for language, words in (("en", "standard input"), ("zh", "标准输入")):
        file = program.folder / f"piped-{language}.html"
        program.run("report", "-", "--no-sweep", "-o", file, "--lang", language, input=packed)
        check(f"<title>{words} - oomscope" in file.read_text(), f"the name of a piped recording, {language}")
    check(f"<title>{OOM.name} - oomscope" in program.report(".html", OOM, "--no-sweep").decode(), "the file's name")


def test_png(data):
    check(data[:8] == b"\x89PNG\r\n\x1a\n", "PNG")
    at, packed, size = 8, b"", None
    while at < len(data):
        length, kind = struct.unpack(">I4s", data[at:at + 8])
        body = data[at + 8:at + 8 + length]
        check(zlib.crc32(kind + body) == struct.unpack(">I", data[at + 8 + length:at + 12 + length])[0], "PNG's sums")
        if kind == b"IHDR":
            size = struct.unpack(">II", body[:8])
        packed += body if kind == b"IDAT" else b""
        at += 12 + length
    pixels = zlib.decompress(packed)
    check(size[0] == 2400 and len(pixels) == (size[0] * 3 + 1) * size[1], f"pixels of {size}")


def fields(data):
    """The wire format of protobuf: numbers and bytes by field."""
    at, found = 0, {}

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(data):
        key = varint()
        if key & 7 == 0:
            value = varint()
        else:
            check(key & 7 == 2, "only varints and bytes are written")
            length = varint()
            value = data[at:at + length]
            at += length
        found.setdefault(key >> 3, []).append(value)
    return found


def test_perfetto(data, peak):
    names, counters, open_slices = {}, {}, {}
    for raw in fields(data)[1]:
        packet = fields(raw)
        if 60 in packet:
            track = fields(packet[60][0])
            names[track[1][0]] = track[2][0].decode()
        if 11 in packet:
            event = fields(packet[11][0])
            kind, track = event[9][0], event[11][0]
            check(track in names, "an event's track is described before")
            if kind == 4:
                counters.setdefault(names[track], []).append(event[30][0])
            elif kind in (1, 2):
                open_slices[track] = open_slices.get(track, 0) + (1 if kind == 1 else -1)
                check(0 <= open_slices[track] <= 1, "slices of a track follow each other")
    check(not any(open_slices.values()), "every slice ends")
    check(max(counters["reserved"]) == peak["peak_reserved"], "peak reserved, Perfetto")
    check(max(counters["live"]) == peak["peak_allocated"], "peak allocated, Perfetto")


def harmful_snapshot(folder):
    """A file in which names are markup, and paths tell who ran it where."""
    stack = [{"name": HARM, "filename": f"/home/{NAME}/secret-project/\"><img src=x onerror=alert(1)>/train.py", "line": 3},
             {"name": "main", "filename": f"/home/{NAME}/secret-project/run.py", "line": 9}]
    block = {"address": 2**40, "size": 1 << 20, "requested_size": 1 << 20, "state": "active_allocated", "frames": stack}
    rest = {"address": 2**40 + (1 << 20), "size": 19 << 20, "requested_size": 0, "state": "inactive", "frames": []}
    segment = {"device": 0, "address": 2**40, "total_size": 20 << 20, "allocated_size": 1 << 20, "active_size": 1 << 20,
               "requested_size": 1 << 20, "stream": 0, "segment_type": "large", "segment_pool_id": (0, 0),
               "is_expandable": False, "frames": [], "blocks": [block, rest]}
    event = {"addr": 2**40, "size": 1 << 20, "stream": 0, "frames": stack, "time_us": 5}
    trace = [dict(event, action="segment_alloc", size=20 << 20), dict(event, action="alloc", size=(1 << 20) + 1)]
    block["size"], block["requested_size"] = (1 << 20) + 512, (1 << 20) + 1
    rest["address"], rest["size"] = rest["address"] + 512, rest["size"] - 512
    path = pathlib.Path(folder) / "harm.pickle"
    path.write_bytes(pickle.dumps({"segments": [segment], "device_traces": [trace]}))
    return path


def test_harm(program):
    path = harmful_snapshot(program.folder)
    text = program.report(".html", path).decode()
    page = Page(text)
    check(HARM not in text and "<img src=x" not in text, "markup of the evidence is escaped")
    check(HARM in page.text, "and still to be read")
    check(not any(tag == "img" for tag, _ in page.tags), "no element of the evidence's")
    for ending in (".svg", ".md"):
        check("<script" not in program.report(ending, path).decode(), f"{ending} holds no markup of the evidence")
    xml.etree.ElementTree.fromstring(program.report(".svg", path))
    for header, _ in unpack(page):
        check(any(frame[0] == HARM for frame in header["frames"]), "the name is kept in the data")


def test_redaction(program):
    home = program.folder / "home" / NAME
    home.mkdir(parents=True)
    path = home / "harm.pickle"
    path.write_bytes(harmful_snapshot(program.folder).read_bytes())
    log = f"node7.cluster.example.com {NAME}@gpu7: File \"/home/{NAME}/secret-project/run.py\"\n" \
          "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 23.69 " \
          "GiB of which 1.00 GiB is free. Process 77 has 22.00 GiB memory in use. Of the allocated memory 20.00 GiB is " \
          "allocated by PyTorch, and 1.00 GiB is reserved by PyTorch but unallocated."
    log_path = home / "train.log"
    log_path.write_text(log)
    environment = dict(os.environ, USER=NAME)
    for ending in (".html", ".svg", ".md", ".json", ".csv", ".live.csv", ".perfetto-trace"):
        file = program.folder / f"redacted{ending}"
        program.run("report", path, log_path, "--redact", "-o", file, env=environment)
        data = file.read_bytes()
        for header, _ in unpack(Page(data.decode())) if ending == ".html" else []:
            data += json.dumps(header).encode()
        for secret in (NAME, "secret-project", str(program.folder), "example.com"):
            check(secret.encode() not in data, f"{ending} does not tell {secret}")


def test_other_evidence(program):
    ranks = Page(program.report(".html", DATA / "ranks" / "one_fails").decode())
    check(sum(1 for tag, attributes in ranks.tags if tag == "figure") == 4, "a small chart for each rank")
    explained = program.json("why", DATA / "ranks" / "one_fails")["explained"]["why"]
    check(explained["kind"] in ranks.text, "the failed rank is explained")
    other = DATA / "causes" / "none_vit.pickle.zst"
    for ending in (".svg", ".png"):
        check(len(program.report(ending, DATA / "ranks" / "one_fails")) > 5000, f"small multiples as {ending}")
    svg = program.report(".svg", DATA / "ranks" / "one_fails").decode()
    check(all(f"rank {rank}" in svg for rank in range(4)), "each rank is named in the picture")
    both = Page(program.report(".html", OOM, other).decode())
    check(program.json("diff", OOM, other)["sentence"] in both.text, "two recordings: what changed")
    check(len(unpack(both)) == 2, "and both timelines")
    log = Page(program.report(".html", "CUDA out of memory. Tried to allocate 2.00 GiB.").decode())
    check("2.00 GiB" in log.text and not unpack(log), "an error line alone")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", required=True)
    with tempfile.TemporaryDirectory() as folder:
        program = Program(os.path.abspath(parser.parse_args().program), folder)
        for test in (test_page, test_names, test_exports, test_harm, test_redaction, test_other_evidence):
            test(program)
    for failure in failures:
        print("FAIL", failure)
    print(f"report_test.py: {len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
