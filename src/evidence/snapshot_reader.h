// Reads a memory snapshot: a pickle of torch 1.13 or later, plain or packed (gzip, zstd, xz), or a page of memory_viz.
//
// Nothing in the file is ever executed. A file that was cut or damaged gives what came before the damage, with
// Snapshot::complete false and a caveat that says where. Error codes: file-not-found, file-is-a-directory,
// file-unreadable, file-empty, not-a-pickle, pickle-would-execute, pickle-unsupported, not-a-snapshot,
// snapshot-damaged (nothing usable), snapshot-too-large, page-without-snapshot, packed-data-damaged.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "base/result.h"
#include "base/side_thread.h"
#include "evidence/trace_builder.h"
#include "pickle/byte_source.h"
#include "types/snapshot.h"

namespace oomscope {

struct SnapshotReadOptions {
  // The reader's tables stay below this, the room for their growth included.
  int64_t max_memory_bytes = int64_t{2} << 30;
  // The fast path for repeated events; off only to test that it changes nothing.
  bool use_template = true;
  // False: Trace::time_us stays empty, for who has no use for the times.
  bool keeps_times = true;
  // Called as the columns of a trace grow, so that work on them can begin while the rest is read. With `is_moving` they
  // are about to be moved elsewhere. Afterwards the trace is in Snapshot::traces with its columns where they were, but
  // events that make no sense have become Action::unknown.
  FollowTrace follow = {};
  // Called once decoding has ended, well or badly, and before the traces change or go: who followed must stop here.
  std::function<void()> decoded = {};
  // Long files are read ahead on it; nullptr: on a thread of the reader's own. Must outlive the reading.
  SideThread* side = nullptr;
};

Result<Snapshot> read_snapshot_file(const std::string& path, const SnapshotReadOptions& options = {});
// `name` is for people.
Result<Snapshot> read_snapshot_source(std::unique_ptr<ByteSource> source, const std::string& name,
                                      const SnapshotReadOptions& options = {});
Result<Snapshot> read_snapshot_bytes(std::span<const std::byte> bytes, const std::string& name,
                                     const SnapshotReadOptions& options = {});

}  // namespace oomscope
