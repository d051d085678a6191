// What the rules over logs offer is what the guides say, in whatever a log may hold.
#include <gtest/gtest.h>

#include <set>

#include "analysis/rules/rule.h"
#include "analysis/text_facts.h"
#include "evidence/text/template.h"
#include "remedies/causes.h"

namespace oomscope {
namespace {

constexpr int64_t kGib = int64_t{1} << 30;

std::vector<Template> all_templates() {
  std::vector<Template> all;
  for (std::span<const Template> each :
       {gpu_templates(), other_backend_templates(), host_templates(), ending_templates(), not_memory_templates()}) {
    all.insert(all.end(), each.begin(), each.end());
  }
  return all;
}

// Figures that the rules tell apart: none, a small request, one that the cache would serve, one that pieces would, one
// that private pools would, a limit, more allocated than the card has, more tried than the card has.
std::vector<CardFigures> all_figures() {
  CardFigures small;
  small.tried = kGib;
  small.total = 24 * kGib;
  small.allocated = 22 * kGib;
  small.reserved = 23 * kGib;
  small.unused = kGib / 2;
  small.free = kGib / 4;
  CardFigures serves = small;
  serves.unused = 4 * kGib;
  CardFigures pieces = small;
  pieces.free = kGib * 3 / 4;
  CardFigures pools = small;
  pools.free_in_pools = kGib;
  CardFigures limited = serves;
  limited.limit = 12 * kGib;
  CardFigures spilled = small;
  spilled.contradictions = {Contradiction::allocated_above_total};
  CardFigures covered = small;
  covered.contradictions = {Contradiction::free_covers_request};
  CardFigures shared = small;
  shared.others = {2 * kGib, 2 * kGib, 2 * kGib};
  CardFigures huge = small;
  huge.tried = 200 * kGib;
  return {CardFigures{}, small, serves, pieces, pools, limited, spilled, covered, shared, huge};
}

const std::set<Kind>& gpu_kinds() {
  static const std::set<Kind> kinds = {Kind::gpu_oom, Kind::gpu_oom_capacity, Kind::gpu_oom_fragmentation,
                                       Kind::gpu_oom_other_process, Kind::gpu_oom_first_alloc_or_context};
  return kinds;
}

// The kinds that a message may be told to be.
std::set<Kind> kinds_of(const Template& row) {
  std::set<Kind> kinds(row.also.begin(), row.also.end());
  kinds.insert(row.kind);
  if (row.family == Family::allocator || row.family == Family::bare_gpu) {
    kinds.insert(gpu_kinds().begin(), gpu_kinds().end());
    kinds.insert(Kind::host_alloc_failed);
  }
  if (row.family == Family::disk) kinds.insert(Kind::shm_exhausted);
  return kinds;
}

void expect_guided(const TextFacts& facts, std::string_view message) {
  for (const Cause& cause : causes()) {
    for (const Finding& finding : cause.find(CaseFacts{.run = nullptr, .text = &facts})) {
      const CauseGuide* guide = find_cause_guide(cause.id);
      ASSERT_NE(guide, nullptr) << cause.id;
      for (const Change& change : finding.changes) {
        EXPECT_TRUE(helps_against(change.remedy, *guide))
            << message << ": " << change.remedy << " is offered against " << cause.id << ", whose guide lacks it";
      }
    }
  }
}

TEST(LogRules, OfferOnlyWhatTheirCausesGuideHas) {
  for (const Template& row : all_templates()) {
    if (row.strength == 0) continue;
    TextMessage message;
    message.id = row.id;
    message.family = row.family;
    message.kind = row.kind;
    message.strength = row.strength;
    message.frames = {{.file = "a.py", .function = "attention", .code = "cross_entropy(subprocess)", .line = 1}};
    TextFacts facts;
    facts.failure = &message;
    facts.around.is_container = true;
    for (Kind kind : kinds_of(row)) {
      facts.kind = kind;
      for (const CardFigures& card : all_figures()) {
        facts.card = card;
        for (Phase phase : kPhases) {
          facts.phase = phase;
          for (Confidence confidence : {Confidence::low, Confidence::high}) {
            facts.confidence = confidence;
            expect_guided(facts, row.id);
            if (HasFailure()) return;
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace oomscope
