// A command of the program: its name, what to type, its options, and what it does. One file a command.
#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"
#include "cli/options.h"
#include "cli/output.h"

namespace oomscope {

// What an option's text is until it is checked: parse_arguments stores here, `finish` turns it into Options.
struct RawOptions {
  std::string path;
  std::string path_b;
  std::vector<std::string> evidence;
  std::string device;
  std::string rules;
  std::string gpu;
  std::string cap;
  std::string conf;
  bool has_conf = false;
  std::string at;
  std::string by;
  std::string top;
  std::string stats;
  std::string values;
  std::string picture;
  std::string ranks;
  std::string framework;
  std::string language;
  std::string output;
  bool redact = false;
  std::string name;
  std::string project;
  std::string store;
  std::string junit;
  std::string tolerance;
  bool no_sweep = false;
  bool or_save = false;
  bool no_measures = false;
  bool explain = false;
  bool sweep = false;
  bool smallest_cap = false;
};

// One option or positional argument, and where its text goes. A name without dashes is positional; one
// with a single value is required.
struct OptionSpec {
  std::string_view name;
  std::string_view value;  // what to write after it: "SIZE"; empty for a flag or a positional
  std::string_view help;
  std::variant<std::string RawOptions::*, bool RawOptions::*, std::vector<std::string> RawOptions::*> target;
};

// --lang, which every command that answers people takes.
[[nodiscard]] inline OptionSpec language_option() {
  return {"--lang", "en|zh", "the language of the answer; else the locale's. JSON is English", &RawOptions::language};
}

struct Command {
  std::string_view name;
  std::string_view summary;                // one line, for --help
  std::vector<std::string_view> examples;  // command lines, for --help of the command
  std::vector<OptionSpec> options;         // besides --json, --strict and --help
  Result<Done> (*finish)(const RawOptions& raw, Options& options) = nullptr;
  // 0 or 1 is the exit code; an Error is printed and exits 1.
  Result<int> (*run)(const Options& options, Output& output) = nullptr;
};

}  // namespace oomscope
