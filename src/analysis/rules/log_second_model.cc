// second-model: a model was being brought to the card behind an earlier one of the same process, with most of the card
// handed out already: the earlier one is most likely still there.
#include "analysis/rules/log_rules.h"

namespace oomscope {

std::vector<Finding> find_log_second_model(const CaseFacts& facts) {
  if (facts.text == nullptr || facts.text->failure == nullptr || facts.text->phase != Phase::next_model) return {};
  const TextFacts& text = *facts.text;
  const CardFigures& card = text.card;
  if (!card.allocated || !card.total || *card.allocated < *card.total / 2) return {};
  Finding finding =
      log_finding(text, "second-model", {size_value("allocated", card.allocated), size_value("total", card.total)});
  finding.confidence = Confidence::medium;
  add_changes(text, {"delete-references", "clear-traceback"}, finding);
  return {finding};
}

}  // namespace oomscope
