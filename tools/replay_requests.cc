// Gives the engine the requests that tools/oracle sent through a release of torch, and compares all that came of them.
//
//   replay_requests RULES SNAPSHOT < REQUESTS
//
// REQUESTS is what request_log.py wrote, SNAPSHOT the state that torch ended in. Every call that the engine makes of
// the driver must be the next one that torch made, and gets torch's answer (but for address ranges that are given
// back, of which the log has nothing); every request must get torch's address or refusal; at the end segments, blocks
// (with the stale requested sizes of free ones) and all statistics must be equal. Nothing is inferred, so a difference
// is a fault of the rules. Stops at the first one, prints one JSON object, and ends with 1 if there was one, 2 if the
// input cannot be read.
#include <algorithm>
#include <charconv>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "caching/allocator.h"
#include "caching/stats_names.h"
#include "evidence/snapshot_reader.h"
#include "replay/final_state.h"

namespace oomscope {
namespace {

using Words = std::vector<std::string>;

struct Call {
  std::string kind;
  uint64_t address = 0;
  int64_t size = 0;
};

// One request and what came of it.
struct Step {
  int64_t line = 0;
  Words words;
  std::map<int32_t, std::deque<Call>> calls;  // by device
  Words answer;                               // "at ADDRESS" or "oom"; empty for what has none
};

// Where torch and the engine differ first; empty while they do not.
struct Findings {
  std::string first;
  int64_t line = 0;
  int64_t calls = 0;
  void differ(const std::string& what) {
    if (first.empty()) first = "line " + std::to_string(line) + ": " + what;
  }
};

[[noreturn]] void unreadable(const std::string& why) {
  std::fprintf(stderr, "replay_requests: %s\n", why.c_str());
  std::exit(2);
}

template <class T = int64_t>
T number(const std::string& text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) {
    unreadable("not a number: " + text);
  }
  return value;
}

// Words of each kind of request, its name included.
size_t least_words(const std::string& kind) {
  static const std::map<std::string_view, size_t> counts = {
      {"torch", 1}, {"settings", 1},      {"card", 3},     {"limit", 3},       {"malloc", 5},
      {"free", 3},  {"record_stream", 4}, {"complete", 3}, {"empty_cache", 1}, {"pool", 4},
      {"begin", 5}, {"end", 3},           {"release", 3},  {"destroy", 3},     {"stat", 4}};
  const auto found = counts.find(kind);
  if (found == counts.end()) unreadable("unknown request: " + kind);
  return found->second;
}

bool is_call(const std::string& kind) {
  static const std::vector<std::string_view> kinds = {"allocate", "refuse",     "release", "map",
                                                      "unmap",    "refuse_map", "reserve"};
  return std::find(kinds.begin(), kinds.end(), kind) != kinds.end();
}

// Ends the program where a step lacks what its kind must have.
void check(const Step& step) {
  const std::string line = "line " + std::to_string(step.line) + ": ";
  if (step.words.empty()) unreadable(line + "empty");
  if (step.words.size() < least_words(step.words[0])) unreadable(line + "too few words: " + step.words[0]);
  if (step.words[0] != "malloc") return;
  const bool answered = !step.answer.empty() && step.answer.size() == (step.answer[0] == "at" ? 2U : 1U);
  if (!answered) unreadable(line + "a malloc without an answer");
}

StreamId stream_of(const std::string& text) { return StreamId{number<uint64_t>(text)}; }

// Of all devices: a stream's events are done in the order in which they were recorded.
class Events {
 public:
  EventId record(StreamId stream) {
    pending_[stream].push_back(++last_);
    return EventId{last_};
  }
  void complete(StreamId stream, int64_t count) {
    std::deque<uint64_t>& events = pending_[stream];
    for (; count > 0 && !events.empty(); --count) events.pop_front();
  }
  [[nodiscard]] bool is_done(EventId event) const {
    return std::none_of(pending_.begin(), pending_.end(), [event](const auto& entry) {
      return std::binary_search(entry.second.begin(), entry.second.end(), static_cast<uint64_t>(event));
    });
  }
  void wait(EventId event) {
    for (auto& [stream, events] : pending_) std::erase(events, static_cast<uint64_t>(event));
  }

 private:
  uint64_t last_ = 0;
  std::map<StreamId, std::deque<uint64_t>> pending_;
};

// Answers what torch was answered, as long as the engine asks the same.
class ToldDevice final : public Device {
 public:
  ToldDevice(Events& events, Findings& findings, int64_t total) : events_(events), findings_(findings), total_(total) {}

  std::deque<Call> calls;

  uint64_t allocate(int64_t size, StreamId) override {
    if (!calls.empty() && calls.front().kind == "refuse") {
      take("refuse", 0, size);
      return 0;
    }
    return take("allocate", {}, size);
  }
  void release(uint64_t address, int64_t size) override { take("release", address, size); }
  uint64_t reserve(int64_t size, int64_t) override { return take("reserve", {}, size); }
  void release_range(uint64_t, int64_t) override {}  // not in the list
  bool map(uint64_t address, int64_t size, int64_t page) override {
    if (!calls.empty() && calls.front().kind == "refuse_map") {
      take("refuse_map", 0, page);
      return false;
    }
    for (int64_t done = 0; done < size; done += page) take("map", address + static_cast<uint64_t>(done), page);
    return true;
  }
  void unmap(uint64_t address, int64_t size) override {
    for (int64_t done = 0; done < size;) {
      const int64_t page = calls.empty() ? size - done : calls.front().size;
      take("unmap", address + static_cast<uint64_t>(done), page);
      done += page;
    }
  }
  [[nodiscard]] int64_t total_bytes() const override { return total_; }

  EventId record_event(StreamId stream) override { return events_.record(stream); }
  bool event_done(EventId event) override { return events_.is_done(event); }
  void wait_event(EventId event) override { events_.wait(event); }

 private:
  // The next call must be this one; without `address` the driver chose it. Returns it.
  uint64_t take(const char* kind, std::optional<uint64_t> address, int64_t size) {
    const std::string asked = std::string(kind) + " of " + std::to_string(size);
    if (calls.empty()) {
      findings_.differ("only the engine asks the driver for " + asked);
      return address.value_or(0);
    }
    const Call call = calls.front();
    calls.pop_front();
    findings_.calls += 1;
    if (call.kind != kind || call.size != size || (address && *address != call.address)) {
      findings_.differ("the engine asks the driver for " + asked + " at " + std::to_string(address.value_or(0)) +
                       ", torch for " + call.kind + " of " + std::to_string(call.size) + " at " +
                       std::to_string(call.address));
    }
    return call.address;
  }

  Events& events_;
  Findings& findings_;
  int64_t total_;
};

struct Card {
  std::unique_ptr<ToldDevice> device;
  std::unique_ptr<CachingAllocator> allocator;
};

struct Counts {
  int64_t requests = 0;
  int64_t mallocs = 0;
  int64_t ooms = 0;
  int64_t stats = 0;
  std::vector<std::string> stats_differing;
};

class Replay {
 public:
  explicit Replay(const RuleSet& rules) : rules_(rules) {}

  void take(const Step& step) {
    findings_.line = step.line;
    for (auto& [index, card] : cards_) {
      const auto made = step.calls.find(index);
      card.device->calls = made == step.calls.end() ? std::deque<Call>() : made->second;
      sort_by_pool(card.device->calls, *card.allocator);
    }
    const std::string& kind = step.words[0];
    counts_.requests += kind == "torch" || kind == "card" || kind == "stat" ? 0 : 1;  // those say what there is
    request(step);
    for (auto& [index, card] : cards_) {
      if (!card.device->calls.empty()) {
        findings_.differ("only torch asks the driver for " + card.device->calls.front().kind + " of " +
                         std::to_string(card.device->calls.front().size));
      }
    }
  }

  void compare_end(const Snapshot& snapshot) {
    for (auto& [index, card] : cards_) {
      if (const auto difference = compare_final_state(snapshot, index, *card.allocator)) {
        findings_.differ("final state: " + difference->what);
      }
      compare_stale_sizes(snapshot, index, *card.allocator);
      if (const std::string broken = card.allocator->check_invariants(); !broken.empty()) findings_.differ(broken);
      compare_stats(index, *card.allocator);
    }
  }

  [[nodiscard]] bool differs() const { return !findings_.first.empty() || !counts_.stats_differing.empty(); }

  void print() const {
    std::printf("{\"requests\": %" PRId64 ", \"mallocs\": %" PRId64 ", \"ooms\": %" PRId64
                ", \"driver_calls\": %" PRId64 ", \"stats\": %" PRId64 ", \"stats_differing\": [",
                counts_.requests, counts_.mallocs, counts_.ooms, findings_.calls, counts_.stats);
    for (const std::string& name : counts_.stats_differing) {
      std::printf("%s\"%s\"", &name == counts_.stats_differing.data() ? "" : ", ", name.c_str());
    }
    std::printf(findings_.first.empty() ? "], \"first_difference\": null}\n" : "], \"first_difference\": \"%s\"}\n",
                findings_.first.c_str());
  }

 private:
  // Several pools that were given up are released in the order of torch's hash table, which only its size and history
  // explain; the engine goes by id. Inside each pool, and of everything else, the order is compared.
  static void sort_by_pool(std::deque<Call>& calls, const CachingAllocator& allocator) {
    const auto given_up = [&](const Call& call) -> const PrivatePool* {
      if (call.kind != "release" && call.kind != "unmap") return nullptr;
      for (const Segment* segment : allocator.segments()) {
        if (call.address - segment->address >= static_cast<uint64_t>(segment->size_bytes)) continue;
        const PrivatePool* owner = segment->pool->owner;
        return owner != nullptr && owner->freeable() ? owner : nullptr;
      }
      return nullptr;
    };
    for (auto begin = calls.begin(); begin != calls.end();) {
      begin = std::find_if(begin, calls.end(), given_up);
      const auto end = std::find_if_not(begin, calls.end(), given_up);
      std::stable_sort(begin, end, [&](const Call& a, const Call& b) { return given_up(a)->id < given_up(b)->id; });
      begin = end;
    }
  }

  void request(const Step& step) {
    const Words& words = step.words;
    const std::string& what = words[0];
    if (what == "malloc") return malloc(step);
    if (what == "free") return free(words);
    if (what == "record_stream") {
      const auto [device, block] = live(words[1])->second;
      card(device).allocator->record_stream(block, stream_of(words[2]), stream_of(words[3]));
    } else if (what == "complete") {
      events_.complete(stream_of(words[1]), number(words[2]));
    } else if (what == "empty_cache") {
      for (auto& [index, card] : cards_) {
        const size_t place = static_cast<size_t>(index) + 1;
        if (place >= words.size()) unreadable("an empty_cache without the stream of device " + std::to_string(index));
        card.allocator->empty_cache(stream_of(words[place]));
      }
    } else if (what == "settings") {
      change_settings(words.size() > 1 ? words[1] : "");
    } else if (what == "card") {
      add_card(number<int32_t>(words[1]), number(words[2]));
    } else if (what == "limit") {
      card(number<int32_t>(words[1])).allocator->set_memory_limit(number(words[2]));
    } else if (what == "stat") {
      stats_[number<int32_t>(words[1])][words[2]] = number(words[3]);
    } else if (what != "torch") {
      of_pool(words);
    }
  }

  // Private pools are of the first device.
  void of_pool(const Words& words) {
    CachingAllocator& allocator = *card(0).allocator;
    const PoolId pool{number<uint64_t>(words[1]), number<uint64_t>(words[2])};
    const std::string& what = words[0];
    if (what == "pool") {
      const int64_t options = number(words[3]);
      PrivatePool& made = allocator.private_pool(pool);
      made.custom_allocator = (options & 1) != 0;
      made.use_on_oom = (options & 2) != 0;
      made.no_split = (options & 4) != 0;
    } else if (what == "begin") {
      const std::optional<StreamId> stream = words[3] == "-1" ? std::nullopt : std::optional(stream_of(words[3]));
      allocator.begin_allocate_to_pool(pool, stream, words[4] == "1");
    } else if (what == "end") {
      allocator.end_allocate_to_pool(pool);
    } else if (what == "release") {
      allocator.release_pool(pool);
    } else {  // destroy
      allocator.release_pool(pool);
      allocator.empty_pool(pool);
    }
  }

  void malloc(const Step& step) {
    const int32_t device = number<int32_t>(step.words[2]);
    CachingAllocator& allocator = *card(device).allocator;
    Block* block = allocator.malloc(number(step.words[4]), stream_of(step.words[3]));
    counts_.mallocs += 1;
    const bool refused = step.answer[0] == "oom";
    counts_.ooms += refused ? 1 : 0;
    if (refused != (block == nullptr)) {
      findings_.differ(refused ? "only torch runs out of memory" : "only the engine runs out of memory");
    } else if (!refused && block->address != number<uint64_t>(step.answer[1])) {
      findings_.differ("the engine places it at " + std::to_string(block->address) + ", torch at " + step.answer[1]);
    }
    if (block != nullptr) live_[number(step.words[1])] = {device, block};
  }

  void free(const Words& words) {
    const auto found = live(words[1]);
    const auto [device, block] = found->second;
    live_.erase(found);
    card(device).allocator->free(block, stream_of(words[2]));
  }

  Card& card(int32_t device) {
    const auto found = cards_.find(device);
    if (found == cards_.end()) unreadable("no card has been described of device " + std::to_string(device));
    return found->second;
  }

  std::map<int64_t, std::pair<int32_t, Block*>>::iterator live(const std::string& id) {
    const auto found = live_.find(number(id));
    if (found == live_.end()) unreadable("nothing is live under the number " + id);
    return found;
  }

  void change_settings(const std::string& conf) {
    const Result<ParsedSettings> parsed = parse_allocator_settings(conf, rules_.parser);
    if (!parsed) {
      findings_.differ("settings are refused: " + parsed.error().what);
      return;
    }
    settings_ = parsed->settings;
    for (auto& [index, card] : cards_) card.allocator->set_settings(settings_);
  }

  void add_card(int32_t index, int64_t total) {
    Card card{.device = std::make_unique<ToldDevice>(events_, findings_, total), .allocator = nullptr};
    card.allocator = std::make_unique<CachingAllocator>(rules_, settings_, *card.device);
    first_settings_ = settings_;
    cards_.emplace(index, std::move(card));
  }

  void compare_stale_sizes(const Snapshot& snapshot, int32_t device, const CachingAllocator& allocator) {
    std::map<uint64_t, int64_t> requested;
    for (const Segment* segment : allocator.segments()) {
      for (const Block* block = segment->first; block != nullptr; block = block->next) {
        requested[block->address] = block->requested_size;
      }
    }
    for (const SnapshotSegment& segment : snapshot.segments) {
      for (uint32_t i = 0; i < segment.block_count && segment.device == device; ++i) {
        const SnapshotBlock& block = snapshot.blocks[segment.first_block + i];
        if (requested[block.address] != block.requested_size) {
          findings_.differ("requested size of the block at " + std::to_string(block.address) + " is " +
                           std::to_string(requested[block.address]) + ", in torch " +
                           std::to_string(block.requested_size));
        }
      }
    }
  }

  // The statistic max_split_size is that of the beginning.
  void compare_stats(int32_t device, const CachingAllocator& allocator) {
    const std::map<std::string, int64_t>& torch = stats_[device];
    for (const auto& [name, value] : flat_stats(allocator.stats(), first_settings_)) {
      const auto found = torch.find(name);
      if (found == torch.end()) continue;  // younger than the release
      counts_.stats += 1;
      if (found->second != value) counts_.stats_differing.push_back(name);
    }
  }

  RuleSet rules_;
  AllocatorSettings settings_;
  AllocatorSettings first_settings_;
  Findings findings_;
  Counts counts_;
  Events events_;
  std::map<int32_t, Card> cards_;
  std::map<int64_t, std::pair<int32_t, Block*>> live_;
  std::map<int32_t, std::map<std::string, int64_t>> stats_;
};

Words words_of(const std::string& line) {
  Words words;
  for (size_t begin = 0; begin < line.size();) {
    const size_t end = std::min(line.find(' ', begin), line.size());
    if (end > begin) words.push_back(line.substr(begin, end - begin));
    begin = end + 1;
  }
  return words;
}

// False at the end. `ahead`: the line that was read too much.
bool read_step(std::istream& in, Step& step, std::optional<std::string>& ahead, int64_t& lines) {
  std::string line;
  if (!ahead && !std::getline(in, line)) return false;
  step = Step{.line = ++lines, .words = words_of(ahead ? *ahead : line), .calls = {}, .answer = {}};
  ahead.reset();
  while (std::getline(in, line)) {
    Words words = words_of(line);
    if (words.size() == 5 && words[0] == "call" && is_call(words[2])) {
      step.calls[number<int32_t>(words[1])].push_back({words[2], number<uint64_t>(words[3]), number(words[4])});
    } else if (!words.empty() && (words[0] == "at" || words[0] == "oom")) {
      step.answer = std::move(words);
    } else {
      ahead = std::move(line);
      break;
    }
    ++lines;
  }
  check(step);
  return true;
}

int run(const std::string& rules_name, const std::string& snapshot_path) {
  const std::optional<RuleSet> rules = find_rule_set(rules_name);
  const Result<Snapshot> snapshot = read_snapshot_file(snapshot_path);
  if (!rules || !snapshot) {
    std::fprintf(stderr, "replay_requests: %s\n", rules ? snapshot.error().what.c_str() : "no such rules");
    return 2;
  }
  Replay replay(*rules);
  Step step;
  std::optional<std::string> ahead;
  int64_t lines = 0;
  while (!replay.differs() && read_step(std::cin, step, ahead, lines)) replay.take(step);
  if (lines == 0) unreadable("no requests");
  if (!replay.differs()) replay.compare_end(*snapshot);
  replay.print();
  return replay.differs() ? 1 : 0;
}

}  // namespace
}  // namespace oomscope

int main(int argc, char** argv) {
  if (argc == 3) return oomscope::run(argv[1], argv[2]);
  std::fprintf(stderr, "usage: replay_requests RULES SNAPSHOT < REQUESTS\n");
  return 2;
}
