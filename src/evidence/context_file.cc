#include "evidence/context_file.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/result.h"
#include "evidence/json_fields.h"
#include "evidence/small_file.h"
#include "types/limits.h"

namespace oomscope {
namespace {

using Json = nlohmann::json;

std::optional<int64_t> bytes_at(const Json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number_integer()) return std::nullopt;
  const int64_t bytes = found->get<int64_t>();
  if (bytes < 0 || bytes > kMaxSizeBytes) return std::nullopt;
  return bytes;
}

// A process whose bytes are unknown makes the others' sum unknown.
void read_processes(const Json& card, FailureContext& context) {
  const auto processes = card.find("processes");
  if (processes == card.end() || !processes->is_array()) return;
  int64_t others = 0;
  bool all_known = true;
  for (const Json& process : *processes) {
    if (!process.is_object()) continue;
    const std::optional<int64_t> bytes = bytes_at(process, "bytes");
    const auto own = process.find("own");
    if (own != process.end() && own->is_boolean() && own->get<bool>()) {
      context.own_bytes = bytes;
    } else if (bytes && others <= kMaxSizeBytes) {
      others += *bytes;
    } else {
      all_known = false;
    }
  }
  // Without this process in the list, the list is of another namespace.
  if (all_known && context.own_bytes) context.others_bytes = others;
}

}  // namespace

std::optional<FailureContext> read_context(std::string_view text) {
  const Json file = Json::parse(text, nullptr, false);
  if (!file.is_object() || text_at(file, "schema").rfind("oomscope.context/", 0) != 0) return std::nullopt;
  FailureContext context{.snapshot = text_at(file, "snapshot"),
                         .gpu_name = text_at(file, "name"),
                         .device = std::nullopt,
                         .card_bytes = bytes_at(file, "card_bytes"),
                         .limit_bytes = bytes_at(file, "limit_bytes"),
                         .own_bytes = std::nullopt,
                         .others_bytes = std::nullopt};
  if (const std::optional<int64_t> device = bytes_at(file, "device"); device && *device < kMaxDevices) {
    context.device = static_cast<int>(*device);
  }
  if (const auto card = file.find("card"); card != file.end() && card->is_object()) read_processes(*card, context);
  return context;
}

std::optional<FailureContext> context_beside(const std::string& snapshot_path) {
  const std::filesystem::path path(snapshot_path);
  const Result<std::string> text = read_small_file((path.parent_path() / "context.json").string(), "");
  if (!text) return std::nullopt;
  std::optional<FailureContext> context = read_context(*text);
  if (!context || context->snapshot != path.filename().string()) return std::nullopt;
  return context;
}

}  // namespace oomscope
