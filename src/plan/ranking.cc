// Note [Ranking sets of measures]
//
// A peak is a maximum over instants, so savings do not add up: checkpointing and a fused optimizer step each bring
// nothing alone where the other's instant is as high. So a job's profile is its most live bytes by phase; each measure
// multiplies the phases by what its own replay showed, and a set's estimate is the largest phase of the product. That
// ranks a hundred thousand sets in milliseconds. It is no proof: the twenty cheapest that may fit are made and replayed
// under the cap, and what does not complete is left out.
#include "plan/ranking.h"

#include <algorithm>

namespace oomscope {

// Applied in this order: what changes the requests of a pass before what repeats or recomputes them.
const std::array<MeasureGroup, kMeasureGroups> kOrderOfGroups = {
    MeasureGroup::mode,      MeasureGroup::attention,     MeasureGroup::loss,
    MeasureGroup::precision, MeasureGroup::checkpointing, MeasureGroup::batch,
    MeasureGroup::gradients, MeasureGroup::optimizer,     MeasureGroup::sharding};

namespace {

constexpr double kSureShare = 0.95;  // of the cap: an estimate below it is taken to fit

size_t part_of(Phase phase) {
  if (phase == Phase::forward || phase == Phase::loss) return 0;
  if (phase == Phase::backward) return 1;
  return phase == Phase::optimizer_step ? 2 : 3;
}

int64_t count(const Candidate& candidate) {
  return std::count_if(candidate.choices.begin(), candidate.choices.end(),
                       [](const Choice* choice) { return choice != nullptr; });
}

bool is_better(const Candidate& a, const Candidate& b) {
  if (a.cost != b.cost) return a.cost < b.cost;
  if (count(a) != count(b)) return count(a) < count(b);
  return a.estimate < b.estimate;
}

class Ranker {
 public:
  Ranker(const RankingQuestion& question, const Choices& choices) : question_(question), choices_(choices) {}

  Ranking run() {
    extend(0, question_.base, Candidate{});
    std::sort(ranking_.best.begin(), ranking_.best.end(), is_better);
    return std::move(ranking_);
  }

 private:
  void extend(size_t group, const Profile& profile, const Candidate& candidate) {
    if (group == kMeasureGroups) {
      for (size_t conf = 0; conf < question_.overheads.size(); ++conf) consider(candidate, profile, conf);
      return;
    }
    for (const Choice& choice : choices_[group]) {
      Candidate next = candidate;
      if (choice.measure != nullptr) {
        next.choices[group] = &choice;
        next.cost *= cost_of(*choice.measure);
      }
      Profile product = profile;
      for (size_t i = 0; i < product.size(); ++i) product[i] *= choice.factor[i];
      extend(group + 1, product, next);
    }
  }

  void consider(Candidate candidate, const Profile& profile, size_t conf) {
    ++ranking_.combinations;
    candidate.conf = conf;
    candidate.estimate = *std::max_element(profile.begin(), profile.end()) * question_.overheads[conf];
    if (candidate.estimate > question_.cap * question_.slack || has_surplus(candidate, profile, conf)) return;
    // Settings cost no time, but the recorded ones are no change at all.
    if (conf != 0) candidate.cost *= 1.001;
    std::vector<Candidate>& best = ranking_.best;  // a heap, the worst first
    best.push_back(candidate);
    std::push_heap(best.begin(), best.end(), is_better);
    if (best.size() <= kMostCandidates) return;
    std::pop_heap(best.begin(), best.end(), is_better);
    best.pop_back();
  }

  // Would it surely fit without one of its measures?
  [[nodiscard]] bool has_surplus(const Candidate& candidate, const Profile& profile, size_t conf) const {
    return std::any_of(candidate.choices.begin(), candidate.choices.end(), [&](const Choice* choice) {
      if (choice == nullptr) return false;
      double most = 0;
      for (size_t i = 0; i < profile.size(); ++i) most = std::max(most, profile[i] / choice->factor[i]);
      return most * question_.overheads[conf] < question_.cap * kSureShare;
    });
  }

  const RankingQuestion& question_;
  const Choices& choices_;
  Ranking ranking_;
};

}  // namespace

Profile profile_of(const Job& job) {
  Profile most{};
  double live = 0;
  for (size_t i = 0; i < job.requests.kind.size(); ++i) {
    const uint32_t id = job.requests.id[i];
    const RequestKind kind = job.requests.kind[i];
    if (kind == RequestKind::malloc) live += static_cast<double>(job.size(id));
    if (kind == RequestKind::free || kind == RequestKind::free_held) live -= static_cast<double>(job.size(id));
    double& part = most[part_of(job.phase[i])];
    part = std::max(part, live);
  }
  return most;
}

double cost_of(const Measure& measure) { return measure.time_factor.value_or(measure.rank_cost); }

Ranking rank_sets(const RankingQuestion& question, const Choices& choices) { return Ranker(question, choices).run(); }

}  // namespace oomscope
