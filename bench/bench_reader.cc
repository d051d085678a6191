// Decode throughput of the snapshot reader.
//
//   bench_reader [FILE]    FILE: an unpacked snapshot (OOMSCOPE_BENCH_SNAPSHOT does the same); without one, a made-up
//                          trace of 1,000,000 events with the opcodes that torch 2.11 and Python 3.12 write
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <string>

#include "evidence/snapshot_reader.h"

namespace oomscope {
namespace {

void put_u32(std::string& out, uint32_t value) {
  for (int shift = 0; shift < 32; shift += 8) out += static_cast<char>(value >> shift);
}

void put_text(std::string& out, const std::string& text) {
  out += '\x8c';
  out += static_cast<char>(text.size());
  out += text + "\x94";
}

void put_get(std::string& out, uint32_t index) {
  out += 'j';
  put_u32(out, index);
}

void put_long(std::string& out, uint64_t value, int bytes) {
  out += '\x8a';
  out += static_cast<char>(bytes);
  for (int i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i));
}

// {"device_traces": [[event, ...]]}; every event refers to the first one's keys, as Python's memo makes it.
std::string make_snapshot(int64_t events) {
  const std::string keys[] = {"action",          "addr",          "size",  "stream", "time_us",
                              "compile_context", "user_metadata", "frames"};
  std::string out("\x80\x04}\x94(", 5);
  put_text(out, "device_traces");  // memo 1; 0 is the dictionary
  out += "]\x94]\x94(";            // 2, 3
  out += "}\x94(";                 // 4
  put_text(out, keys[0]);          // 5
  put_text(out, "alloc");          // 6
  for (int i = 1; i < 7; ++i) {    // 7 addr, 8 size, 9 stream, 10 time_us
    put_text(out, keys[i]);
    if (i >= 5) put_text(out, i == 5 ? "N/A" : "");  // 11, 12 compile_context; 13, 14 user_metadata
    if (i < 5) out += std::string("K\0", 2);
  }
  put_text(out, keys[7]);  // 15
  out += "]\x94u";         // 16
  for (int64_t i = 1; i < events; ++i) {
    if (i % 1000 == 0) out += "e(";
    out += "}\x94(";
    put_get(out, 5);
    put_get(out, 6);
    put_get(out, 7);
    put_long(out, 0x7f0000000000U + static_cast<uint64_t>(i) * 512, 6);
    put_get(out, 8);
    out += 'J';
    put_u32(out, static_cast<uint32_t>(i) * 512 & 0x7fffffff);
    put_get(out, 9);
    out += std::string("K\0", 2);
    put_get(out, 10);
    put_long(out, 1700000000000000U + static_cast<uint64_t>(i), 7);
    put_get(out, 11);
    put_text(out, "N/A");
    put_get(out, 13);
    put_get(out, 14);
    put_get(out, 15);
    out += "]\x94u";
  }
  return out + "eau.";
}

void read_file(benchmark::State& state) {
  const char* path = std::getenv("OOMSCOPE_BENCH_SNAPSHOT");
  size_t events = 0;
  for (auto _ : state) {
    Result<Snapshot> snapshot = read_snapshot_file(path);
    if (!snapshot.has_value()) return state.SkipWithError(snapshot.error().what.c_str());
    events = 0;
    for (const Trace& trace : snapshot->traces) events += trace.size_events();
    benchmark::DoNotOptimize(events);
  }
  state.SetItemsProcessed(static_cast<int64_t>(events) * state.iterations());
}

void read_made_up(benchmark::State& state) {
  std::string bytes = make_snapshot(1000000);
  SnapshotReadOptions options{.use_template = state.range(0) != 0};
  for (auto _ : state) {
    Result<Snapshot> snapshot = read_snapshot_bytes(std::as_bytes(std::span(bytes)), "made up", options);
    if (!snapshot.has_value()) return state.SkipWithError(snapshot.error().what.c_str());
    benchmark::DoNotOptimize(snapshot->traces.data());
  }
  state.SetBytesProcessed(static_cast<int64_t>(bytes.size()) * state.iterations());
  state.SetItemsProcessed(1000000 * state.iterations());
}

}  // namespace
}  // namespace oomscope

int main(int argc, char** argv) {
  if (argc > 1 && argv[1][0] != '-') {
    (void)setenv("OOMSCOPE_BENCH_SNAPSHOT", argv[1], 1);
    --argc;
    ++argv;
  }
  if (std::getenv("OOMSCOPE_BENCH_SNAPSHOT") != nullptr) {
    benchmark::RegisterBenchmark("read_file", oomscope::read_file)->Unit(benchmark::kMillisecond);
  }
  benchmark::RegisterBenchmark("read_made_up", oomscope::read_made_up)
      ->ArgName("template")
      ->Arg(1)
      ->Arg(0)
      ->Unit(benchmark::kMillisecond);
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
