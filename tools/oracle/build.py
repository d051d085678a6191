#!/usr/bin/env python3
"""Builds the libraries that let one release of torch start on a machine without a card.

    tools/oracle/build.py TORCH OUT

TORCH is the folder `torch` of an unpacked wheel (a CUDA build for Linux). OUT gets one shared library for every library
that the release needs and that neither it nor the system has: libcudart and libcuda are fake_cuda.cc, all others are
stand-ins whose functions do nothing. Needs g++, and nm and readelf of binutils. Nothing of torch or CUDA is copied.
"""
import argparse
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
NVML = "libnvidia-ml.so.1"
CUDA = ("libcu", "libnv", "libnccl")  # ours even where the system has them


def output_of(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def needed_by(library):
    return re.findall(r"\(NEEDED\).*\[(.+)\]", output_of("readelf", "-d", str(library)))


def versions_needed(library):
    """Library -> names of the versions that `library` wants of it."""
    versions, name = {}, None
    for line in output_of("readelf", "-V", "-W", str(library)).splitlines():
        if file := re.search(r"Version: \d+\s+File: (\S+)", line):
            name = file.group(1)
        elif (version := re.search(r"Name: (\S+)\s+Flags", line)) and name:
            versions.setdefault(name, set()).add(version.group(1))
    return versions


def symbols_of(library, *flags):
    """(name, version or "") of the dynamic symbols that nm prints with these flags, weak references left out."""
    found = []
    for line in output_of("nm", "-D", *flags, str(library)).splitlines():
        kind, _, symbol = line.strip().rpartition(" ")
        name, _, version = symbol.replace("@@", "@").partition("@")
        if not kind.endswith("w"):
            found.append((name, version))
    return found


def missing_libraries(libraries):
    own = {library.name for library in libraries}
    needed = {name for library in libraries for name in needed_by(library)}
    installed = set(re.findall(r"^\s+(\S+) \(", output_of("/sbin/ldconfig", "-p"), re.M))
    return sorted(name for name in needed - own if name not in installed or name.startswith(CUDA))


def undefined_symbols(libraries):
    """Version ("" where there is none) -> names."""
    defined = {name for library in libraries for name, _ in symbols_of(library, "--defined-only")}
    for system in ("libc.so.6", "libm.so.6", "libstdc++.so.6", "libgcc_s.so.1"):
        path = output_of("g++", f"-print-file-name={system}").strip()
        defined |= {name for name, _ in symbols_of(path, "--defined-only")}
    undefined = {}
    for library in libraries:
        for name, version in symbols_of(library, "--undefined-only"):
            if name not in defined and not name.startswith(("Py", "_Py")):
                undefined.setdefault(version, set()).add(name)
    return undefined


def compile_fake(out, version):
    """The object of fake_cuda.cc, and the names that it defines."""
    built = out / "fake_cuda.o"
    subprocess.run(["g++", "-std=c++20", "-O2", "-fPIC", f"-DORACLE_CUDA_VERSION={version}", "-c",
                    str(HERE / "fake_cuda.cc"), "-o", str(built)], check=True)
    return built, set(re.findall(r"^\S+ T (\S+)$", output_of("nm", str(built)), re.M))


def link(out, soname, versions, linked):
    """The library `soname`: functions that only say that they were called, and what is `linked` to it.

    `versions`: name of a symbol version -> names of functions. The first one is that of what is linked.
    """
    names = sorted(set().union(*versions.values()))
    source = "int oracle_called(const char* name);\n"
    source += "".join(f'int {name}(void) {{ return oracle_called("{name}"); }}\n' for name in names)
    built = out / f"{soname}.o"
    subprocess.run(["gcc", "-x", "c", "-w", "-O1", "-fPIC", "-c", "-", "-o", str(built)], check=True, text=True,
                   input=source)
    first, *others = versions
    script = out / f"{soname}.map"
    script.write_text(f"{first} {{ global: *; }};\n" + "".join(
        f"{version} {{ global: {'; '.join(versions[version])}; }};\n" for version in others if versions[version]))
    subprocess.run(["g++", "-shared", "-Wl,--no-as-needed", f"-Wl,-soname,{soname}",
                    f"-Wl,--version-script={script}", str(built), str(linked), "-o", str(out / soname)], check=True)
    built.unlink()
    script.unlink()


def looked_up(torch, prefix):
    """The functions, by the beginning of their names, that the allocator's library looks up at run time."""
    library = (torch / "lib" / "libc10_cuda.so").read_bytes()
    return {name.decode() for name in re.findall(rb"\0(" + prefix.encode() + rb"[A-Z]\w+)(?=\0)", library)}


def cuda_version(soname):
    """13000 of libcudart.so.13."""
    return int(re.search(r"\.so\.(\d+)", soname).group(1)) * 1000


def build(torch, out):
    """Returns the names of the libraries that were missing."""
    libraries = sorted(path for path in (torch / "lib").glob("*.so*") if path.is_file())
    out.mkdir(parents=True, exist_ok=True)
    missing = missing_libraries(libraries)
    undefined = undefined_symbols(libraries)
    runtime = next(name for name in missing if name.startswith("libcudart"))
    fake, implemented = compile_fake(out, cuda_version(runtime))
    wanted = {}
    for library in libraries:
        for soname, versions in versions_needed(library).items():
            wanted.setdefault(soname, set()).update(versions)
    # With what names no library: whichever has it serves.
    link(out, runtime, {runtime: (undefined.get(runtime, set()) | undefined.get("", set())) - implemented}, fake)
    for soname in missing:
        if soname != runtime:
            names = sorted(wanted.get(soname, {soname}))
            link(out, soname, {name: undefined.get(name, set()) for name in names}, out / runtime)
    # What allocates is in the runtime's library, where lookups in this one go on.
    link(out, "libcuda.so.1", {"libcuda.so.1": looked_up(torch, "cu") - implemented}, out / runtime)
    link(out, NVML, {"NVML": looked_up(torch, "nvml")}, out / runtime)
    fake.unlink()
    return missing


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("torch", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path)
    arguments = parser.parse_args()
    missing = build(arguments.torch, arguments.out)
    print(f"{arguments.out}: {', '.join(missing)}", file=sys.stderr)


if __name__ == "__main__":
    main()
