// An Error as people and as programs read it.
#pragma once

#include <string>

#include "base/result.h"
#include "report/terminal.h"
#include "words/words.h"

namespace oomscope {

// "oomscope: WHERE: WHAT" and, on a second line, the next step.
[[nodiscard]] std::string error_text(const Error& error, Language language, const TerminalOptions& options);

// {"error": {code, what, where, hint}}, for standard output with --json. In English.
[[nodiscard]] std::string error_json(const Error& error);

}  // namespace oomscope
