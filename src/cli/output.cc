#include "cli/output.h"

#include <cerrno>
#include <utility>

#include "base/system_error.h"

namespace oomscope {

void Output::write(const std::string& text) {
  if (text.empty() || failure_ != 0) return;
  const bool is_written = std::fwrite(text.data(), 1, text.size(), out_) == text.size() && std::fflush(out_) == 0;
  if (!is_written) failure_ = errno;
}

void Output::add(Section section) {
  if (!json_) {
    const std::string text = render_section(section, terminal_);
    if (!text.empty()) {
      progress_->clear();
      write((has_written_ && !section.joined ? "\n" : "") + text);
      has_written_ = true;
    }
  }
  document_.sections.push_back(std::move(section));
}

Result<Done> Output::finish() {
  progress_->clear();
  if (json_) write(render_json(document_));
  if (failure_ == 0) return Done{};
  return Error{.code = "output-not-written",
               .what = system_error(failure_),
               .where = "error.standard-output",
               .hint = "error.not-written.hint"};
}

}  // namespace oomscope
