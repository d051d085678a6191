#include "report/explain_document.h"

#include <algorithm>
#include <span>
#include <string_view>
#include <vector>

#include "base/did_you_mean.h"
#include "remedies/causes.h"
#include "remedies/remedy.h"
#include "report/pasted_lines.h"
#include "types/phrase.h"

namespace oomscope {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kSchema = "oomscope.explain/1";
constexpr const char* kClaimsPage = "docs/claims.md";
constexpr int kIndent = 2;

// What a page says of a cause, in the order in which it is said; "do" stands between "why" and "not".
constexpr std::string_view kCauseParts[] = {"snapshot", "log", "why", "not", "sure"};

std::string key_of(std::string_view area, std::string_view id, std::string_view part) {
  return std::string(area) + "." + std::string(id) + "." + std::string(part);
}

std::string word_of(std::string_view area, std::string_view id, std::string_view part, Language language) {
  return say(key_of(area, id, part), language);
}

std::string label(std::string_view key, Language language) { return say("explain." + std::string(key), language); }

// A label of the catalogue with one value in it.
std::string filled(std::string_view key, std::string name, std::string text, Language language) {
  return say(Phrase{.key = "explain." + std::string(key)}.with(std::move(name), std::move(text)), language);
}

std::string page_of(std::string_view cause) { return "docs/causes/" + std::string(cause) + ".md"; }

// Where the page of that language lies.
std::string shown_page(std::string page, Language language) {
  if (language == Language::chinese) page.insert(page.find('/') + 1, "zh/");
  return page;
}

std::string joined(std::span<const std::string_view> ids) {
  std::string text;
  for (std::string_view id : ids) text += (text.empty() ? "" : ", ") + std::string(id);
  return text;
}

std::vector<std::string_view> causes_helped(std::string_view remedy) {
  std::vector<std::string_view> ids;
  for (const CauseGuide& guide : cause_guides()) {
    if (helps_against(remedy, guide)) ids.push_back(guide.id);
  }
  return ids;
}

// --- sections ------------------------------------------------------------------------------------------------------

void add_sentence(Document& document, std::string text, Style style, int indent_columns, bool is_joined) {
  document.sections.push_back(
      {.body = Sentence{.text = std::move(text), .style = style, .indent_columns = indent_columns},
       .joined = is_joined});
}

void add_part(Document& document, std::string title, std::string text) {
  add_sentence(document, std::move(title), Style::bold, 0, false);
  add_sentence(document, std::move(text), Style::plain, kIndent, true);
}

void add_heading(Document& document, std::string_view id, std::string text) {
  add_sentence(document, std::move(text), Style::bold, 0, false);
  add_sentence(document, std::string(id), Style::dim, 0, true);
}

// The remedy's text without a case: what a placeholder would name is what the usual case names.
std::string remedy_text(const Remedy& remedy, Language language) {
  return say(change_of(remedy, Circumstances{}).text, language);
}

List phases_list(Language language) {
  List phases{.title = label("by-phase", language), .entries = {}};
  for (Phase phase : kPhases) {
    if (phase == Phase::unknown) continue;
    const Ids ids = remedies_of_phase(phase);
    phases.entries.push_back(say("instant." + std::string(name_of(phase)), language) + ": " +
                             joined(std::span(ids.begin(), ids.end())));
  }
  const Ids ids = remedies_of_frames();
  phases.entries.push_back(label("by-frames", language) + ": " + joined(std::span(ids.begin(), ids.end())));
  return phases;
}

Document explain_cause(const CauseGuide& guide, Language language) {
  Document document;
  const auto part = [&](std::string_view name) { return word_of("explain", guide.id, name, language); };
  add_heading(document, guide.id, part("title"));
  add_part(document, label("in-snapshot", language), part("snapshot"));
  add_part(document, label("in-log", language), part("log"));
  add_part(document, label("why", language), part("why"));
  List changes{.title = label("do", language), .entries = {}};
  for (std::string_view id : guide.remedies) {
    changes.entries.push_back(std::string(id) + ": " + remedy_text(*find_remedy(id), language));
  }
  document.sections.push_back({.body = std::move(changes)});
  if (guide.by_phase) document.sections.push_back({.body = phases_list(language)});
  add_part(document, label("not", language), part("not"));
  List claims{.title = label("claims", language), .entries = {}};
  for (std::string_view id : guide.claims) {
    claims.entries.push_back(std::string(id) + ": " + word_of("claim", id, "said", language));
  }
  if (!claims.entries.empty()) document.sections.push_back({.body = std::move(claims)});
  add_part(document, label("sure", language), part("sure"));
  add_sentence(document, filled("page", "page", shown_page(page_of(guide.id), language), language), Style::dim, 0,
               false);
  return document;
}

// Of the plain case, and what the other schedulers are told.
std::vector<Snippet> snippets_anywhere(const Remedy& remedy) {
  std::vector<Snippet> all = snippets_of(remedy, Circumstances{});
  for (const char* scheduler : {"pbs", "sge", "lsf", "condor"}) {
    for (const Snippet& snippet : snippets_of(remedy, Circumstances{.scheduler = scheduler})) {
      const bool is_known = std::any_of(all.begin(), all.end(), [&](const Snippet& each) {
        return each.place == snippet.place && each.lines == snippet.lines;
      });
      if (!is_known) all.push_back(snippet);
    }
  }
  return all;
}

Document explain_remedy(const Remedy& remedy, Language language) {
  Document document;
  add_heading(document, remedy.id, remedy_text(remedy, language));
  const std::string effect = label("effect-" + std::string(name_of(remedy.effect)), language);
  List facts{.title = "",
             .entries = {filled("cost", "cost", word_of("remedy", remedy.id, "cost", language), language),
                         filled("not-when", "when", word_of("remedy", remedy.id, "not-when", language), language),
                         filled("helps", "causes", joined(causes_helped(remedy.id)), language),
                         filled("effect", "effect", effect, language)}};
  document.sections.push_back({.body = std::move(facts), .joined = true});
  std::string shown;  // a notebook's cell often repeats the file's lines
  for (const Snippet& snippet : snippets_anywhere(remedy)) {
    if (snippet.lines == shown) continue;
    shown = snippet.lines;
    Lines lines{.title = filled("paste", "place", std::string(name_of(snippet.place)), language),
                .lines = pasted_lines(snippet.lines, language),
                .style = Style::green};
    document.sections.push_back({.body = std::move(lines)});
  }
  add_sentence(document, filled("page", "page", shown_page(page_of(remedy.page), language), language), Style::dim, 0,
               false);
  return document;
}

Document explain_claim(std::string_view id, Language language) {
  Document document;
  add_heading(document, id, word_of("claim", id, "said", language));
  add_part(document, label("true", language), word_of("claim", id, "true", language));
  add_sentence(document, filled("shown", "page", shown_page(kClaimsPage, language), language), Style::dim, 0, false);
  return document;
}

// --- JSON, always English --------------------------------------------------------------------------------------------

Json ids_json(std::span<const std::string_view> ids) {
  Json list = Json::array();
  for (std::string_view id : ids) list.push_back(std::string(id));
  return list;
}

Json cause_json(const CauseGuide& guide) {
  Json cause = {{"id", std::string(guide.id)},
                {"page", page_of(guide.id)},
                {"title", word_of("explain", guide.id, "title", Language::english)}};
  for (std::string_view part : kCauseParts) {
    cause[std::string(part)] = word_of("explain", guide.id, part, Language::english);
  }
  cause["remedies"] = ids_json(guide.remedies);
  cause["by_phase"] = guide.by_phase;
  cause["claims"] = ids_json(guide.claims);
  return cause;
}

Json remedy_json(const Remedy& remedy) {
  Json json = {{"id", std::string(remedy.id)},
               {"page", page_of(remedy.page)},
               {"text", remedy_text(remedy, Language::english)},
               {"cost", word_of("remedy", remedy.id, "cost", Language::english)},
               {"not_when", word_of("remedy", remedy.id, "not-when", Language::english)},
               {"effect", std::string(name_of(remedy.effect))},
               {"causes", ids_json(causes_helped(remedy.id))},
               {"snippets", Json::array()}};
  for (const Snippet& snippet : snippets_anywhere(remedy)) {
    json["snippets"].push_back({{"place", std::string(name_of(snippet.place))}, {"lines", snippet.lines}});
  }
  return json;
}

Json claim_json(std::string_view id) {
  return {{"id", std::string(id)},
          {"page", kClaimsPage},
          {"said", word_of("claim", id, "said", Language::english)},
          {"true", word_of("claim", id, "true", Language::english)}};
}

Json explained(const char* what, Json body) { return {{"schema", kSchema}, {what, std::move(body)}}; }

Json all_json() {
  Json json = {{"schema", kSchema},         {"symptoms", Json::array()}, {"causes", Json::array()},
               {"remedies", Json::array()}, {"claims", Json::array()},   {"phases", Json::array()}};
  for (const Symptom& symptom : symptoms()) {
    json["symptoms"].push_back({{"seen", word_of("symptom", symptom.key, "seen", Language::english)},
                                {"causes", ids_json(symptom.causes)},
                                {"check", word_of("symptom", symptom.key, "check", Language::english)}});
  }
  for (const CauseGuide& guide : cause_guides()) json["causes"].push_back(cause_json(guide));
  for (const Remedy& remedy : remedies()) json["remedies"].push_back(remedy_json(remedy));
  for (std::string_view id : claim_ids()) json["claims"].push_back(claim_json(id));
  for (Phase phase : kPhases) {
    const Ids ids = remedies_of_phase(phase);
    json["phases"].push_back({{"phase", std::string(name_of(phase))}, {"remedies", ids_json(ids)}});
  }
  const Ids ids = remedies_of_frames();
  json["frames"] = ids_json(ids);
  return json;
}

std::vector<std::string_view> cause_ids() {
  std::vector<std::string_view> ids;
  for (const CauseGuide& guide : cause_guides()) ids.push_back(guide.id);
  return ids;
}

std::vector<std::string_view> remedy_ids() {
  std::vector<std::string_view> ids;
  for (const Remedy& remedy : remedies()) ids.push_back(remedy.id);
  return ids;
}

Error unknown_id(const std::string& id) {
  std::vector<std::string_view> known = cause_ids();
  const std::vector<std::string_view> changes = remedy_ids();
  known.insert(known.end(), changes.begin(), changes.end());
  known.insert(known.end(), claim_ids().begin(), claim_ids().end());
  const std::string_view near = did_you_mean(id, known);
  return Error{.code = "unknown-id",
               .what = "error.unknown-id",
               .where = id,
               .hint = near.empty() ? "error.unknown-id.hint" : "error.near",
               .values = {{"near", "oomscope why --explain " + std::string(near)}}};
}

}  // namespace

Document explain_all(Language language) {
  Document document;
  for (const Symptom& symptom : symptoms()) {
    add_sentence(document, word_of("symptom", symptom.key, "seen", language), Style::bold, 0,
                 !document.sections.empty());
    add_sentence(document, filled("likely", "causes", joined(symptom.causes), language), Style::plain, kIndent, true);
    add_sentence(document, filled("check", "check", word_of("symptom", symptom.key, "check", language), language),
                 Style::dim, kIndent, true);
  }
  add_part(document, label("causes", language), joined(cause_ids()));
  add_part(document, label("remedies", language), joined(remedy_ids()));
  add_part(document, label("claims", language), joined(claim_ids()));
  add_sentence(document, label("more", language), Style::plain, 0, false);
  document.payload = all_json();
  return document;
}

Result<Document> explain_one(const std::string& id, Language language) {
  Document document;
  if (const CauseGuide* guide = find_cause_guide(id)) {
    document = explain_cause(*guide, language);
    document.payload = explained("cause", cause_json(*guide));
    return document;
  }
  if (const Remedy* remedy = find_remedy(id)) {
    document = explain_remedy(*remedy, language);
    document.payload = explained("remedy", remedy_json(*remedy));
    return document;
  }
  const std::span<const std::string_view> claims = claim_ids();
  if (std::find(claims.begin(), claims.end(), id) == claims.end()) return unknown_id(id);
  document = explain_claim(id, language);
  document.payload = explained("claim", claim_json(id));
  return document;
}

}  // namespace oomscope
