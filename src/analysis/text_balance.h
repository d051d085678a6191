// Who holds what of the card, as a table that adds up.
#pragma once

#include "analysis/text_facts.h"

namespace oomscope {

// Rows that add up to the card's total, by the figures of `facts.card`; what no possible figure explains is a row of
// its own. Without a total they are what is known.
void fill_balance(TextFacts& facts);

}  // namespace oomscope
