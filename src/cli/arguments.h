// argv to Options: finds the command, lets CLI11 cut the words, turns texts into values, and says what was misspelt.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/command.h"
#include "cli/options.h"

namespace oomscope {

struct Invocation {
  const Command* command = nullptr;  // null: only `text` is to be printed
  Options options;
  std::string text;  // help or version
};

// What the arguments depend on besides themselves, given so that tests need no files.
struct ArgumentContext {
  std::string version;
  bool has_piped_input = false;
  bool (*file_exists)(const std::string& path) = nullptr;
};

// `arguments` without the program's name. Errors are all bad usage (exit 2); their hint is a command to type.
[[nodiscard]] Result<Invocation> parse_arguments(const std::vector<std::string>& arguments,
                                                 const std::vector<Command>& commands, const ArgumentContext& context);

// What a bare `oomscope` prints: what people have, and what to type. Only for commands that exist.
[[nodiscard]] std::string overview(const std::vector<Command>& commands);

// Help for the whole program.
[[nodiscard]] std::string program_help(const std::vector<Command>& commands);

// Values that several commands share. An empty text leaves the target as it is.
[[nodiscard]] Result<Done> read_device(const std::string& text, std::optional<int>& device);
[[nodiscard]] Result<Done> read_cap(const std::string& text, std::optional<int64_t>& cap_bytes);
// "en" or "zh"; empty: the locale's.
[[nodiscard]] Result<Done> read_language(const std::string& text, Language& language);
[[nodiscard]] Result<Done> read_gpu(const std::string& text, std::optional<GpuMemory>& gpu);
// From 0 on.
[[nodiscard]] Result<Done> read_number(const std::string& option, const std::string& text, int64_t& number);
// One of `choices`, as its index; a near miss is suggested.
[[nodiscard]] Result<size_t> read_choice(const std::string& option, const std::string& text,
                                         const std::vector<std::string_view>& choices);

}  // namespace oomscope
