// `fit` as a document.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "plan/advice.h"
#include "plan/fit.h"
#include "report/document.h"

namespace oomscope {

struct FitReport {
  std::vector<std::string> paths;
  std::string conf;  // of the points
  std::optional<int64_t> cap_bytes;
  ScalingModel model;
  Fit fit;
  int64_t measures_at = 0;  // the value that the measures were tried at
  std::vector<MeasureOutcome> measures;
  StepSeries step;  // there, without a measure
  SetSearch search;
  std::optional<int64_t> batch;  // samples there, where the files' names say
  std::string framework;         // of the lines to paste, as in Circumstances
  struct Picture {
    std::string path;  // empty: none
    bool replaced = false;
  };
  Picture picture;
  Caveats caveats;
};
[[nodiscard]] Document fit_document(const FitReport& report, Language language);

}  // namespace oomscope
