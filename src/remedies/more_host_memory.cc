// The machine itself is too small for what runs on it.
#include "remedies/catalogue.h"
#include "remedies/snippets.h"

namespace oomscope {

Remedy more_host_memory() {
  return {.id = "more-host-memory",
          .page = "host-killed",
          .effect = Effect::figures,
          .applies = is_host_case,
          .snippets = [](const Circumstances&) {
            return std::vector<Snippet>{
                {Place::bash, "free -h\nps -eo pid,rss,comm --sort=-rss | head"},
                {Place::powershell, "Get-Process | Sort-Object WS -Descending | Select-Object -First 10"}};
          }};
}

}  // namespace oomscope
