#include "report/modules_document.h"

#include "base/bytes_text.h"

namespace oomscope {
namespace {

constexpr size_t kMostShown = 5;

Phrase modules_phrase(const char* key) { return Phrase{.key = std::string("modules.") + key, .values = {}}; }

}  // namespace

Section modules_section(const std::vector<ModuleUse>& modules, Language language) {
  List list{.title = say("modules.title", language), .entries = {}};
  int64_t rest_bytes = 0;
  for (size_t i = 0; i < modules.size(); ++i) {
    const ModuleUse& module = modules[i];
    if (i >= kMostShown) {
      rest_bytes += module.kept_bytes;
      continue;
    }
    list.entries.push_back(say(modules_phrase(module.largest.empty() ? "keeps" : "keeps-shape")
                                   .with("name", module.name)
                                   .with("bytes", format_bytes(module.kept_bytes))
                                   .with("shape", module.largest),
                               language));
  }
  if (modules.size() > kMostShown) {
    list.entries.push_back(say(modules_phrase("others")
                                   .with("count", format_count(static_cast<int64_t>(modules.size() - kMostShown)))
                                   .with("bytes", format_bytes(rest_bytes)),
                               language));
  }
  return Section{.body = std::move(list)};
}

nlohmann::ordered_json modules_json(const std::vector<ModuleUse>& modules) {
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const ModuleUse& module : modules)
    json.push_back({{"name", module.name}, {"kept_bytes", module.kept_bytes}, {"largest", module.largest}});
  return json;
}

}  // namespace oomscope
