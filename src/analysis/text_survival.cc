// Whether a run went on behind a message.
//
// A message that is no end: the program caught the error and tries a smaller batch, skips it, leaves a kernel out. It
// shows by what the log says next: the counters of steps go on, or the run says that it is done. Three things look
// alike and are none of that:
//   - a bar that is drawn once more when the process ends: its counter stands still;
//   - lines of standard output that were held back and come out behind the traceback (see may_be_overtaken);
//   - other ranks, whose lines name no rank, that run until they wait for the one that failed: a step or two.
// So what the counters show must be more than these can, unless the program says itself that it takes the failure.
#include "analysis/text_survival.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string>

#include "base/text.h"

namespace oomscope {
namespace {

bool is_failure(const TextMessage& message) { return message.strength > 0; }

// A process of the job was ended, which no later line undoes: what goes on are others.
bool ends_a_process(const TextMessage& message) {
  constexpr int kSaysSo = 4;
  const bool by_host = message.family == Family::kernel || message.family == Family::cgroup;
  return by_host && message.strength >= kSaysSo && (!message.pid || message.what.empty() || may_be_job(message.what));
}

// Lines of one event: they tell of the same memory.
bool is_same_event(const TextMessage& a, const TextMessage& b) { return a.family == b.family && a.rank == b.rank; }

// What a launcher or the other ranks say of a failure that stands before it.
bool is_consequence(const TextMessage& message) {
  return message.family == Family::collective || message.family == Family::by_hand ||
         message.id.starts_with("launcher.") || message.id.starts_with("slurm.");
}

class LogSurvivals {
 public:
  LogSurvivals(const TextEvidence& evidence, size_t log) : evidence_(evidence), log_(log) {}

  std::vector<Survival> find() {
    std::vector<Survival> found;
    const std::vector<TextMessage>& messages = evidence_.messages;
    for (size_t i = messages.size(); i-- > 0;) {
      if (!is_failure(messages[i])) continue;
      if (std::optional<Survival> survival = survival_of(messages[i])) found.push_back(*survival);
      const bool has_survived = !found.empty() && found.back().message == &messages[i];
      last_ = Last{
          .message = &messages[i], .sign = has_survived ? found.back().sign : nullptr, .has_survived = has_survived};
    }
    std::reverse(found.begin(), found.end());
    return found;
  }

 private:
  // The failure behind the one that is looked at.
  struct Last {
    const TextMessage* message = nullptr;
    const RunSign* sign = nullptr;
    bool has_survived = false;
  };

  std::optional<Survival> survival_of(const TextMessage& message) const {
    if (message.handling == Handling::ignored) return Survival{&message, log_, nullptr};
    const std::vector<const RunSign*> signs = signs_behind(message);
    if (!signs.empty() && ends_a_process(message)) return std::nullopt;
    if (signs.empty()) {
      // Two lines of one failure share its fate.
      const bool shares = last_.has_survived && is_same_event(message, *last_.message);
      return shares ? std::optional<Survival>({&message, log_, last_.sign}) : std::nullopt;
    }
    return went_on(message, signs) ? std::optional<Survival>({&message, log_, signs.back()}) : std::nullopt;
  }

  // Up to the next failure.
  std::vector<const RunSign*> signs_behind(const TextMessage& message) const {
    std::vector<const RunSign*> signs;
    const auto add = [&](const std::vector<RunSign>& from) {
      for (const RunSign& sign : from) {
        const bool is_before = last_.message == nullptr || sign.offset_bytes < last_.message->offset_bytes;
        const bool is_new = signs.empty() || sign.offset_bytes > signs.back()->offset_bytes;
        if (is_before && is_new && sign.offset_bytes > message.offset_bytes) signs.push_back(&sign);
      }
    };
    add(message.after);
    if (last_.message == nullptr && !message.rank) add(evidence_.last_signs);
    return signs;
  }

  bool went_on(const TextMessage& message, const std::vector<const RunSign*>& signs) const {
    // Where the program does not say that it takes the failure.
    constexpr size_t kFewest = 2;
    constexpr size_t kFewestBeforeALauncher = 8;
    const bool is_notice = message.strength == 1;
    if (message.handling == Handling::taken || is_notice) return true;
    const bool is_ended = last_.message == nullptr ? evidence_.ends_by_launcher : is_consequence(*last_.message);
    if (!is_ended && std::any_of(signs.begin(), signs.end(), [](const RunSign* sign) { return sign->is_finish; }))
      return true;
    std::map<std::string_view, std::set<std::string_view>> counters;
    size_t most = 0;
    for (const RunSign* sign : signs) {
      if (sign->is_finish) continue;
      std::set<std::string_view>& numbers = counters[sign->series];
      numbers.insert(sign->number);
      most = std::max(most, numbers.size());
    }
    return message.stands_in_order && most >= (is_ended ? kFewestBeforeALauncher : kFewest);
  }

  const TextEvidence& evidence_;
  size_t log_;
  Last last_;
};

}  // namespace

bool may_be_job(std::string_view process) {
  constexpr std::array<std::string_view, 14> kParts = {"python",  "pt_",    "torch", "train",   "ray",
                                                       "jupyter", "kernel", "conda", "deepspe", "accel",
                                                       "vllm",    "sglang", "llama", "worker"};
  const std::string name = lower(process);
  return std::any_of(kParts.begin(), kParts.end(), [&](std::string_view part) { return contains(name, part); });
}

std::vector<Survival> find_survivals(const TextEvidence& evidence, size_t log) {
  return LogSurvivals(evidence, log).find();
}

}  // namespace oomscope
