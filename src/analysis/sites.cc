#include "analysis/sites.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <unordered_map>

#include "analysis/user_code.h"
#include "base/text.h"
#include "model/timeline.h"

namespace oomscope {
namespace {

bool is_alnum(char c) { return is_digit(c) || is_letter(c); }

// A run of letters and digits that nobody typed: a process number, a hexadecimal digest, Inductor's base-32 digest.
bool is_machine_made(std::string_view run) {
  constexpr size_t kShortestNumber = 5;
  constexpr size_t kShortestHex = 8;
  constexpr size_t kShortestDigest = 20;
  const size_t digits = static_cast<size_t>(std::count_if(run.begin(), run.end(), is_digit));
  if (digits == run.size()) return run.size() >= kShortestNumber;
  const bool is_hex = run.find_first_not_of("0123456789abcdefABCDEF") == std::string_view::npos;
  if (is_hex && digits > 0) return run.size() >= kShortestHex;
  return run.size() >= kShortestDigest && digits >= 3;
}

std::string without_machine_made(std::string_view text) {
  std::string result;
  for (size_t i = 0; i < text.size();) {
    size_t end = i;
    while (end < text.size() && is_alnum(text[end])) ++end;
    const std::string_view run = text.substr(i, end - i);
    if (!run.empty()) result += is_machine_made(run) ? "*" : std::string(run);
    if (end < text.size()) result += text[end++];
    i = end;
  }
  return result;
}

std::string_view base_name(std::string_view path) {
  const size_t slash = path.find_last_of("/\\");
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

// FNV-1a.
class Hash {
 public:
  void add(std::string_view text) {
    for (char c : text) add_byte(static_cast<unsigned char>(c));
    add_byte(0);
  }
  void add(uint64_t number) {
    for (int shift = 0; shift < 64; shift += 8) add_byte(static_cast<unsigned char>(number >> shift));
  }
  [[nodiscard]] uint64_t value() const { return value_; }

 private:
  void add_byte(unsigned char byte) { value_ = (value_ ^ byte) * 1099511628211ULL; }
  uint64_t value_ = 14695981039346656037ULL;
};

// Frames from the allocation outwards up to, and perhaps with, the user's line.
uint64_t hash_of_path(const Snapshot& snapshot, StackId stack, bool with_lines) {
  const StackTable& stacks = snapshot.stacks;
  const uint32_t index = static_cast<uint32_t>(stack);
  const std::optional<Frame> last = user_frame(snapshot, stack);
  Hash hash;
  for (uint32_t i = stacks.starts[index]; i < stacks.starts[index + 1]; ++i) {
    const Frame& frame = stacks.frames[stacks.frame_ids[i]];
    const bool is_last = last && frame == *last && !is_library_frame(snapshot, frame);
    if (is_last && !with_lines) break;
    hash.add(normal_file(snapshot.strings.text(frame.filename)));
    hash.add(normal_function(snapshot.strings.text(frame.name)));
    if (with_lines) hash.add(frame.line);
    if (is_last) break;
  }
  return hash.value();
}

struct StackUse {
  int64_t bytes = 0;
  int64_t count = 0;
  uint32_t first_event = kNoEvent;
};

void add_stack(const Snapshot& snapshot, StackId stack, const StackUse& use, LiveSite& site) {
  site.bytes += use.bytes;
  site.count += use.count;
  site.first_event = std::min(site.first_event, use.first_event);
  if (stack != StackId::none) site.callees.push_back(hash_of_path(snapshot, stack, /*with_lines=*/false));
}

}  // namespace

std::string normal_file(std::string_view path) { return without_machine_made(base_name(path)); }

std::string normal_function(std::string_view name) {
  // TorchDynamo puts the line at which it resumes into the name.
  const size_t at = name.rfind("_at_");
  const bool resumes = at != std::string_view::npos && name.find("resume_in_") != std::string_view::npos;
  if (resumes) return without_machine_made(name.substr(0, at)) + "_at_*";
  return without_machine_made(name);
}

std::string site_text(const LiveSite& site) {
  if (site.file.empty()) return "";
  return std::string(base_name(site.file)) + ":" + std::to_string(site.line) + " " + site.function;
}

std::vector<LiveSite> live_sites(const Verification& verification, uint32_t event) {
  const Snapshot& snapshot = *verification.timeline.snapshot;
  std::unordered_map<StackId, StackUse> by_stack;
  for (const Allocation& allocation : verification.timeline.allocations) {
    if (!is_live_after(allocation, event)) continue;
    StackUse& use = by_stack[allocation.stack];
    use.bytes += allocation.size;
    use.count += 1;
    use.first_event = std::min(use.first_event, allocation.begin == kNoEvent ? 0 : allocation.begin);
  }
  std::map<std::tuple<std::string_view, std::string_view, uint64_t>, LiveSite> by_line;
  for (const auto& [stack, use] : by_stack) {
    const std::optional<Frame> frame = user_frame(snapshot, stack);
    if (!frame) {
      add_stack(snapshot, StackId::none, use, by_line[{}]);
      continue;
    }
    const std::string_view file = snapshot.strings.text(frame->filename);
    const std::string_view function = snapshot.strings.text(frame->name);
    LiveSite& site = by_line[{file, function, frame->line}];
    site.file = file;
    site.function = function;
    site.line = frame->line;
    site.user_code = !is_library_frame(snapshot, *frame);
    add_stack(snapshot, stack, use, site);
  }
  std::vector<LiveSite> sites;
  for (auto& [key, site] : by_line) {
    std::sort(site.callees.begin(), site.callees.end());
    site.callees.erase(std::unique(site.callees.begin(), site.callees.end()), site.callees.end());
    sites.push_back(std::move(site));
  }
  std::stable_sort(sites.begin(), sites.end(), [](const LiveSite& a, const LiveSite& b) { return a.bytes > b.bytes; });
  return sites;
}

uint64_t request_path(const Snapshot& snapshot, StackId stack) {
  const uint32_t index = static_cast<uint32_t>(stack);
  const StackTable& stacks = snapshot.stacks;
  if (index + 1 >= stacks.starts.size() || stacks.starts[index] == stacks.starts[index + 1]) return 0;
  return hash_of_path(snapshot, stack, /*with_lines=*/true);
}

}  // namespace oomscope
