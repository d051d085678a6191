// Settings of the caching allocator. They change where blocks lie, never how many bytes are live.
#include "remedies/catalogue.h"
#include "remedies/snippets.h"

namespace oomscope {
namespace {

// Expandable segments came with 2.1, and not on Windows; else a limit on splitting is what there is (since 1.10).
std::string settings_of(const Circumstances& circumstances) {
  if (!circumstances.settings.empty()) return circumstances.settings;
  return torch_is_at_least(circumstances, 2, 1) && !circumstances.is_windows ? "expandable_segments:True"
                                                                             : "max_split_size_mb:512";
}

// With expandable segments on there is little left to gain, unless a replay names other settings.
bool may_help(const Circumstances& circumstances) {
  if (!is_gpu_case(circumstances) || !torch_is_at_least(circumstances, 1, 10)) return false;
  return !circumstances.expandable_segments.value_or(false) || !circumstances.settings.empty();
}

}  // namespace

Remedy allocator_setting() {
  return {.id = "allocator-setting",
          .page = "fragmentation",
          .effect = Effect::replay,
          .applies = may_help,
          .snippets =
              [](const Circumstances& circumstances) {
                return environment(allocator_variable(circumstances), settings_of(circumstances));
              },
          .text =
              [](const Circumstances& circumstances) {
                return Phrase{.key = "remedy.allocator-setting.text"}.with(
                    "setting", std::string(allocator_variable(circumstances)) + "=" + settings_of(circumstances));
              }};
}

}  // namespace oomscope
