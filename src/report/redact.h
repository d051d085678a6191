// Redaction: what a report says without paths, user and host names.
//
// A file keeps its last part, a library's file the part below the folder that packages are installed in. Names are
// those that the caller knows (of the user, of the host), those of home folders in any path, and what stands around an
// "@". Texts of a log may still hold names that nothing marks as such: look before you hand them on.
#pragma once

#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "report/report_page.h"

namespace oomscope {

class Redactor {
 public:
  // `paths` of the evidence are cut wherever they stand; `names` are hidden wherever they are a word of their own.
  Redactor(std::vector<std::string> paths, const std::vector<std::string>& names);

  // Takes the names of home folders out of all paths of the page.
  void learn(const Page& page);
  void learn(std::string_view text);

  [[nodiscard]] std::string text(std::string_view text) const;
  void apply(Page& page) const;
  void apply(nlohmann::ordered_json& payload) const;

 private:
  void apply(std::vector<Section>& sections) const;
  void apply(Answer& answer) const;
  void apply(RecordingView& view) const;
  void apply(RanksReport& ranks) const;
  void apply(std::string& text) const { text = this->text(text); }

  std::vector<std::string> paths_;  // longest first
  std::set<std::string> names_;
};

// "/home/ann/job/train.py" -> "train.py", ".../site-packages/torch/nn/x.py" -> "torch/nn/x.py".
[[nodiscard]] std::string short_path(std::string_view path);

}  // namespace oomscope
