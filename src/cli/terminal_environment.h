// The terminal and the environment, looked at once. src/cli alone reads them.
#pragma once

#include <cstdio>
#include <optional>
#include <string>

#include "report/terminal.h"
#include "words/words.h"

namespace oomscope {

// What decides the look of the output, as plain values so that tests can give them.
struct TerminalFacts {
  bool is_terminal = false;
  int ioctl_columns = 0;                // 0: not known
  std::optional<std::string> columns;   // COLUMNS
  std::optional<std::string> no_color;  // NO_COLOR: any value that is not empty
  std::optional<std::string> term;      // TERM
  std::optional<std::string> lc_all;
  std::optional<std::string> lc_ctype;
  std::optional<std::string> lang;
};

[[nodiscard]] TerminalFacts look_at_terminal(std::FILE* stream);

// Width: COLUMNS, else the terminal's, else 80; at least 40. Colour: on a terminal that is not "dumb", without
// NO_COLOR. Unicode: the first set one of LC_ALL, LC_CTYPE and LANG names UTF-8.
[[nodiscard]] TerminalOptions terminal_options(const TerminalFacts& facts);

// Of the first set one of LC_ALL, LC_MESSAGES and LANG; English where it names neither English nor Chinese, or another
// character set than UTF-8, in which our Chinese could not be read.
[[nodiscard]] Language language_of_environment();

// True where something was piped or redirected into the program; /dev/null and a closed input are nothing.
[[nodiscard]] bool has_piped_input();

}  // namespace oomscope
