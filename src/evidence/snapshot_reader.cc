#include "evidence/snapshot_reader.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "evidence/byte_source.h"
#include "evidence/snapshot_assemble.h"
#include "evidence/snapshot_machine.h"
#include "evidence/snapshot_rows.h"
#include "evidence/snapshot_words.h"
#include "pickle/byte_window.h"
#include "types/limits.h"

namespace oomscope {
namespace {

bool looks_like_pickle(std::span<const uint8_t> front) { return !front.empty() && front[0] == 0x80; }

Error not_a_pickle(std::span<const uint8_t> front, const std::string& name) {
  std::string what = "error.not-a-pickle";
  std::string hint = "error.dump-snapshot";
  if (front.size() >= 4 && std::memcmp(front.data(), "PK\x03\x04", 4) == 0) {
    what = "error.zip-archive";
  } else if (std::string_view(reinterpret_cast<const char*>(front.data()), front.size())
                 .starts_with("version https://git-lfs.")) {
    what = "error.git-lfs";
    hint = "error.git-lfs.hint";
  } else if (std::ranges::none_of(front, [](uint8_t byte) { return byte < 9 || byte >= 0x80; })) {
    what = "error.text-not-snapshot";
    hint = "error.text-not-snapshot.hint";
  }
  return Error{"not-a-pickle", what, name, hint};
}

// Unpacks until the bytes are those of a pickle.
Result<std::unique_ptr<ByteSource>> find_pickle(std::unique_ptr<ByteSource> source, const std::string& name) {
  constexpr int kMaxLayers = 4;  // a packed page with a packed ... : more is a trap
  for (int layer = 0; layer < kMaxLayers; ++layer) {
    OOM_TRY(std::vector<uint8_t> front, peek_source(source));
    if (front.empty()) {
      bool is_bare = layer == 0;
      return Error{is_bare ? "file-empty" : "page-without-snapshot",
                   is_bare ? "error.file-empty" : "error.page-without-snapshot", name,
                   is_bare ? "error.file-empty.hint" : "error.dump-snapshot"};
    }
    Packing packing = packing_of(front);
    if (packing != Packing::none) {
      OOM_TRY(source, unpacking_source(packing, std::move(source)));
    } else if (looks_like_pickle(front)) {
      return source;
    } else if (looks_like_page(front)) {
      source = html_pickle_source(std::move(source));
    } else {
      return not_a_pickle(front, name);
    }
  }
  return Error{"not-a-pickle", "error.packed-too-often", name, "error.packed-too-often.hint"};
}

bool is_empty(const Snapshot& snapshot) {
  return snapshot.segments.empty() &&
         std::ranges::all_of(snapshot.traces, [](const Trace& trace) { return trace.size_events() == 0; });
}

bool wraps(uint64_t address, int64_t size) { return address > UINT64_MAX - static_cast<uint64_t>(size); }

// Nothing is so large that it could be impossible, alone or with the others, whatever kind of event it is of.
bool are_all_moderate(const std::vector<Trace>& traces) {
  uint64_t left_bytes = kMaxTotalBytes;
  for (const Trace& trace : traces) {
    if (trace.size_events() == 0) continue;
    const bool are_near = trace.addr.are_all_near() && trace.size.are_all_near();
    if (!are_near || trace.addr.most_near() > uint64_t{kMaxSizeBytes}) return false;
    if (trace.size.most_near() > left_bytes / trace.size_events()) return false;
    left_bytes -= trace.size.most_near() * trace.size_events();
  }
  return true;
}

void drop_impossible_events(Snapshot& snapshot) {
  if (are_all_moderate(snapshot.traces)) return;
  SizeBudget budget;
  // What failed took nothing, so it may be absurd, up to where PyTorch itself refuses ("more than 1EB").
  SizeBudget failed;
  size_t dropped = 0;
  for (Trace& trace : snapshot.traces) {
    for (size_t i = 0; i < trace.size_events(); ++i) {
      const bool is_possible =
          trace.action[i] == Action::oom
              ? trace.addr[i] <= uint64_t{kMaxSizeBytes} && failed.takes(trace.size[i], kMaxTotalBytes)
              : budget.takes(trace.size[i]) && !wraps(trace.addr[i], trace.size[i]);
      if (is_possible) continue;
      trace.size.set(i, 0);
      trace.action[i] = Action::unknown;
      ++dropped;
    }
  }
  if (dropped == 0) return;
  snapshot.caveats.push_back(Caveat{"impossible-sizes", {{"count", std::to_string(dropped)}}, CaveatSource::recording});
}

struct AtEnd {
  const std::function<void()>& tell;
  ~AtEnd() {
    if (tell) tell();
  }
};

Result<Snapshot> decode(ByteSource& source, const std::string& name, const SnapshotReadOptions& options) {
  constexpr int64_t kLong = int64_t{16} << 20;  // certainly worth a thread, from the beginning
  const bool is_long = source.size_hint_bytes() >= kLong;
  ByteWindow window(source, ByteWindow::kDefaultCapacity, is_long ? 0 : ByteWindow::kReadAheadAfter, options.side);
  ReaderTables tables;
  intern_words(tables.snapshot.strings);
  SnapshotMachine machine(window, tables,
                          MachineOptions{.max_memory_bytes = options.max_memory_bytes,
                                         .use_template = options.use_template,
                                         .keeps_times = options.keeps_times,
                                         .follow = options.follow});
  SnapshotMachine::Top top;
  const Result<Done> ran = [&] {
    const AtEnd ended{options.decoded};  // before the traces change or go, also where memory runs out
    Result<Done> result = machine.run();
    if (result.has_value()) top = machine.take_top();  // which may still add an event
    return result;
  }();
  if (!ran.has_value()) {
    Error error = ran.error();
    error.where = "error.at-byte";
    error.values.emplace_back("file", name);
    return error;
  }
  const std::optional<Damage>& damage = machine.damage();
  Result<Snapshot> snapshot = assemble_snapshot(tables, top, damage.has_value());
  bool is_lost = damage.has_value() && (!snapshot.has_value() || is_empty(*snapshot));
  if (!snapshot.has_value() || is_lost) {
    Error error = is_lost ? Error{} : std::move(snapshot.error());
    error.where = name;
    if (is_lost) {
      error = Error{"snapshot-damaged", "error.snapshot-damaged", "error.at-byte", "error.snapshot-damaged.hint",
                    damage->values};
      error.values.emplace_back("damage", damage->what);
      error.values.emplace_back("file", name);
    }
    return error;
  }
  if (machine.cut_texts() > 0) {
    snapshot->caveats.push_back(
        Caveat{"texts-skipped", {{"count", std::to_string(machine.cut_texts())}}, CaveatSource::recording});
  }
  if (damage.has_value()) {
    snapshot->complete = false;
    Values values = {{"error", damage->what}};
    values.insert(values.end(), damage->values.begin(), damage->values.end());
    snapshot->caveats.insert(snapshot->caveats.begin(),
                             Caveat{"snapshot-damaged", std::move(values), CaveatSource::recording});
  }
  drop_impossible_events(*snapshot);
  return snapshot;
}

}  // namespace

Result<Snapshot> read_snapshot_source(std::unique_ptr<ByteSource> source, const std::string& name,
                                      const SnapshotReadOptions& options) {
  Result<std::unique_ptr<ByteSource>> pickle = find_pickle(std::move(source), name);
  if (!pickle.has_value()) {
    Error error = std::move(pickle.error());
    if (error.code == "packed-data-damaged") error.where = name;
    return error;
  }
  Result<Snapshot> snapshot = decode(**pickle, name, options);
  if (snapshot.has_value() && (*pickle)->has_another()) {
    snapshot->caveats.push_back(Caveat{"page-holds-more", {}, CaveatSource::recording});
  }
  return snapshot;
}

Result<Snapshot> read_snapshot_file(const std::string& path, const SnapshotReadOptions& options) {
  OOM_TRY(std::unique_ptr<ByteSource> source, open_file_source(path));
  return read_snapshot_source(std::move(source), path, options);
}

Result<Snapshot> read_snapshot_bytes(std::span<const std::byte> bytes, const std::string& name,
                                     const SnapshotReadOptions& options) {
  std::span<const uint8_t> raw(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
  return read_snapshot_source(memory_source(raw), name, options);
}

}  // namespace oomscope
