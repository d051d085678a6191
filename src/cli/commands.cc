#include "cli/commands.h"

namespace oomscope {

std::vector<Command> all_commands() {
  std::vector<Command> commands;
  for (const Command& command : {why_command(), fit_command(), show_command(), replay_command(), verify_command(),
                                 diff_command(), report_command(), baseline_command()}) {
    if (command.run != nullptr) commands.push_back(command);
  }
  return commands;
}

}  // namespace oomscope
