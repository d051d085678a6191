#include "base/did_you_mean.h"

#include <algorithm>
#include <cstddef>

#include "base/text.h"

namespace oomscope {
namespace {

constexpr size_t kLongestWord = 64;

}  // namespace

int edit_distance(std::string_view a, std::string_view b) {
  // Three rolling rows of the usual table: a swap looks two rows back.
  std::vector<int> before_last(b.size() + 1);
  std::vector<int> last(b.size() + 1);
  std::vector<int> current(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) current[j] = static_cast<int>(j);
  for (size_t i = 1; i <= a.size(); ++i) {
    std::swap(before_last, last);
    std::swap(last, current);
    current[0] = static_cast<int>(i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const int replace = last[j - 1] + (lower(a[i - 1]) == lower(b[j - 1]) ? 0 : 1);
      current[j] = std::min({replace, last[j] + 1, current[j - 1] + 1});
      if (i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) && lower(a[i - 2]) == lower(b[j - 1])) {
        current[j] = std::min(current[j], before_last[j - 2] + 1);
      }
    }
  }
  return current[b.size()];
}

std::string_view did_you_mean(std::string_view word, const std::vector<std::string_view>& candidates) {
  if (word.empty() || word.size() > kLongestWord) return {};
  std::string_view best;
  int best_distance = 0;
  for (std::string_view candidate : candidates) {
    if (candidate.size() > kLongestWord) continue;
    const int longer = static_cast<int>(std::max(word.size(), candidate.size()));
    const int shorter = static_cast<int>(std::min(word.size(), candidate.size()));
    const int allowed = std::max(1, longer / 3);
    if (longer - shorter > allowed) continue;
    const int distance = edit_distance(word, candidate);
    if (distance <= allowed && (best.empty() || distance < best_distance)) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

}  // namespace oomscope
