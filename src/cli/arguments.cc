#include "cli/arguments.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>

#include "base/bytes_text.h"
#include "base/did_you_mean.h"
#include "cli/terminal_environment.h"
#include "report/terminal.h"
#include "types/limits.h"

namespace oomscope {
namespace {

// CLI11 takes an empty argument for a missing one, but `--conf ''` means PyTorch's defaults.
constexpr std::string_view kEmptyValue = "\x01";

Error usage_error(std::string what, std::string where, std::string hint, Values values = {}) {
  return Error{.code = "bad-usage",
               .what = std::move(what),
               .where = std::move(where),
               .hint = std::move(hint),
               .values = std::move(values)};
}

const Command* find_command(const std::vector<Command>& commands, std::string_view name) {
  for (const Command& command : commands) {
    if (command.name == name) return &command;
  }
  return nullptr;
}

bool looks_like_path(std::string_view word) {
  return word == "-" || word.find('/') != std::string_view::npos || word.find('.') != std::string_view::npos;
}

// Global options may stand before the command; whatever else comes first decides it.
bool is_global_option(std::string_view word) { return word == "--json" || word == "--strict"; }

Result<const Command*> choose_command(std::vector<std::string>& words, const std::vector<Command>& commands,
                                      const ArgumentContext& context) {
  const Command* why = find_command(commands, "why");
  const auto first =
      std::find_if(words.begin(), words.end(), [](const std::string& word) { return !is_global_option(word); });
  if (first == words.end()) {
    if (why != nullptr && context.has_piped_input) {
      words.push_back("-");
      return why;
    }
    return usage_error("error.no-command", "error.arguments", "oomscope --help");
  }
  if (const Command* command = find_command(commands, *first)) {
    words.erase(first);
    return command;
  }
  // Everything else is evidence for why: a file, or why's own options.
  const bool is_option = first->size() > 1 && (*first)[0] == '-';
  // A word with blanks is an error line.
  const bool is_sentence = first->find(' ') != std::string::npos;
  if (why != nullptr && (is_option || is_sentence || looks_like_path(*first) || context.file_exists(*first)))
    return why;
  std::vector<std::string_view> names;
  for (const Command& command : commands) names.push_back(command.name);
  const std::string_view near = did_you_mean(*first, names);
  const std::string shown = printable(*first);
  return usage_error("error.unknown-command", "error.arguments",
                     near.empty() ? "oomscope --help" : "error.near-command",
                     {{"name", shown}, {"near", "oomscope " + std::string(near)}});
}

// The long options of the command and of the program, with their dashes.
std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

// "SNAPSHOT", "A B": what stands without an option's name.
std::string positionals(const Command& command) {
  std::string names;
  for (const OptionSpec& option : command.options) {
    if (option.name[0] != '-') names += (names.empty() ? "" : " ") + std::string(option.name);
  }
  return names;
}

Error unexpected_argument(const CLI::App& app, const Command& command) {
  const std::vector<std::string> extras = app.remaining();
  const std::string word = extras.empty() ? "" : extras.front();
  const std::string help = "oomscope " + std::string(command.name) + " --help";
  if (word.empty() || word[0] != '-') {
    return usage_error("error.one-too-many", std::string(command.name), help,
                       {{"takes", positionals(command)}, {"word", printable(word)}});
  }
  const std::string bare = word.substr(0, word.find('='));
  const std::vector<std::string> names = option_names(app);
  const std::string_view near = did_you_mean(bare, {names.begin(), names.end()});
  return usage_error("error.unknown-option", std::string(command.name), near.empty() ? help : "error.near-option",
                     {{"option", printable(bare)}, {"near", std::string(near)}, {"help", help}});
}

void mark_empty_values(std::vector<std::string>& words) {
  for (size_t i = 0; i < words.size(); ++i) {
    if (words[i] == "--conf=") words[i] = "--conf=" + std::string(kEmptyValue);
    if (i > 0 && words[i - 1] == "--conf" && words[i].empty()) words[i] = kEmptyValue;
  }
}

// `--at step 3` is one value in two words.
void join_step(std::vector<std::string>& words) {
  for (size_t i = 0; i + 2 < words.size(); ++i) {
    if (words[i] != "--at" || words[i + 1] != "step") continue;
    words[i + 1] += " " + words[i + 2];
    words.erase(words.begin() + static_cast<std::ptrdiff_t>(i) + 2);
  }
}

// CLI11's message without its "Error: " and line breaks, in our lower case.
std::string tidy_message(std::string message) {
  std::replace(message.begin(), message.end(), '\n', ' ');
  while (!message.empty() && (message.back() == ' ' || message.back() == '.')) message.pop_back();
  if (message.size() > 1 && message[0] >= 'A' && message[0] <= 'Z' && message[1] >= 'a')
    message[0] = static_cast<char>(message[0] | 32);
  return printable(message);
}

// A name and what it means, within 80 columns.
std::string two_columns(std::string_view name, int width, std::string_view meaning) {
  constexpr int kColumns = 80;
  std::string text;
  for (const std::string& line : wrap(meaning, kColumns - width - 4)) {
    text += "  " + pad_right(text.empty() ? name : "", width) + "  " + line + "\n";
  }
  return text;
}

// Written here and not by CLI11, whose layout changes between its releases.
std::string command_help(const Command& command) {
  std::string usage = "Usage: oomscope " + std::string(command.name);
  std::vector<std::pair<std::string, std::string>> lines;
  for (const OptionSpec& option : command.options) {
    const bool is_positional = option.name[0] != '-';
    if (is_positional)
      usage += " " + std::string(option.name) + (std::get_if<0>(&option.target) == nullptr ? "..." : "");
    lines.emplace_back(std::string(option.name) + (option.value.empty() ? "" : " " + std::string(option.value)),
                       option.help);
  }
  lines.emplace_back("--json", "write JSON, sizes in bytes");
  lines.emplace_back("--strict", "exit 3 where evidence is incomplete");
  int width = 0;
  for (const auto& line : lines) width = std::max(width, display_width(line.first));
  std::string text = std::string(command.summary) + "\n\n" + usage + " [OPTIONS]\n\n";
  for (const auto& line : lines) text += two_columns(line.first, width, line.second);
  text += "\nExamples:\n";
  for (std::string_view example : command.examples) text += "  " + std::string(example) + "\n";
  return text;
}

// The option that stands without its value, or nothing.
std::string option_without_value(const Command& command, const std::vector<std::string>& words) {
  for (size_t i = 0; i < words.size(); ++i) {
    for (const OptionSpec& option : command.options) {
      const bool is_last = i + 1 == words.size() || words[i + 1].substr(0, 2) == "--";
      if (words[i] == option.name && !option.value.empty() && is_last)
        return words[i] + " " + std::string(option.value);
    }
  }
  return "";
}

// A single positional that was not given.
std::string missing_positional(const Command& command, const RawOptions& raw) {
  for (const OptionSpec& option : command.options) {
    const auto* text = std::get_if<std::string RawOptions::*>(&option.target);
    if (option.name[0] != '-' && text != nullptr && (raw.*(*text)).empty()) return std::string(option.name);
  }
  return "";
}

void add_option(CLI::App& app, const OptionSpec& option, RawOptions& raw) {
  const std::string name(option.name);
  const std::string help(option.help);
  if (const auto* flag = std::get_if<bool RawOptions::*>(&option.target)) {
    app.add_flag(name, raw.*(*flag), help);
    return;
  }
  const auto* text = std::get_if<std::string RawOptions::*>(&option.target);
  if (text != nullptr) {
    app.add_option(name, raw.*(*text), help);
  } else {
    app.add_option(name, raw.*(*std::get_if<std::vector<std::string> RawOptions::*>(&option.target)), help);
  }
}

// All that touches CLI11, which throws: the one place that catches.
Result<Invocation> parse_command(const Command& command, std::vector<std::string> words,
                                 const ArgumentContext& context) {
  Invocation invocation;
  CLI::App app(std::string(command.summary), "oomscope " + std::string(command.name));
  const std::string name(command.name);
  const std::string help = "oomscope " + name + " --help";
  RawOptions raw;
  app.add_flag("--json", invocation.options.global.json, "write JSON, sizes in bytes");
  app.add_flag("--strict", invocation.options.global.strict, "exit 3 where evidence is incomplete");
  for (const OptionSpec& option : command.options) add_option(app, option, raw);
  mark_empty_values(words);
  join_step(words);
  std::vector<std::string> reversed(words.rbegin(), words.rend());  // CLI11 takes them last first
  try {
    app.parse(reversed);
  } catch (const CLI::CallForHelp&) {
    invocation.text = command_help(command);
    return invocation;
  } catch (const CLI::ExtrasError&) {
    return unexpected_argument(app, command);
  } catch (const CLI::ArgumentMismatch& error) {
    const std::string option = option_without_value(command, words);
    return usage_error(option.empty() ? "error.not-parsed" : "error.value-missing", name, help,
                       {{"option", option}, {"detail", tidy_message(error.what())}});
  } catch (const CLI::ParseError& error) {
    return usage_error("error.not-parsed", name, help, {{"detail", tidy_message(error.what())}});
  }
  const std::string missing = missing_positional(command, raw);
  if (!missing.empty()) return usage_error("error.argument-missing", name, help, {{"argument", missing}});
  const bool may_paste = context.has_terminal_input && command.name == "why";
  if (raw.evidence.empty() && command.name == "why" && (context.has_piped_input || may_paste)) raw.evidence = {"-"};
  if (raw.conf == kEmptyValue) raw.conf.clear();
  raw.has_conf = app.get_option_no_throw("--conf") != nullptr && app.get_option("--conf")->count() > 0;
  OOM_TRY([[maybe_unused]] const Done done, command.finish(raw, invocation.options));
  invocation.command = &command;
  return invocation;
}

}  // namespace

Result<Invocation> parse_arguments(const std::vector<std::string>& arguments, const std::vector<Command>& commands,
                                   const ArgumentContext& context) {
  Invocation invocation;
  if (arguments.empty() && !context.has_piped_input) {
    invocation.text = overview(commands);
    return invocation;
  }
  const std::string first = arguments.empty() ? "" : arguments.front();
  if (first == "--version" || first == "-V") {
    const bool json = std::find(arguments.begin(), arguments.end(), "--json") != arguments.end();
    invocation.text = json ? "{\n  \"schema\": \"oomscope.version/1\",\n  \"version\": \"" + context.version + "\"\n}\n"
                           : "oomscope " + context.version + "\n";
    return invocation;
  }
  if (first == "--help" || first == "-h" || first == "help") {
    const Command* command = arguments.size() > 1 ? find_command(commands, arguments[1]) : nullptr;
    if (command != nullptr) return parse_command(*command, {"--help"}, context);
    invocation.text = program_help(commands);
    return invocation;
  }
  std::vector<std::string> words = arguments;
  OOM_TRY(const Command* command, choose_command(words, commands, context));
  return parse_command(*command, std::move(words), context);
}

std::string overview(const std::vector<Command>& commands) {
  std::string text = "oomscope finds out why a PyTorch job ran out of GPU memory, and what would have\nmade it fit.\n";
  if (find_command(commands, "why") != nullptr) {
    text +=
        "\nI have ...\n"
        "  an error line or a log                          oomscope why train.log\n"
        "                                                  (or paste: oomscope why)\n"
        "  a snapshot (torch.cuda.memory._dump_snapshot)   oomscope why oom.pickle\n"
        "  a folder with the snapshots of all ranks        oomscope why ranks/\n"
        "  snapshots of two small runs: what fits?         oomscope fit b1.pickle b2.pickle\n"
        "                                                           --gpu 24GiB\n"
        "  no snapshot yet: in the job, before training\n"
        "      import oomscope                             # in a clone: pip install .\n"
        "      oomscope.install()\n"
        "    or with nothing but torch\n"
        "      torch.cuda.memory._record_memory_history(max_entries=1_000_000)\n"
        "      torch._C._cuda_attach_out_of_memory_observer(\n"
        "          lambda *_: torch.cuda.memory._dump_snapshot(\"oom_snapshot.pickle\"))\n";
  }
  if (find_command(commands, "report") != nullptr) {
    text += "\nLook: oomscope report oom.pickle -o oom.html\n";
  }
  std::string experts;
  for (std::string_view name : {"show", "replay", "fit", "verify", "diff", "baseline"}) {
    if (find_command(commands, name) != nullptr) experts += (experts.empty() ? "" : ", ") + std::string(name);
  }
  if (!experts.empty()) text += "\nExperts: " + experts + ".\n";
  return text + "More: oomscope --help\n";
}

std::string program_help(const std::vector<Command>& commands) {
  std::string text = overview(commands);
  text.erase(text.rfind("More: "));
  text += "\nCommands:\n";
  for (const Command& command : commands) {
    text += two_columns(command.name, 8, command.summary);
  }
  text +=
      "\nEverywhere:\n"
      "  --json    write JSON, sizes in bytes\n"
      "  --strict  exit 3 where evidence is incomplete\n"
      "  --help    of a command: its options and examples\n"
      "  --version\n"
      "\nSizes: 24GiB, 512M, 8GB (all binary), or bytes.\n"
      "Exit: 0 done, 1 failed, 2 bad usage.\n";
  return text;
}

Result<Done> read_device(const std::string& text, std::optional<int>& device) {
  if (text.empty()) return Done{};
  int number = 0;
  const std::from_chars_result read = std::from_chars(text.data(), text.data() + text.size(), number);
  if (read.ec != std::errc{} || read.ptr != text.data() + text.size() || number < 0) {
    return usage_error("error.no-device-number", "--device", "error.no-device-number.hint",
                       {{"text", printable(text)}});
  }
  device = number;
  return Done{};
}

Result<Done> read_cap(const std::string& text, std::optional<int64_t>& cap_bytes) {
  if (text.empty()) return Done{};
  const Result<int64_t> size = parse_size(text);
  if (!size)
    return usage_error(size.error().what, "--cap \"" + printable(text) + "\"", size.error().hint, size.error().values);
  if (*size < 2 * kMiB) {
    return usage_error("error.cap-too-small", "--cap \"" + printable(text) + "\"", "error.cap-too-small.hint");
  }
  if (*size > kMaxSizeBytes) {
    return usage_error("error.cap-too-large", "--cap \"" + printable(text) + "\"", "error.cap-too-large.hint");
  }
  cap_bytes = *size;
  return Done{};
}

Result<Done> read_language(const std::string& text, Language& language) {
  if (text.empty()) {
    language = language_of_environment();
    return Done{};
  }
  OOM_TRY(const size_t choice, read_choice("--lang", text, {"en", "zh"}));
  language = choice == 1 ? Language::chinese : Language::english;
  return Done{};
}

Result<Done> read_gpu(const std::string& text, std::optional<GpuMemory>& gpu) {
  if (text.empty()) return Done{};
  const Result<GpuMemory> found = resolve_gpu(text);
  if (!found) return usage_error(found.error().what, "--gpu", found.error().hint, found.error().values);
  gpu = *found;
  return Done{};
}

Result<Done> read_number(const std::string& option, const std::string& text, int64_t& number) {
  if (text.empty()) return Done{};
  const std::string usual = option + " " + std::to_string(number);
  const char* end = text.data() + text.size();
  const std::from_chars_result read = std::from_chars(text.data(), end, number);
  if (read.ec == std::errc{} && read.ptr == end && number >= 0) return Done{};
  return usage_error("error.no-number", option, usual, {{"text", printable(text)}});
}

Result<size_t> read_choice(const std::string& option, const std::string& text,
                           const std::vector<std::string_view>& choices) {
  const auto at = std::find(choices.begin(), choices.end(), text);
  if (at != choices.end()) return static_cast<size_t>(at - choices.begin());
  std::string list;
  for (std::string_view choice : choices) list += (list.empty() ? "" : ", ") + std::string(choice);
  const std::string_view near = did_you_mean(text, choices);
  return usage_error("error.none-of", option, near.empty() ? option + " " + std::string(choices.front()) : "error.near",
                     {{"text", printable(text)}, {"list", list}, {"near", option + " " + std::string(near)}});
}

}  // namespace oomscope
