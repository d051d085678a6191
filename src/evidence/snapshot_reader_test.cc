#include "evidence/snapshot_reader.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string>

#include "support/pickle_writer.h"

namespace oomscope {
namespace {

using Dict = Pickled::Dict;
using List = Pickled::List;
using Pair = Pickled::Pair;
using Raw = Pickled::Raw;

Result<Snapshot> read(const std::string& bytes, const SnapshotReadOptions& options = {}) {
  return read_snapshot_bytes(std::as_bytes(std::span(bytes)), "test.pickle", options);
}

Snapshot must_read(const std::string& bytes, const SnapshotReadOptions& options = {}) {
  Result<Snapshot> snapshot = read(bytes, options);
  EXPECT_TRUE(snapshot.has_value()) << snapshot.error().code << ": " << snapshot.error().what;
  return snapshot.has_value() ? *std::move(snapshot) : Snapshot{};
}

std::string pickle(const Pickled& value, int protocol = 4) { return PickleWriter(protocol).write(value); }

std::string error_code(const std::string& bytes) {
  Result<Snapshot> snapshot = read(bytes);
  return snapshot.has_value() ? "" : snapshot.error().code;
}

bool has_caveat(const Snapshot& snapshot, std::string_view code) {
  return std::ranges::any_of(snapshot.caveats, [code](const Caveat& caveat) { return caveat.code == code; });
}

std::string stack_text(const Snapshot& snapshot, StackId stack) {
  std::string text;
  size_t index = static_cast<size_t>(stack);
  for (uint32_t i = snapshot.stacks.starts[index]; i < snapshot.stacks.starts[index + 1]; ++i) {
    const Frame& frame = snapshot.stacks.frames[snapshot.stacks.frame_ids[i]];
    text += std::string(snapshot.strings.text(frame.filename)) + ":" + std::to_string(frame.line) + ":" +
            std::string(snapshot.strings.text(frame.name)) + ";";
  }
  return text;
}

Pickled frame(const char* name, int line) { return Dict{{"name", name}, {"filename", "a.py"}, {"line", line}}; }

Pickled event(const char* action, uint64_t addr, int64_t size, const Pickled& frames) {
  return Dict{{"action", action},
              {"addr", addr},
              {"size", size},
              {"stream", 0},
              {"time_us", int64_t{1795971281321858}},
              {"compile_context", Raw{"\x8c\x03N/A"}},
              {"user_metadata", ""},
              {"frames", frames}};
}

Pickled block(uint64_t address, int64_t size, const char* state) {
  return Dict{
      {"address", address}, {"size", size}, {"requested_size", size - 12}, {"state", state}, {"frames", List{}}};
}

Pickled segment(uint64_t address, const List& blocks, int64_t total) {
  return Dict{{"device", 0},
              {"address", address},
              {"total_size", total},
              {"allocated_size", 512},
              {"active_size", 512},
              {"requested_size", 500},
              {"stream", 0},
              {"segment_type", "small"},
              {"segment_pool_id", Pair{0, 1}},
              {"is_expandable", false},
              {"frames", List{}},
              {"blocks", blocks}};
}

Pickled some_segment() {
  return segment(0x7f0000000000,
                 List{block(0x7f0000000000, 512, "active_allocated"), block(0x7f0000000200, 2096640, "inactive")},
                 2097152);
}

// Events with all that varies: sizes of every integer form, shared, new and single-frame stacks, two streams.
Pickled varied_trace(size_t count) {
  List events;
  Pickled one = frame("step", 7).shared();
  Pickled two = frame("train", 70).shared();
  Pickled last = List{};
  for (size_t i = 0; i < count; ++i) {
    Pickled frames = (i % 5 == 0 ? List{one, two} : i % 5 == 1 ? List{two} : i % 7 == 2 ? List{two, one, one} : List{});
    frames = frames.shared();
    int64_t size = int64_t{1} << (i % 36);
    Pickled made =
        event(i % 2 == 0 ? "alloc" : "free_requested", 0x7f0000000000U + i * 512, size, i % 3 == 2 ? last : frames);
    Dict& pairs = std::get<Dict>(made.value);
    if (i % 40 > 30) pairs[3].second = Pickled(uint64_t{0x55aa00ff});
    if (i % 61 == 3) pairs[5].second = Pickled("0/1");
    if (i % 97 == 5) pairs.erase(pairs.begin() + 7);
    if (i % 101 == 6) pairs[1].first = "device_free";
    if (i % 103 == 7) pairs.push_back({"pool_id", Pair{0, i % 2}});
    if (i % 107 == 8) pairs.push_back({"internal_metadata", "mallocWithAddress"});
    events.push_back(made);
    last = frames;
  }
  return events;
}

std::string whole_snapshot(size_t events, int protocol = 4) {
  return pickle(
      Dict{{"segments", List{some_segment(), some_segment()}},
           {"device_traces", List{varied_trace(events)}},
           {"allocator_settings", Dict{{"PYTORCH_CUDA_ALLOC_CONF", "max_split_size_mb:64"},
                                       {"max_split_size", 67108864},
                                       {"garbage_collection_threshold", 0.5},
                                       {"expandable_segments", false},
                                       {"roundup_power2_divisions", Dict{{"1", 4}, {"2", 0}, {"32768", 8}}}}},
           {"external_annotations", List{Dict{{"stage", "START"}, {"name", "step"}, {"device", 0}, {"time_us", 5}},
                                         Dict{{"stage", "END"}, {"name", "step"}, {"device", 0}, {"time_us", 9}}}}},
      protocol);
}

void expect_same(const Snapshot& a, const Snapshot& b) {
  ASSERT_EQ(a.traces.size(), b.traces.size());
  for (size_t device = 0; device < a.traces.size(); ++device) {
    const Trace& x = a.traces[device];
    const Trace& y = b.traces[device];
    ASSERT_EQ(x.size_events(), y.size_events());
    EXPECT_EQ(x.action, y.action);
    EXPECT_EQ(x.addr, y.addr);
    EXPECT_EQ(x.size, y.size);
    EXPECT_EQ(x.time_us, y.time_us);
    EXPECT_EQ(x.pool, y.pool);
    EXPECT_EQ(x.forced, y.forced);
    for (size_t i = 0; i < x.size_events(); ++i) {
      ASSERT_EQ(x.stream(i), y.stream(i)) << i;
      ASSERT_EQ(stack_text(a, x.stack[i]), stack_text(b, y.stack[i])) << i;
      ASSERT_EQ(a.strings.text(x.compile_context.at(i)), b.strings.text(y.compile_context.at(i))) << i;
      ASSERT_EQ(a.strings.text(x.user_metadata.at(i)), b.strings.text(y.user_metadata.at(i))) << i;
    }
  }
  EXPECT_EQ(a.segments.size(), b.segments.size());
  EXPECT_EQ(a.blocks.size(), b.blocks.size());
  EXPECT_EQ(a.annotations.size(), b.annotations.size());
  EXPECT_EQ(a.complete, b.complete);
  EXPECT_EQ(a.caveats, b.caveats);
}

TEST(SnapshotReader, ReadsTheColumnsOfAnEvent) {
  Snapshot snapshot = must_read(pickle(
      Dict{{"segments", List{}},
           {"device_traces",
            List{List{event("segment_alloc", 0x7f1234567000, 2097152, List{frame("step", 7), frame("train", 70)})}}}}));
  ASSERT_EQ(snapshot.traces.size(), 1U);
  const Trace& trace = snapshot.traces[0];
  ASSERT_EQ(trace.size_events(), 1U);
  EXPECT_EQ(trace.action[0], Action::segment_alloc);
  EXPECT_EQ(trace.addr[0], 0x7f1234567000U);
  EXPECT_EQ(trace.size[0], 2097152);
  EXPECT_EQ(trace.time_us[0], 1795971281321858);
  EXPECT_EQ(trace.stream(0), StreamId{0});
  EXPECT_EQ(stack_text(snapshot, trace.stack[0]), "a.py:7:step;a.py:70:train;");
  EXPECT_EQ(snapshot.strings.text(trace.compile_context.at(0)), "N/A");
  EXPECT_TRUE(snapshot.complete);
  EXPECT_TRUE(snapshot.caveats.empty());
}

TEST(SnapshotReader, TheTemplateChangesNothing) {
  std::string bytes = whole_snapshot(5000);
  expect_same(must_read(bytes), must_read(bytes, {.use_template = false}));
}

TEST(SnapshotReader, TimesAreLeftOutOnDemand) {
  const std::string bytes = whole_snapshot(5000);
  for (const bool use_template : {true, false}) {
    Snapshot snapshot = must_read(bytes, {.use_template = use_template, .keeps_times = false});
    EXPECT_TRUE(snapshot.traces[0].time_us.empty());
    const Snapshot whole = must_read(bytes);
    snapshot.traces[0].time_us = whole.traces[0].time_us;
    expect_same(snapshot, whole);
  }
}

TEST(SnapshotReader, AllProtocolsReadTheSame) {
  Snapshot expected = must_read(whole_snapshot(3000));
  for (int protocol : {2, 3, 5}) expect_same(expected, must_read(whole_snapshot(3000, protocol)));
}

TEST(SnapshotReader, EveryCutGivesWhatCameBefore) {
  std::string bytes = whole_snapshot(60);
  size_t events_before = 0;
  size_t segments_before = 0;
  for (size_t length = 0; length < bytes.size(); ++length) {
    std::string cut = bytes.substr(0, length);
    Result<Snapshot> snapshot = read(cut);
    Result<Snapshot> slow = read(cut, {.use_template = false});
    ASSERT_EQ(snapshot.has_value(), slow.has_value()) << length;
    if (!snapshot.has_value()) continue;
    expect_same(*snapshot, *slow);
    EXPECT_FALSE(snapshot->complete);
    EXPECT_TRUE(has_caveat(*snapshot, "snapshot-damaged"));
    size_t events = snapshot->traces.empty() ? 0 : snapshot->traces[0].size_events();
    ASSERT_GE(events, events_before) << length;
    ASSERT_GE(snapshot->segments.size(), segments_before) << length;
    events_before = events;
    segments_before = snapshot->segments.size();
  }
  EXPECT_EQ(events_before, 60U);
  EXPECT_EQ(segments_before, 2U);
}

TEST(SnapshotReader, NobodyIsToldOfATraceOnceItIsDecoded) {
  const std::string bytes =
      pickle(Dict{{"segments", List{}}, {"device_traces", List{List{event("alloc", 512, 512, List{})}}}});
  int told = 0;
  for (size_t length = 0; length <= bytes.size(); ++length) {
    int times_decoded = 0;
    const SnapshotReadOptions options = {.follow =
                                             [&](const Trace&, bool) {
                                               EXPECT_EQ(times_decoded, 0) << length;
                                               ++told;
                                             },
                                         .decoded = [&] { ++times_decoded; }};
    (void)read(bytes.substr(0, length), options);
    EXPECT_EQ(times_decoded, length == 0 ? 0 : 1) << length;
  }
  EXPECT_GT(told, 1);
}

TEST(SnapshotReader, ACutAmongTheSegmentsKeepsTheWholeOnes) {
  const Pickled last = segment(512, List{block(512, 1, "active_allocated"), block(513, 1, "HERE")}, 2);
  const std::string bytes =
      pickle(Dict{{"segments", List{some_segment(), some_segment(), last}}, {"device_traces", List{}}});
  Snapshot snapshot = must_read(bytes.substr(0, bytes.find("HERE")));
  EXPECT_EQ(snapshot.segments.size(), 2U);
  EXPECT_EQ(snapshot.blocks.size(), 4U);
  EXPECT_TRUE(has_caveat(snapshot, "segments-cut-off"));
  EXPECT_FALSE(has_caveat(snapshot, "no-history"));
}

TEST(SnapshotReader, ReadsSegmentsAndBlocks) {
  Snapshot snapshot = must_read(whole_snapshot(10));
  ASSERT_EQ(snapshot.segments.size(), 2U);
  const SnapshotSegment& last = snapshot.segments[1];
  EXPECT_EQ(last.total_size, 2097152);
  EXPECT_EQ(last.pool, (PoolId{0, 1}));
  EXPECT_FALSE(last.is_large);
  ASSERT_EQ(last.block_count, 2U);
  EXPECT_EQ(last.first_block, 2U);
  EXPECT_EQ(snapshot.blocks[2].state, BlockState::active_allocated);
  EXPECT_EQ(snapshot.blocks[2].requested_size, 500);
  EXPECT_EQ(snapshot.blocks[3].state, BlockState::inactive);
}

TEST(SnapshotReader, ReadsSettingsAndAnnotations) {
  Snapshot snapshot = must_read(whole_snapshot(10));
  ASSERT_TRUE(snapshot.settings.has_value());
  EXPECT_EQ(snapshot.settings->conf, "max_split_size_mb:64");
  EXPECT_EQ(snapshot.settings->max_split_size_bytes, 67108864);
  EXPECT_EQ(snapshot.settings->garbage_collection_threshold, 0.5);
  ASSERT_EQ(snapshot.settings->roundup_power2_divisions.size(), 16U);
  EXPECT_EQ(snapshot.settings->roundup_power2_divisions[0], 4);
  EXPECT_EQ(snapshot.settings->roundup_power2_divisions[15], 8);
  ASSERT_EQ(snapshot.annotations.size(), 2U);
  EXPECT_TRUE(snapshot.annotations[0].is_start);
  EXPECT_FALSE(snapshot.annotations[1].is_start);
  EXPECT_EQ(snapshot.annotations[1].time_us, 9);
}

TEST(SnapshotReader, TracesStandUnderTheirDevice) {
  Pickled second = List{event("alloc", 1, 2, List{}), event("free_requested", 1, 2, List{})};
  Snapshot snapshot = must_read(pickle(
      Dict{{"segments", List{}}, {"device_traces", List{List{}, second, List{}, List{event("oom", 3, 4, List{})}}}}));
  ASSERT_EQ(snapshot.traces.size(), 4U);
  EXPECT_EQ(snapshot.traces[0].size_events(), 0U);
  EXPECT_EQ(snapshot.traces[1].size_events(), 2U);
  EXPECT_EQ(snapshot.traces[2].size_events(), 0U);
  ASSERT_EQ(snapshot.traces[3].size_events(), 1U);
  EXPECT_EQ(snapshot.traces[3].action[0], Action::oom);
}

TEST(SnapshotReader, AListOfTorch113HasHistoryInsteadOfAddresses) {
  Pickled history =
      List{Dict{{"addr", uint64_t{0x7f0000000000}}, {"real_size", 400}, {"frames", List{frame("new", 1)}}},
           Dict{{"addr", uint64_t{0x7f0000000000}}, {"real_size", 300}, {"frames", List{frame("old", 2)}}}};
  Snapshot snapshot = must_read(
      pickle(List{Dict{{"device", 0},
                       {"address", uint64_t{0x7f0000000000}},
                       {"total_size", 2097152},
                       {"allocated_size", 512},
                       {"active_size", 512},
                       {"stream", 0},
                       {"segment_type", "small"},
                       {"blocks", List{Dict{{"size", 512}, {"state", "active_allocated"}, {"history", history}},
                                       Dict{{"size", 2096640}, {"state", "inactive"}}}}}}));
  EXPECT_TRUE(snapshot.features.block_history);
  ASSERT_EQ(snapshot.blocks.size(), 2U);
  EXPECT_EQ(snapshot.blocks[1].address, 0x7f0000000200U);
  EXPECT_EQ(stack_text(snapshot, snapshot.blocks[0].stack), "a.py:1:new;");
  EXPECT_EQ(snapshot.blocks[0].requested_size, 400);
  EXPECT_EQ(snapshot.segments[0].requested_size, 400);
  EXPECT_TRUE(has_caveat(snapshot, "no-history"));
}

// Blocks without addresses: torch before 2.1, whose ring of events has one entry unless told otherwise.
TEST(SnapshotReader, TellsARingOfOneEntryFromNoHistory) {
  const Pickled segments = List{Dict{{"device", 0},
                                     {"address", uint64_t{0x7f0000000000}},
                                     {"total_size", 2097152},
                                     {"stream", 0},
                                     {"segment_type", "small"},
                                     {"blocks", List{Dict{{"size", 512}, {"state", "active_allocated"}},
                                                     Dict{{"size", 2096640}, {"state", "inactive"}}}}}};
  for (const char* last : {"snapshot", "free_completed"}) {
    const Pickled ring = List{Dict{{"action", std::string(last)}, {"addr", 0}, {"size", 512}, {"stream", 0}}};
    const Snapshot snapshot = must_read(pickle(Dict{{"segments", segments}, {"device_traces", List{ring}}}));
    EXPECT_TRUE(has_caveat(snapshot, "last-event-only")) << last;
    EXPECT_FALSE(has_caveat(snapshot, "no-history")) << last;
  }
  const Snapshot empty = must_read(pickle(Dict{{"segments", segments}, {"device_traces", List{List{}}}}));
  EXPECT_TRUE(has_caveat(empty, "no-history"));
}

TEST(SnapshotReader, HostMemoryIsNotTheDevices) {
  Snapshot snapshot = must_read(pickle(Dict{{"segments", List{some_segment()}},
                                            {"device_traces", List{List{event("alloc", 1, 2, List{})}}},
                                            {"host_segments", List{some_segment(), some_segment()}},
                                            {"host_traces", List{event("alloc", 9, 9, List{})}}}));
  EXPECT_TRUE(snapshot.features.host_segments);
  EXPECT_EQ(snapshot.segments.size(), 1U);
  EXPECT_EQ(snapshot.blocks.size(), 2U);
  ASSERT_EQ(snapshot.traces.size(), 1U);
  EXPECT_EQ(snapshot.traces[0].addr, AddressColumn{1});
}

TEST(SnapshotReader, ATraceInWhichNobodyAskedForAnythingIsNoHistory) {
  Snapshot snapshot = must_read(pickle(
      Dict{{"segments", List{}},
           {"device_traces", List{List{event("free_completed", 1, 2, List{}), event("snapshot", 0, 0, List{})}}}}));
  ASSERT_EQ(snapshot.traces.size(), 1U);
  EXPECT_EQ(snapshot.traces[0].size_events(), 0U);
}

TEST(SnapshotReader, SharedFramesAreOneStack) {
  Pickled frames = Pickled(List{frame("step", 7).shared(), frame("go", 8)}).shared();
  Snapshot snapshot = must_read(pickle(Dict{
      {"segments", List{}},
      {"device_traces", List{List{event("free_requested", 1, 2, frames), event("free_completed", 1, 2, frames)}}}}));
  EXPECT_EQ(snapshot.traces[0].stack[0], snapshot.traces[0].stack[1]);
  EXPECT_EQ(stack_text(snapshot, snapshot.traces[0].stack[1]), "a.py:7:step;a.py:8:go;");
  EXPECT_EQ(snapshot.stacks.size(), 2U);
}

TEST(SnapshotReader, OddValuesAreKept) {
  std::string name = "\xff\xfe not UTF-8";
  Pickled odd = Dict{{"name", name}, {"filename", "??"}, {"line", UINT64_MAX}, {"fx_node_name", "add"}};
  Pickled more = Dict{{"action", "alloc"},         {"forward_frames", List{"a", "b"}},
                      {"addr", uint64_t{1} << 63}, {"size", int64_t{1} << 40},
                      {"stream", int64_t{-1}},     {"new_key", Dict{{"x", List{1, 2.5}}}},
                      {"frames", List{odd}}};
  Snapshot snapshot = must_read(pickle(Dict{{"segments", List{}}, {"device_traces", List{List{more, more}}}}));
  const Trace& trace = snapshot.traces[0];
  EXPECT_EQ(trace.addr[1], uint64_t{1} << 63);
  EXPECT_EQ(trace.size[1], int64_t{1} << 40);
  EXPECT_EQ(trace.stream(1), StreamId{UINT64_MAX});
  EXPECT_EQ(stack_text(snapshot, trace.stack[0]), "??:18446744073709551615:" + name + ";");
}

TEST(SnapshotReader, TheLastOfTwoEqualKeysWins) {
  Pickled twice = Dict{{"action", "alloc"}, {"addr", 1}, {"size", 2}, {"stream", 0}, {"addr", 3}};
  Snapshot snapshot = must_read(pickle(Dict{{"segments", List{}}, {"device_traces", List{List{twice, twice, twice}}}}));
  EXPECT_EQ(snapshot.traces[0].addr, (AddressColumn{3, 3, 3}));
}

TEST(SnapshotReader, CountsWhatItCannotRead) {
  Snapshot snapshot =
      must_read(pickle(Dict{{"segments", List{segment(512, List{block(512, 512, "inactive")}, 4096)}},
                            {"device_traces", List{List{Dict{{"action", "alloc"}, {"addr", "x"}, {"size", 1}},
                                                        event("teleport", 1, 2, List{})}}}}));
  EXPECT_TRUE(has_caveat(snapshot, "events-unreadable"));
  EXPECT_TRUE(has_caveat(snapshot, "unknown-actions"));
  EXPECT_TRUE(has_caveat(snapshot, "segment-sum-wrong"));
  EXPECT_EQ(snapshot.traces[0].size_events(), 1U);
}

int64_t total_bytes(const Snapshot& snapshot) {
  int64_t total = 0;
  for (const SnapshotSegment& segment : snapshot.segments) total += segment.total_size;
  for (const SnapshotBlock& block : snapshot.blocks) total += block.size;
  for (const Trace& trace : snapshot.traces) {
    for (int64_t size : trace.size) total += size;
  }
  return total;
}

TEST(SnapshotReader, SizesBeyondAnyMachineCountAsNone) {
  constexpr int64_t kHuge = int64_t{1} << 62;
  Snapshot snapshot = must_read(pickle(
      Dict{{"segments", List{segment(512, List{block(512, kHuge, "inactive"), block(512, 4096, "inactive")}, kHuge)}},
           {"device_traces", List{List{event("alloc", 1, kHuge, List{}), event("alloc", 1, 4096, List{})}}}}));
  EXPECT_TRUE(has_caveat(snapshot, "segment-values-wrong"));
  EXPECT_TRUE(has_caveat(snapshot, "impossible-sizes"));
  EXPECT_EQ(total_bytes(snapshot), 2 * 4096);
}

// Each is possible, all together are not, and nothing that is added up later may overflow.
TEST(SnapshotReader, ASumBeyondAnyMachineIsCutShort) {
  List events;
  List segments;
  for (uint64_t i = 0; i < 3000; ++i) {
    events.push_back(event(i % 2 == 0 ? "alloc" : "free_requested", i << 50, int64_t{1} << 50, List{}));
    segments.push_back(segment(i << 50, List{block(i << 50, int64_t{1} << 50, "inactive")}, int64_t{1} << 50));
  }
  Snapshot snapshot = must_read(pickle(Dict{{"segments", segments}, {"device_traces", List{events, events}}}));
  EXPECT_LE(total_bytes(snapshot), 2 * (int64_t{1} << 60));
  EXPECT_TRUE(has_caveat(snapshot, "segment-values-wrong"));
  EXPECT_TRUE(has_caveat(snapshot, "impossible-sizes"));
}

TEST(SnapshotReader, ARequestThatFailedMayBeAbsurd) {
  Snapshot snapshot = must_read(pickle(
      Dict{{"segments", List{}},
           {"device_traces", List{List{event("oom", 1 << 30, int64_t{1} << 56, List{}),
                                       event("oom", uint64_t{1} << 63, 512, List{}), event("alloc", 1, 2, List{})}}}}));
  EXPECT_EQ(snapshot.traces[0].size, (SizeColumn{int64_t{1} << 56, 0, 2}));
  EXPECT_EQ(snapshot.traces[0].action[1], Action::unknown);
}

TEST(SnapshotReader, RefusesToExecute) {
  std::string bytes = "\x80\x04}(\x8c\x08segmentscos\nsystem\n\x85R";
  Result<Snapshot> snapshot = read(bytes);
  ASSERT_FALSE(snapshot.has_value());
  EXPECT_EQ(snapshot.error().code, "pickle-would-execute");
  EXPECT_EQ(snapshot.error().where, "error.at-byte");
  EXPECT_EQ(snapshot.error().values, (Values{{"opcode", "GLOBAL"}, {"byte", "14"}, {"file", "test.pickle"}}));
  for (char opcode : {'R', 'b', 'i', 'o', 'P', 'Q', '\x81', '\x82', '\x83', '\x84', '\x92', '\x93', '\x97', '\x98'}) {
    EXPECT_EQ(error_code(std::string("\x80\x04]") + opcode + "."), "pickle-would-execute") << static_cast<int>(opcode);
  }
}

TEST(SnapshotReader, SaysWhatAnOtherFileIs) {
  EXPECT_EQ(error_code(""), "file-empty");
  EXPECT_EQ(error_code("Traceback (most recent call last):\n"), "not-a-pickle");
  EXPECT_EQ(error_code(std::string("PK\x03\x04rest", 8)), "not-a-pickle");
  EXPECT_EQ(error_code("\x80\x07."), "pickle-unsupported");
  EXPECT_EQ(error_code(pickle(Dict{{"a", 1}})), "not-a-snapshot");
  EXPECT_EQ(error_code(pickle(List{"a", "b"})), "not-a-snapshot");
  EXPECT_EQ(error_code(pickle(5)), "not-a-snapshot");
  EXPECT_EQ(error_code(pickle(Dict{{"segments", 5}})), "not-a-snapshot");
  EXPECT_EQ(error_code("\x80\x04"), "snapshot-damaged");
  EXPECT_EQ(error_code("<!DOCTYPE html><html>nothing</html>"), "page-without-snapshot");
  Result<Snapshot> missing = read_snapshot_file("no/such/file.pickle");
  ASSERT_FALSE(missing.has_value());
  EXPECT_EQ(missing.error().code, "file-not-found");
  EXPECT_FALSE(missing.error().hint.empty());
  Result<Snapshot> folder = read_snapshot_file(".");
  ASSERT_FALSE(folder.has_value());
  EXPECT_EQ(folder.error().code, "file-is-a-directory");
}

TEST(SnapshotReader, AListInsideItselfIsNoCycle) {
  std::string bytes =
      "\x80\x04}(\x8c\x08segments]\x8c\x0d"
      "device_traces]q\x05h\x05"
      "au.";
  Snapshot snapshot = must_read(bytes);
  EXPECT_TRUE(snapshot.complete);
  EXPECT_TRUE(snapshot.traces.empty());
}

TEST(SnapshotReader, HostileSizesEndInAnError) {
  EXPECT_EQ(error_code(std::string("\x80\x04]r\xff\xff\xff\x7f.", 9)), "snapshot-damaged");
  EXPECT_EQ(error_code(std::string("\x80\x04j\xff\xff\xff\x7f.", 8)), "snapshot-damaged");
  EXPECT_EQ(error_code(std::string("\x80\x04X\xff\xff\xff\x7f.", 8)), "snapshot-damaged");
  EXPECT_EQ(error_code(std::string("\x80\x04\x8e\xff\xff\xff\xff\xff\xff\xff\x7f.", 12)), "snapshot-damaged");
  EXPECT_EQ(error_code("\x80\x04" + std::string(5000000, ']')), "snapshot-too-large");
  EXPECT_EQ(error_code("\x80\x04" + std::string(5000000, '(')), "snapshot-too-large");
}

TEST(SnapshotReader, AllocsThatRestoreACheckpointAreMarked) {
  const Pickled python = List{frame("apply_checkpoint_execution_state_in_allocator", 7), frame("cudagraphify", 8)};
  const Pickled native = List{frame(
      "c10::cuda::CUDACachingAllocator::Native::NativeCachingAllocator::setCheckpointPoolState(signed char, x)", 0)};
  const Pickled other = List{frame("cudagraphify", 8)};
  const Snapshot snapshot = must_read(
      pickle(Dict{{"segments", List{}},
                  {"device_traces",
                   List{List{event("alloc", 512, 512, other), event("alloc", 1024, 512, python),
                             event("free_requested", 1024, 512, python), event("free_completed", 1024, 512, python),
                             event("alloc", 2048, 512, native), event("alloc", 4096, 512, List{})}}}}));
  ASSERT_EQ(snapshot.traces.size(), 1U);
  EXPECT_EQ(snapshot.traces[0].restored, (std::vector<uint32_t>{1, 4}));
  EXPECT_TRUE(snapshot.traces[0].forced.empty());
}

TEST(SnapshotReader, NothingReachesBeyondTheAddressSpace) {
  const uint64_t last = 0xFFFFFFFFFFE00000;
  const Pickled beyond = segment(last, List{block(last, 4194304, "inactive")}, 4194304);
  const Snapshot snapshot = must_read(pickle(Dict{
      {"segments", List{some_segment(), beyond}},
      {"device_traces", List{List{event("segment_map", last, 4194304, List{}), event("alloc", 512, 512, List{})}}}}));
  EXPECT_TRUE(has_caveat(snapshot, "segment-values-wrong"));
  EXPECT_TRUE(has_caveat(snapshot, "impossible-sizes"));
  for (const SnapshotSegment& segment : snapshot.segments) {
    EXPECT_GE(segment.address + static_cast<uint64_t>(segment.total_size), segment.address);
  }
}

TEST(SnapshotReader, MemoryHasALimit) {
  Result<Snapshot> snapshot = read(whole_snapshot(20000), {.max_memory_bytes = 200000});
  ASSERT_FALSE(snapshot.has_value());
  EXPECT_EQ(snapshot.error().code, "snapshot-too-large");
}

TEST(SnapshotReader, AMemoEntryMayChangeItsMeaning) {
  // Frames 'f' and 'g' in turn under one memo index: what was learnt of the index must not outlive the change.
  auto text = [](const std::string& value) { return "\x8c" + std::string(1, static_cast<char>(value.size())) + value; };
  std::string made = "\x80\x04}(";
  made += "}(" + text("name") + "q\x01" + text("f") + text("filename") + "q\x02" + text("a.py") + text("line") +
          "q\x03K\x01uq\x0a"
          "0";
  made += "}(h\x01" + text("g") + "h\x02" + text("b.py") +
          "h\x03K\x02uq\x0b"
          "0";
  made += text("action") +
          "q\x04"
          "0" +
          text("alloc") +
          "q\x05"
          "0" +
          text("addr") +
          "q\x06"
          "0" +
          text("size") +
          "q\x07"
          "0" +
          text("frames") +
          "q\x08"
          "0";
  made += text("segments") + "]" + text("device_traces") + "](](";
  std::string one_event =
      "}\x94(h\x04h\x05h\x06K\x10h\x07K\x20h\x08]\x94(h\x0ah\x0a"
      "eu";
  for (int i = 0; i < 3; ++i) made += one_event;
  made +=
      "h\x0bq\x0a"
      "0";
  for (int i = 0; i < 3; ++i) made += one_event;
  made += "eeu.";
  Snapshot fast = must_read(made);
  expect_same(fast, must_read(made, {.use_template = false}));
  ASSERT_EQ(fast.traces.size(), 1U);
  ASSERT_EQ(fast.traces[0].size_events(), 6U);
  EXPECT_EQ(stack_text(fast, fast.traces[0].stack[2]), "a.py:1:f;a.py:1:f;");
  EXPECT_EQ(stack_text(fast, fast.traces[0].stack[5]), "b.py:2:g;b.py:2:g;");
}

TEST(SnapshotReader, MemoisingAfterTheValueIsTheSame) {
  // torch/csrc/jit/serialization/pickler.cpp (pushIValue) writes BINPUT behind a dictionary's SETITEMS.
  auto text = [](const std::string& value) {
    return "X" + std::string(1, static_cast<char>(value.size())) + std::string(3, '\0') + value;
  };
  std::string frame_bytes = "}(" + text("name") + text("f") + text("filename") + text("a.py") + text("line") + "K\x01u";
  std::string head =
      "}(" + text("action") + text("alloc") + text("addr") + "K\x01" + text("size") + "K\x02" + text("frames");
  std::string made = "\x80\x02}(" + text("segments") + "](e" + text("device_traces") + "](](" + head + "](" +
                     frame_bytes +
                     "q\x01"
                     "eq\x02"
                     "u" +
                     head + "h\x02u" + head +
                     "](h\x01h\x01"
                     "eueeu.";
  Snapshot snapshot = must_read(made);
  ASSERT_EQ(snapshot.traces.size(), 1U);
  ASSERT_EQ(snapshot.traces[0].size_events(), 3U);
  EXPECT_EQ(stack_text(snapshot, snapshot.traces[0].stack[1]), "a.py:1:f;");
  EXPECT_EQ(stack_text(snapshot, snapshot.traces[0].stack[2]), "a.py:1:f;a.py:1:f;");
  EXPECT_TRUE(snapshot.complete);
}

TEST(SnapshotReader, ADamagedByteIsSeenOnBothPaths) {
  std::string bytes = whole_snapshot(200);
  for (size_t at = bytes.size() / 8; at < bytes.size(); at += 3) {
    std::string damaged = bytes;
    damaged[at] = static_cast<char>(damaged[at] ^ (1 << (at % 8)));
    Result<Snapshot> fast = read(damaged);
    Result<Snapshot> slow = read(damaged, {.use_template = false});
    ASSERT_EQ(fast.has_value(), slow.has_value()) << at;
    if (fast.has_value()) expect_same(*fast, *slow);
  }
}

TEST(SnapshotReader, ReadsFiles) {
  std::string path =
      (std::filesystem::temp_directory_path() / ("oomscope_reader_test." + std::to_string(getpid()))).string();
  std::string bytes = whole_snapshot(50000);  // long enough for the read-ahead
  FILE* file = std::fopen(path.c_str(), "wb");
  ASSERT_NE(file, nullptr);
  ASSERT_EQ(std::fwrite(bytes.data(), 1, bytes.size(), file), bytes.size());
  (void)std::fclose(file);
  Result<Snapshot> snapshot = read_snapshot_file(path);
  (void)std::remove(path.c_str());
  ASSERT_TRUE(snapshot.has_value());
  expect_same(*snapshot, must_read(bytes, {.use_template = false}));
}

}  // namespace
}  // namespace oomscope
