#include "cli/terminal_environment.h"

#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>

namespace oomscope {
namespace {

constexpr int kUsualColumns = 80;
constexpr int kFewestColumns = 40;
constexpr int kMostColumns = 1000;

std::optional<std::string> variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

bool names_utf8(std::string locale) {
  for (char& c : locale) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  return locale.find("UTF-8") != std::string::npos || locale.find("UTF8") != std::string::npos;
}

bool names_utf8(const TerminalFacts& facts) {
  for (const std::optional<std::string>* name : {&facts.lc_all, &facts.lc_ctype, &facts.lang}) {
    if (!*name || (*name)->empty()) continue;
    return names_utf8(**name);
  }
  return false;
}

}  // namespace

TerminalFacts look_at_terminal(std::FILE* stream) {
  TerminalFacts facts;
  const int descriptor = fileno(stream);
  facts.is_terminal = isatty(descriptor) == 1;
  winsize size{};
  if (facts.is_terminal && ioctl(descriptor, TIOCGWINSZ, &size) == 0) facts.ioctl_columns = size.ws_col;
  facts.columns = variable("COLUMNS");
  facts.no_color = variable("NO_COLOR");
  facts.term = variable("TERM");
  facts.lc_all = variable("LC_ALL");
  facts.lc_ctype = variable("LC_CTYPE");
  facts.lang = variable("LANG");
  return facts;
}

TerminalOptions terminal_options(const TerminalFacts& facts) {
  TerminalOptions options;
  int columns = facts.ioctl_columns > 0 ? facts.ioctl_columns : kUsualColumns;
  if (facts.columns) {
    int wanted = 0;
    const char* end = facts.columns->data() + facts.columns->size();
    if (std::from_chars(facts.columns->data(), end, wanted).ptr == end && wanted > 0) columns = wanted;
  }
  options.width_columns = std::clamp(columns, kFewestColumns, kMostColumns);
  const bool forbidden = facts.no_color && !facts.no_color->empty();
  options.colour = facts.is_terminal && !forbidden && facts.term != "dumb";
  options.unicode = names_utf8(facts);
  return options;
}

Language language_of_environment() {
  for (const char* name : {"LC_ALL", "LC_MESSAGES", "LANG"}) {
    const std::optional<std::string> value = variable(name);
    if (!value || value->empty()) continue;
    const bool is_other_charset = value->find('.') != std::string::npos && !names_utf8(*value);
    return is_other_charset ? Language::english : language_of(*value).value_or(Language::english);
  }
  return Language::english;
}

bool has_piped_input() {
  struct stat status {};
  if (fstat(STDIN_FILENO, &status) != 0) return false;
  return S_ISFIFO(status.st_mode) || S_ISSOCK(status.st_mode) || (S_ISREG(status.st_mode) && status.st_size > 0);
}

}  // namespace oomscope
