#include "cli/error_text.h"

#include <nlohmann/json.hpp>

namespace oomscope {

std::string error_text(const Error& error, Language language, const TerminalOptions& options) {
  const SaidError said = say(error, language);
  std::string text = "oomscope: ";
  if (!said.where.empty()) text += printable(said.where) + ": ";
  text += styled(printable(said.what), Style::red, options) + "\n";
  if (!said.hint.empty()) text += "  " + printable(said.hint) + "\n";
  return text;
}

std::string error_json(const Error& error) {
  const SaidError said = say(error, Language::english);
  nlohmann::ordered_json json;
  json["schema"] = "oomscope.error/1";
  json["error"] = {{"code", error.code}, {"what", said.what}, {"where", said.where}, {"hint", said.hint}};
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace oomscope
