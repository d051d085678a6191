#include "cli/program.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

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

int fail(const Error& error, bool json, int exit_code) {
  if (json) {
    const std::string text = error_json(error);
    std::fwrite(text.data(), 1, text.size(), stdout);
    std::fflush(stdout);
  }
  const std::string text = error_text(error, terminal_options(look_at_terminal(stderr)));
  std::fwrite(text.data(), 1, text.size(), stderr);
  return exit_code;
}

int print_text(const std::string& text) {
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
  if (written) return 0;
  return fail({.code = "output-not-written", .what = std::strerror(errno), .where = "standard output", .hint = ""},
              false, kFailed);
}

}  // namespace

int run_program(const std::vector<std::string>& arguments, const std::string& version) {
  const std::vector<Command> commands = all_commands();
  const ArgumentContext context{.version = version,
                                .has_piped_input = has_piped_input(),
                                .has_terminal_input = isatty(STDIN_FILENO) == 1,
                                .file_exists = file_exists};
  const bool wants_json = std::find(arguments.begin(), arguments.end(), "--json") != arguments.end();
  const Result<Invocation> invocation = parse_arguments(arguments, commands, context);
  if (!invocation) return fail(invocation.error(), wants_json, kBadUsage);
  if (invocation->command == nullptr) return print_text(invocation->text);

  const GlobalOptions& global = invocation->options.global;
  Progress progress(isatty(STDERR_FILENO) == 1 ? stderr : nullptr);
  Output output(stdout, global.json, terminal_options(look_at_terminal(stdout)), &progress);
  const Result<int> exit_code = invocation->command->run(invocation->options, output);
  progress.clear();
  if (!exit_code) {
    return fail(exit_code.error(), global.json, exit_code.error().code == "bad-usage" ? kBadUsage : kFailed);
  }
  const Result<Done> written = output.finish();
  if (!written) return fail(written.error(), false, kFailed);
  if (*exit_code == 0 && global.strict && !output.is_complete()) return kIncomplete;
  return *exit_code;
}

}  // namespace oomscope
