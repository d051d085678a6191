#include "report/pasted_lines.h"

#include <algorithm>

namespace oomscope {
namespace {

std::string with_comment(std::string_view line, Language language) {
  constexpr std::string_view kMark = "# ";
  const size_t at = line.find(kMark);
  if (at == std::string_view::npos) return std::string(line);
  const std::string_view comment = line.substr(at + kMark.size());
  const std::string key = "comment." + std::string(comment);
  return std::string(line.substr(0, at + kMark.size())) +
         std::string(word(key, language) ? say(key, language) : comment);
}

}  // namespace

std::vector<std::string> pasted_lines(std::string_view snippet, Language language) {
  std::vector<std::string> lines;
  while (!snippet.empty()) {
    const size_t end = std::min(snippet.find('\n'), snippet.size());
    lines.push_back(with_comment(snippet.substr(0, end), language));
    snippet.remove_prefix(std::min(end + 1, snippet.size()));
  }
  return lines;
}

}  // namespace oomscope
