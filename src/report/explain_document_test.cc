#include "report/explain_document.h"

#include <gtest/gtest.h>

#include "analysis/rules/rule.h"
#include "remedies/causes.h"
#include "remedies/remedy.h"
#include "words/words.h"

namespace oomscope {
namespace {

bool has_words(std::string_view area, std::string_view id, std::string_view part) {
  const std::string key = std::string(area) + "." + std::string(id) + "." + std::string(part);
  return word(key, Language::english).has_value() && word(key, Language::chinese).has_value();
}

TEST(Words, EveryRemedyHasItsTexts) {
  for (const Remedy& remedy : remedies()) {
    for (std::string_view part : {"text", "cost", "not-when"}) {
      EXPECT_TRUE(has_words("remedy", remedy.id, part)) << remedy.id << " " << part;
    }
  }
}

TEST(Words, EveryCommentOfASnippetIsThere) {
  for (const Remedy& remedy : remedies()) {
    std::vector<Snippet> all = snippets_of(remedy, Circumstances{});
    const Circumstances others[] = {
        {.framework = "java"}, {.scheduler = "condor"}, {.is_evicted = true}, {.limits = {.is_host_shm = true}}};
    for (const Circumstances& other : others) {
      for (Snippet& snippet : snippets_of(remedy, other)) all.push_back(std::move(snippet));
    }
    for (const Snippet& snippet : all) {
      for (size_t at = snippet.lines.find("# "); at != std::string::npos; at = snippet.lines.find("# ", at + 1)) {
        const std::string comment = snippet.lines.substr(at + 2, snippet.lines.find('\n', at) - at - 2);
        EXPECT_TRUE(word("comment." + comment, Language::chinese)) << remedy.id << ": " << comment;
      }
    }
  }
}

TEST(Explain, KnowsEveryIdThatAFindingCanHave) {
  for (const Cause& cause : causes()) EXPECT_NE(find_cause_guide(cause.id), nullptr) << cause.id;
}

TEST(Words, EveryCauseSymptomAndClaimHasItsTexts) {
  for (const CauseGuide& guide : cause_guides()) {
    for (std::string_view part : {"title", "snapshot", "log", "why", "not", "sure"}) {
      EXPECT_TRUE(has_words("explain", guide.id, part)) << guide.id << " " << part;
    }
  }
  for (const Symptom& symptom : symptoms()) {
    for (std::string_view part : {"seen", "check"}) EXPECT_TRUE(has_words("symptom", symptom.key, part)) << symptom.key;
  }
  for (std::string_view id : claim_ids()) {
    for (std::string_view part : {"said", "true"}) EXPECT_TRUE(has_words("claim", id, part)) << id;
  }
}

TEST(Explain, NoPlaceholderIsLeft) {
  for (const Remedy& remedy : remedies()) {
    const std::string text = say(change_of(remedy, Circumstances{}).text, Language::english);
    EXPECT_EQ(text.find('{'), std::string::npos) << remedy.id << ": " << text;
  }
}

TEST(Explain, ShowsTheLinesOfEachScheduler) {
  const Result<Document> document = explain_one("raise-cgroup-limit", Language::english);
  ASSERT_TRUE(document);
  const std::string text = document->payload.dump();
  for (const char* line : {"qsub -l mem=", "qsub -l h_vmem=", "bsub -M ", "request_memory = ", "#SBATCH --mem="})
    EXPECT_NE(text.find(line), std::string::npos) << line;
}

TEST(Explain, AnUnknownIdNamesTheNearest) {
  const Result<Document> document = explain_one("graph-kep", Language::english);
  ASSERT_FALSE(document);
  EXPECT_EQ(say(document.error(), Language::english).hint, "did you mean oomscope why --explain graph-kept?");
}

}  // namespace
}  // namespace oomscope
