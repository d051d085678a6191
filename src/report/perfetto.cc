// A trace for ui.perfetto.dev. Of Perfetto's protobuf few messages are needed, so they are written by hand; field
// numbers are those of protos/perfetto/trace/{trace_packet,track_event/track_event,track_event/track_descriptor,
// track_event/counter_descriptor}.proto.
//
// Lifetimes overlap, and slices of one track must nest: each goes to the first lane that is free, as people draw them.
#include <algorithm>
#include <array>
#include <functional>
#include <queue>
#include <string_view>

#include "base/bytes_text.h"
#include "report/exports.h"
#include "report/view_payload.h"

namespace oomscope {
namespace {

constexpr size_t kMostSlices = 20'000;  // the largest; more than that nobody can look at
constexpr uint64_t kSequence = 1;

// The wire format: a key is the field's number and its type, then a varint, or a length and bytes.
class Message {
 public:
  Message& number(uint32_t field, uint64_t value) {
    varint(uint64_t{field} << 3);
    varint(value);
    return *this;
  }
  Message& text(uint32_t field, std::string_view value) {
    varint(uint64_t{field} << 3 | 2);
    varint(value.size());
    bytes_ += value;
    return *this;
  }
  Message& message(uint32_t field, const Message& value) { return text(field, value.bytes_); }
  [[nodiscard]] const std::string& bytes() const { return bytes_; }

 private:
  void varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>(value | 0x80);
    bytes_ += static_cast<char>(value);
  }
  std::string bytes_;
};

namespace packet {
constexpr uint32_t kTimestamp = 8;
constexpr uint32_t kSequenceId = 10;
constexpr uint32_t kTrackEvent = 11;
constexpr uint32_t kTrackDescriptor = 60;
}  // namespace packet
namespace track {
constexpr uint32_t kUuid = 1;
constexpr uint32_t kName = 2;
constexpr uint32_t kProcess = 3;
constexpr uint32_t kParent = 5;
constexpr uint32_t kCounter = 8;
constexpr uint32_t kCounterUnit = 3;
constexpr uint32_t kUnitBytes = 3;
constexpr uint32_t kPid = 1;
constexpr uint32_t kProcessName = 6;
}  // namespace track
namespace event {
constexpr uint32_t kAnnotation = 4;
constexpr uint32_t kType = 9;
constexpr uint32_t kTrack = 11;
constexpr uint32_t kName = 23;
constexpr uint32_t kValue = 30;
constexpr uint32_t kAnnotationName = 10;
constexpr uint32_t kAnnotationInt = 4;
constexpr uint32_t kAnnotationText = 6;
enum Type : uint64_t { slice_begin = 1, slice_end = 2, instant = 3, counter = 4 };
}  // namespace event

class TraceWriter {
 public:
  TraceWriter(const RecordingView& view, Language language, uint64_t first_track)
      : view_(view), language_(language), next_track_(first_track) {}

  std::string run(const std::string& name, uint64_t pid) {
    process_ =
        new_track(Message()
                      .text(track::kName, name)
                      .message(track::kProcess, Message().number(track::kPid, pid).text(track::kProcessName, name)));
    find_times();
    add_counters();
    add_phases();
    add_failures();
    add_lives();
    return std::move(out_);
  }

  [[nodiscard]] uint64_t next_track() const { return next_track_; }

 private:
  void add(const Message& message) {
    const Message whole = Message().message(1, message);
    out_ += whole.bytes();
  }

  uint64_t new_track(Message descriptor) {
    descriptor.number(track::kUuid, next_track_);
    add(Message().number(packet::kSequenceId, kSequence).message(packet::kTrackDescriptor, descriptor));
    return next_track_++;
  }

  uint64_t counter_track(const std::string& name) {
    return new_track(Message()
                         .text(track::kName, name)
                         .number(track::kParent, process_)
                         .message(track::kCounter, Message().number(track::kCounterUnit, track::kUnitBytes)));
  }

  uint64_t slice_track(const std::string& name) {
    return new_track(Message().text(track::kName, name).number(track::kParent, process_));
  }

  void add_event(uint64_t time_ns, const Message& body) {
    add(Message()
            .number(packet::kTimestamp, time_ns)
            .number(packet::kSequenceId, kSequence)
            .message(packet::kTrackEvent, body));
  }

  // Many events share a microsecond: within it they stand a nanosecond apart. Without times an event is a microsecond.
  void find_times() {
    constexpr uint64_t kNsOfUs = 1000;
    uint64_t last = 0;
    for (uint32_t i = 0; i < view_.events; ++i) {
      const uint64_t time = view_.time_us.empty() ? i * kNsOfUs : static_cast<uint64_t>(view_.time_us[i]) * kNsOfUs;
      last = i == 0 ? time : std::max(time, last + 1);
      times_.push_back(last);
    }
    times_.push_back(last + 1);
  }
  [[nodiscard]] uint64_t time_of(uint32_t event) const { return event == kNever ? times_.front() : times_[event]; }

  void add_value(uint64_t track, uint32_t event, int64_t bytes) {
    add_event(times_[event], Message()
                                 .number(event::kType, event::counter)
                                 .number(event::kTrack, track)
                                 .number(event::kValue, static_cast<uint64_t>(bytes)));
  }

  void add_counters() {
    const uint64_t active = counter_track(say("page.ui.active", language_));
    const uint64_t reserved = counter_track(say("page.reserved", language_));
    std::vector<uint64_t> tracks;
    for (size_t i = 0; i < view_.categories.size(); ++i)
      tracks.push_back(counter_track(category_name(view_, i, language_)));
    std::vector<int64_t> now(view_.categories.size(), 0);
    int64_t active_bytes = 0;
    for (const Life& life : view_.lives) {
      if (life.begin != kNever) break;
      now[view_.kinds[life.kind].category] += view_.kinds[life.kind].requested;
      active_bytes += view_.kinds[life.kind].size;
    }
    if (view_.events == 0) return;
    for (size_t i = 0; i < now.size(); ++i) add_value(tracks[i], 0, now[i]);
    for (uint32_t e = 0; e < view_.events; ++e) {
      if (view_.life_of[e] == kNever) continue;
      const Life& life = view_.lives[view_.life_of[e]];
      const int64_t sign = e == life.begin ? 1 : e == life.free_completed ? -1 : 0;
      if (sign == 0) continue;
      const LifeKind& kind = view_.kinds[life.kind];
      active_bytes += sign * kind.size;
      now[kind.category] += sign * kind.requested;
      add_value(active, e, active_bytes);
      add_value(tracks[kind.category], e, now[kind.category]);
    }
    int64_t reserved_bytes = 0;
    for (const DriverChange& change : view_.driver) {
      reserved_bytes += change.is_gain ? change.size : -change.size;
      add_value(reserved, change.event == kNever ? 0 : change.event, reserved_bytes);
    }
  }

  void add_slice(uint64_t track, uint64_t begin, uint64_t end, Message body) {
    add_event(begin, body.number(event::kType, event::slice_begin).number(event::kTrack, track));
    add_event(end, Message().number(event::kType, event::slice_end).number(event::kTrack, track));
  }

  void add_phases() {
    const uint64_t phases = slice_track(say("page.phases", language_));
    for (const PhaseSpan& span : view_.spans) {
      if (span.end > span.begin) {
        const std::string name = say("instant." + std::string(span.phase), language_);
        add_slice(phases, times_[span.begin], times_[span.end], Message().text(event::kName, name));
      }
    }
    const uint64_t steps = slice_track(say("page.step", language_));
    for (const StepUse& step : view_.steps.steps) {
      const std::string name = say(Phrase{.key = "page.ui.step"}.with("step", std::to_string(step.number)), language_);
      add_slice(steps, times_[step.begin], times_[step.end], Message().text(event::kName, name));
    }
  }

  void add_failures() {
    const uint64_t failures = slice_track(say("page.ui.failure", language_));
    for (const FailedAttempt& failure : view_.failures) {
      const Phrase name = Phrase{.key = "page.mark-failure"}.with("bytes", format_bytes(failure.size));
      add_event(times_[failure.event], Message()
                                           .number(event::kType, event::instant)
                                           .number(event::kTrack, failures)
                                           .text(event::kName, say(name, language_)));
    }
  }

  void add_lives() {
    std::vector<uint32_t> largest;
    for (uint32_t i = 0; i < view_.lives.size(); ++i) largest.push_back(i);
    const auto size_of = [&](uint32_t life) { return view_.kinds[view_.lives[life].kind].size; };
    if (largest.size() > kMostSlices) {
      std::nth_element(largest.begin(), largest.begin() + kMostSlices, largest.end(), [&](uint32_t a, uint32_t b) {
        return size_of(a) != size_of(b) ? size_of(a) > size_of(b) : a < b;
      });
      largest.resize(kMostSlices);
      std::sort(largest.begin(), largest.end());
    }
    const uint64_t parent = slice_track(say("page.blocks", language_));
    using Free = std::pair<uint64_t, uint64_t>;  // since when, which lane
    std::priority_queue<Free, std::vector<Free>, std::greater<>> lanes;
    for (uint32_t index : largest) {
      const Life& life = view_.lives[index];
      const uint64_t begin = time_of(life.begin);
      const uint64_t end =
          life.free_completed == kNever ? times_.back() : std::max(times_[life.free_completed], begin + 1);
      uint64_t lane = 0;
      if (!lanes.empty() && lanes.top().first <= begin) {
        lane = lanes.top().second;
        lanes.pop();
      } else {
        lane = new_track(Message().text(track::kName, say("page.blocks", language_)).number(track::kParent, parent));
      }
      lanes.emplace(end, lane);
      add_slice(lane, begin, end, slice_of(life));
    }
  }

  [[nodiscard]] Message slice_of(const Life& life) const {
    const LifeKind& kind = view_.kinds[life.kind];
    const std::string& site = view_.sites[kind.site].text;
    const auto annotation = [](const char* name) { return Message().text(event::kAnnotationName, name); };
    return Message()
        .text(event::kName, format_bytes(kind.size) + " " + (site.empty() ? say("site.none", language_) : site))
        .message(event::kAnnotation,
                 annotation("bytes").number(event::kAnnotationInt, static_cast<uint64_t>(kind.size)))
        .message(event::kAnnotation,
                 annotation("requested").number(event::kAnnotationInt, static_cast<uint64_t>(kind.requested)))
        .message(event::kAnnotation,
                 annotation("category").text(event::kAnnotationText, view_.categories[kind.category]));
  }

  const RecordingView& view_;
  Language language_;
  uint64_t next_track_;
  uint64_t process_ = 0;
  std::vector<uint64_t> times_;
  std::string out_;
};

}  // namespace

std::string perfetto_trace(const Page& page) {
  std::string trace;
  uint64_t track = 1;
  for (size_t i = 0; i < page.recordings.size(); ++i) {
    TraceWriter writer(page.recordings[i].view, page.language, track);
    trace += writer.run(page.recordings[i].name, i + 1);
    track = writer.next_track();
  }
  return trace;
}

}  // namespace oomscope
