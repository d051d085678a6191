#include "cli/error_text.h"

#include <nlohmann/json.hpp>

namespace oomscope {

std::string error_text(const Error& error, const TerminalOptions& options) {
  std::string text = "oomscope: ";
  if (!error.where.empty()) text += printable(error.where) + ": ";
  text += styled(printable(error.what), Style::red, options) + "\n";
  if (!error.hint.empty()) text += "  " + printable(error.hint) + "\n";
  return text;
}

std::string error_json(const Error& error) {
  nlohmann::ordered_json json;
  json["schema"] = "oomscope.error/1";
  json["error"] = {{"code", error.code}, {"what", error.what}, {"where", error.where}, {"hint", error.hint}};
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace oomscope
