// Prints a snapshot as the reader saw it, for tests/support/check_reader.py, which compares it with pickle.load.
#include <cstdio>
#include <string>
#include <string_view>

#include "evidence/snapshot_reader.h"

namespace oomscope {
namespace {

void print_text(const Snapshot& snapshot, StringId id) {
  std::string_view text = snapshot.strings.text(id);
  std::printf("%zu:%.*s", text.size(), static_cast<int>(text.size()), text.data());
}

void print_stacks(const Snapshot& snapshot) {
  for (const Frame& frame : snapshot.stacks.frames) {
    std::printf("frame %llu ", static_cast<unsigned long long>(frame.line));
    print_text(snapshot, frame.name);
    std::printf(" ");
    print_text(snapshot, frame.filename);
    std::printf("\n");
  }
  for (size_t stack = 0; stack < snapshot.stacks.size(); ++stack) {
    std::printf("stack");
    for (uint32_t i = snapshot.stacks.starts[stack]; i < snapshot.stacks.starts[stack + 1]; ++i) {
      std::printf(" %u", snapshot.stacks.frame_ids[i]);
    }
    std::printf("\n");
  }
}

void print_segments(const Snapshot& snapshot) {
  for (const SnapshotSegment& segment : snapshot.segments) {
    std::printf("segment %d %llu %lld %lld %lld %lld %llu %d %d %llu %llu %u %u\n", segment.device,
                static_cast<unsigned long long>(segment.address), static_cast<long long>(segment.total_size),
                static_cast<long long>(segment.allocated_size), static_cast<long long>(segment.active_size),
                static_cast<long long>(segment.requested_size), static_cast<unsigned long long>(segment.stream),
                segment.is_large ? 1 : 0, segment.is_expandable ? 1 : 0,
                static_cast<unsigned long long>(segment.pool.first),
                static_cast<unsigned long long>(segment.pool.second), static_cast<unsigned>(segment.stack),
                segment.block_count);
    for (uint32_t i = 0; i < segment.block_count; ++i) {
      const SnapshotBlock& block = snapshot.blocks[segment.first_block + i];
      std::printf("block %llu %lld %lld %d %u\n", static_cast<unsigned long long>(block.address),
                  static_cast<long long>(block.size), static_cast<long long>(block.requested_size),
                  static_cast<int>(block.state), static_cast<unsigned>(block.stack));
    }
  }
}

void print_traces(const Snapshot& snapshot) {
  for (const Trace& trace : snapshot.traces) {
    std::printf("trace %zu\n", trace.size_events());
    for (size_t i = 0; i < trace.size_events(); ++i) {
      PoolId pool = trace.pool.empty() ? PoolId{} : trace.pool[i];
      std::printf("event %d %llu %lld %llu %u %lld %llu %llu ", static_cast<int>(trace.action[i]),
                  static_cast<unsigned long long>(trace.addr[i]), static_cast<long long>(trace.size[i]),
                  static_cast<unsigned long long>(trace.stream(i)), static_cast<unsigned>(trace.stack[i]),
                  static_cast<long long>(trace.time_us[i]), static_cast<unsigned long long>(pool.first),
                  static_cast<unsigned long long>(pool.second));
      print_text(snapshot, trace.compile_context.at(i));
      std::printf(" ");
      print_text(snapshot, trace.user_metadata.at(i));
      std::printf("\n");
    }
    for (uint32_t event : trace.forced) std::printf("forced %u\n", event);
  }
}

void print_rest(const Snapshot& snapshot) {
  for (const Annotation& annotation : snapshot.annotations) {
    std::printf("annotation %d %d %lld ", annotation.is_start ? 1 : 0, annotation.device,
                static_cast<long long>(annotation.time_us));
    print_text(snapshot, annotation.name);
    std::printf("\n");
  }
  if (snapshot.settings.has_value()) {
    const RecordedSettings& settings = *snapshot.settings;
    std::printf("settings %s %lld %.17g %d", settings.conf.value_or("-").c_str(),
                static_cast<long long>(settings.max_split_size_bytes.value_or(-2)),
                settings.garbage_collection_threshold.value_or(-1),
                settings.expandable_segments.value_or(false) ? 1 : 0);
    for (int64_t row : settings.roundup_power2_divisions) std::printf(" %lld", static_cast<long long>(row));
    std::printf("\n");
  }
  const SnapshotFeatures& f = snapshot.features;
  std::printf("features %d%d%d%d\n", f.block_history, f.block_addresses, f.event_pool_id, f.host_segments);
  for (const Caveat& caveat : snapshot.caveats) std::printf("caveat %s\n", caveat.code.c_str());
  std::printf("complete %d\n", snapshot.complete ? 1 : 0);
}

int dump(int argc, char** argv) {
  SnapshotReadOptions options;
  bool quiet = false;
  std::string path;
  for (int i = 1; i < argc; ++i) {
    std::string_view argument = argv[i];
    if (argument == "--no-template") {
      options.use_template = false;
    } else if (argument == "--quiet") {
      quiet = true;
    } else {
      path = argument;
    }
  }
  Result<Snapshot> snapshot = read_snapshot_file(path, options);
  if (!snapshot.has_value()) {
    const Error& error = snapshot.error();
    std::printf("error %s | %s | %s | %s\n", error.code.c_str(), error.what.c_str(), error.where.c_str(),
                error.hint.c_str());
    return 1;
  }
  if (quiet) return 0;
  print_stacks(*snapshot);
  print_segments(*snapshot);
  print_traces(*snapshot);
  print_rest(*snapshot);
  return 0;
}

}  // namespace
}  // namespace oomscope

int main(int argc, char** argv) { return oomscope::dump(argc, argv); }
