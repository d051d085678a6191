// Windows refuses what the page file could not hold, even if it is never touched.
#include "remedies/catalogue.h"
#include "remedies/snippets.h"

namespace oomscope {

Remedy raise_page_file() {
  return {.id = "raise-page-file",
          .page = "windows-commit",
          .effect = Effect::figures,
          .applies =
              [](const Circumstances& circumstances) {
                return circumstances.kind == Kind::windows_commit_limit || circumstances.is_windows;
              },
          .snippets =
              [](const Circumstances&) {
                return std::vector<Snippet>{{Place::powershell,
                                             "Get-CimInstance Win32_ComputerSystem |\n    Set-CimInstance -Property "
                                             "@{AutomaticManagedPagefile = $true}"},
                                            {Place::cmd, "SystemPropertiesPerformance.exe"}};
              }};
}

}  // namespace oomscope
