#include "cli/program.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "base/system_error.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/error_text.h"
#include "cli/terminal_environment.h"

namespace oomscope {
namespace {

constexpr int kFailed = 1;
constexpr int kBadUsage = 2;
constexpr int kIncomplete = 3;

bool file_exists(const std::string& path) { return access(path.c_str(), F_OK) == 0; }

// What errors are said in, before or without the arguments being right.
Language wanted_language(const std::vector<std::string>& arguments) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& word = arguments[i];
    const bool is_apart = word == "--lang" && i + 1 < arguments.size();
    if (!is_apart && !word.starts_with("--lang=")) continue;
    const std::optional<Language> wanted = language_of(is_apart ? arguments[i + 1] : word.substr(word.find('=') + 1));
    if (wanted) return *wanted;
  }
  return language_of_environment();
}

struct Asked {
  bool json = false;
  Language language = Language::english;
};

int fail(const Error& error, Asked asked, int exit_code) {
  if (asked.json) {
    const std::string text = error_json(error);
    std::fwrite(text.data(), 1, text.size(), stdout);
    std::fflush(stdout);
  }
  const std::string text = error_text(error, asked.language, terminal_options(look_at_terminal(stderr)));
  std::fwrite(text.data(), 1, text.size(), stderr);
  return exit_code;
}

int print_text(const std::string& text, Language language) {
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
  if (written) return 0;
  return fail({.code = "output-not-written",
               .what = system_error(errno),
               .where = "error.standard-output",
               .hint = "error.not-written.hint"},
              {.json = false, .language = language}, kFailed);
}

}  // namespace

int run_program(const std::vector<std::string>& arguments, const std::string& version) {
  const std::vector<Command> commands = all_commands();
  const ArgumentContext context{.version = version,
                                .has_piped_input = has_piped_input(),
                                .has_terminal_input = isatty(STDIN_FILENO) == 1,
                                .file_exists = file_exists};
  const Asked asked{.json = std::find(arguments.begin(), arguments.end(), "--json") != arguments.end(),
                    .language = wanted_language(arguments)};
  const Result<Invocation> invocation = parse_arguments(arguments, commands, context);
  if (!invocation) return fail(invocation.error(), asked, kBadUsage);
  if (invocation->command == nullptr) return print_text(invocation->text, asked.language);

  const GlobalOptions& global = invocation->options.global;
  Progress progress(isatty(STDERR_FILENO) == 1 ? stderr : nullptr);
  Output output(stdout, global.json, terminal_options(look_at_terminal(stdout)), &progress);
  const Result<int> exit_code = invocation->command->run(invocation->options, output);
  progress.clear();
  if (!exit_code) {
    return fail(exit_code.error(), asked, exit_code.error().code == "bad-usage" ? kBadUsage : kFailed);
  }
  const Result<Done> written = output.finish();
  if (!written) return fail(written.error(), {.json = false, .language = asked.language}, kFailed);
  if (*exit_code == 0 && global.strict && !output.is_complete()) return kIncomplete;
  return *exit_code;
}

}  // namespace oomscope
