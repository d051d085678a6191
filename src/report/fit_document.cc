#include "report/fit_document.h"

#include <fmt/format.h>

#include "base/bytes_text.h"
#include "plan/conv_table.h"
#include "report/measures_document.h"

namespace oomscope {
namespace {

using Json = nlohmann::ordered_json;

class FitWriter {
 public:
  FitWriter(const FitReport& report, Language language) : report_(report), language_(language) {}

  [[nodiscard]] Document document() const {
    Document document;
    document.sections.push_back({.body = Sentence{.text = words(sentence()), .style = Style::bold}, .joined = false});
    document.sections.push_back({.body = points_table(), .joined = false});
    if (report_.cap_bytes && report_.model.values.size() > 1) {
      document.sections.push_back({.body = settings_table(), .joined = false});
    }
    if (!report_.measures.empty()) {
      const Phrase at = Phrase{.key = "fit.measures-at"}.with("value", std::to_string(report_.measures_at));
      document.sections.push_back({.body = Sentence{.text = words(at)}, .joined = false});
    }
    for (Section& section : measures_sections(report_.measures, report_.cap_bytes.has_value(), language_)) {
      document.sections.push_back(std::move(section));
    }
    for (Section& section : sets_sections(report_.search, report_.framework, report_.batch, language_))
      document.sections.push_back(std::move(section));
    if (!report_.picture.path.empty()) {
      const char* key = report_.picture.replaced ? "fit.picture.replaced" : "fit.picture.written";
      document.sections.push_back(
          {.body = Sentence{.text = words(Phrase{.key = key}.with("path", report_.picture.path))}, .joined = false});
    }
    if (const auto note = unsure_note()) {
      document.sections.push_back({.body = Sentence{.text = words(*note)}, .joined = true});
    }
    if (const auto note = table_note()) {
      document.sections.push_back({.body = Sentence{.text = words(*note)}, .joined = true});
    }
    for (const char* key : notes()) document.sections.push_back({.body = Sentence{.text = words(key)}, .joined = true});
    document.sections.push_back({.body = caveat_list(report_.caveats, language_), .joined = false});
    document.payload = payload();
    return document;
  }

 private:
  [[nodiscard]] std::string words(const Phrase& phrase) const { return say(phrase, language_); }
  [[nodiscard]] std::string words(const char* key) const { return say(key, language_); }
  [[nodiscard]] std::string words(const std::string& key) const { return say(key, language_); }

  [[nodiscard]] Phrase sentence() const {
    const Fit& fit = report_.fit;
    const std::string cap = format_mib(report_.cap_bytes.value_or(0));
    if (report_.model.values.size() < 2) return single_sentence(cap);
    if (!report_.cap_bytes) return Phrase{.key = "fit.curve"}.with("value", std::to_string(report_.model.base_value()));
    if (!fit.largest) return Phrase{.key = "fit.none"}.with("cap", cap);
    Phase limiting = Phase::unknown;
    for (const FitPoint& point : fit.points) {
      if (point.value != *fit.largest + 1) continue;
      if (point.fits == Fits::unknown) {
        return Phrase{.key = "fit.largest-surely"}.with("value", std::to_string(*fit.largest)).with("cap", cap);
      }
      limiting = point.instant.phase;
    }
    return Phrase{.key = "fit.largest"}
        .with("value", std::to_string(*fit.largest))
        .with("cap", cap)
        .with("phase", phase_text(limiting));
  }

  [[nodiscard]] Phrase single_sentence(const std::string& cap) const {
    const FitPoint& point = report_.fit.points.front();
    if (!point.fits) {
      return Phrase{.key = "fit.single"}.with("bytes", format_mib(point.outcome.main.peak_reserved));
    }
    return Phrase{.key = fmt::format("fit.single.{}", name_of(*point.fits))}.with("cap", cap);
  }

  [[nodiscard]] std::string phase_text(Phase phase) const { return words(fmt::format("instant.{}", name_of(phase))); }

  [[nodiscard]] Table points_table() const {
    Table table{.title = "",
                .columns = {{.header = words("fit.value"), .align = Align::right},
                            {.header = words("fit.requested"), .align = Align::right, .may_drop = true},
                            {.header = words("fit.allocated"), .align = Align::right},
                            {.header = words("fit.reserved"), .align = Align::right},
                            {.header = report_.cap_bytes ? words("fit.limited") : "", .align = Align::right},
                            {.header = words("fit.fits")},
                            {.header = words("fit.instant"), .may_wrap = true}},
                .rows = {},
                .total = std::nullopt,
                .note = ""};
    for (const FitPoint& point : report_.fit.points) {
      const Outcome& outcome = point.outcome.main;
      table.rows.push_back(
          Row{.cells = {fmt::format("{}{}", point.value, point.recorded ? "*" : ""), format_mib(outcome.peak_requested),
                        format_mib(outcome.peak_allocated), reserved_text(point),
                        point.limited && point.limited->completed ? format_mib(point.limited->peak_reserved) : "",
                        point.fits ? words(fmt::format("fit.fits.{}", name_of(*point.fits))) : "",
                        phase_text(point.instant.phase)},
              .style = Style::plain});
    }
    table.note = words("fit.recorded-note");
    const bool any_guessed = std::any_of(report_.fit.points.begin(), report_.fit.points.end(),
                                         [&](const FitPoint& point) { return has_guesses(point); });
    if (any_guessed) table.note += "\n" + words("fit.guesses-note");
    return table;
  }

  [[nodiscard]] bool has_guesses(const FitPoint& point) const {
    return report_.model.is_guessed(point.value) && !point.recorded &&
           point.outcome.peak_reserved_low != point.outcome.peak_reserved_high;
  }

  // With the range where scratch is guessed.
  [[nodiscard]] std::string reserved_text(const FitPoint& point) const {
    const OutcomeRange& range = point.outcome;
    const std::string middle = format_mib(range.main.peak_reserved);
    if (!has_guesses(point)) return middle;
    const auto count = [](int64_t bytes) { return format_count(bytes / kMiB); };
    return fmt::format("{} ({}–{})", middle, count(range.peak_reserved_low), count(range.peak_reserved_high));
  }

  [[nodiscard]] Table settings_table() const {
    Table table{.title = words("fit.settings.title"),
                .columns = {{.header = words("fit.settings.conf"), .may_wrap = true},
                            {.header = words("fit.settings.largest"), .align = Align::right}},
                .rows = {},
                .total = std::nullopt,
                .note = ""};
    for (const FitSetting& setting : report_.fit.by_setting) {
      table.rows.push_back(
          Row{.cells = {setting.conf.empty() ? words("fit.settings.default") : setting.conf,
                        setting.largest ? std::to_string(*setting.largest) : words("fit.settings.none")},
              .style = Style::plain});
    }
    return table;
  }

  // A third recording that would settle what is guessed: at half of what was asked for, at which most kernels are those
  // of the whole.
  [[nodiscard]] std::optional<int64_t> value_to_record() const {
    int64_t wanted = 0;
    for (const FitPoint& point : report_.fit.points) {
      if (has_guesses(point)) wanted = std::max(wanted, point.value);
    }
    const int64_t base = report_.model.base_value();
    if (wanted <= base) return std::nullopt;
    return wanted / 2 > base ? wanted / 2 : wanted;
  }

  [[nodiscard]] std::optional<Phrase> unsure_note() const {
    const std::optional<int64_t> value = value_to_record();
    const ScalingModel::Unsure& unsure = report_.model.unsure;
    if (!value || unsure.requests == 0) return std::nullopt;
    return Phrase{.key = unsure.site.empty() ? "fit.unsure-frameless" : "fit.unsure"}
        .with("count", format_count(unsure.requests))
        .with("bytes", format_mib(unsure.bytes))
        .with("site", unsure.site)
        .with("value", std::to_string(*value));
  }

  // Convolutions as measured on one card.
  [[nodiscard]] std::optional<Phrase> table_note() const {
    if (!report_.model.forecast) return std::nullopt;
    return Phrase{.key = "fit.convolutions"}
        .with("card", std::string(kTableCard))
        .with("cudnn", std::string(kTableCudnn))
        .with("torch", std::string(kTableTorch))
        .with("share", fmt::format("{:.0f}", 100 * report_.model.forecast->agreement()));
  }

  [[nodiscard]] Json table_json() const {
    if (!report_.model.forecast) return nullptr;
    return {{"uses", report_.model.forecast->convolutions().size()},
            {"agreement", report_.model.forecast->agreement()},
            {"measured_on", fmt::format("NVIDIA {}, cuDNN {}, PyTorch {}", kTableCard, kTableCudnn, kTableTorch)}};
  }

  [[nodiscard]] Json unsure_json() const {
    const std::optional<int64_t> value = value_to_record();
    if (!value) return nullptr;
    const ScalingModel::Unsure& unsure = report_.model.unsure;
    return {{"requests", unsure.requests},
            {"largest_bytes", unsure.bytes},
            {"site", unsure.site.empty() ? Json(nullptr) : Json(unsure.site)},
            {"record", *value}};
  }

  [[nodiscard]] std::vector<const char*> notes() const {
    std::vector<const char*> keys;
    const ScalingModel& model = report_.model;
    if (model.values.size() > 1 && model.source == ValueSource::ratios) keys.push_back("fit.values-from-ratios");
    if (model.values.size() > 1 && model.source == ValueSource::names) keys.push_back("fit.values-from-names");
    if (!model.has_evaluation && !model.has_saving) {
      keys.push_back("fit.not-covered.both");
    } else if (!model.has_evaluation) {
      keys.push_back("fit.not-covered.evaluation");
    } else if (!model.has_saving) {
      keys.push_back("fit.not-covered.saving");
    }
    return keys;
  }

  [[nodiscard]] Json point_json(const FitPoint& point) const {
    const Outcome& outcome = point.outcome.main;
    return {{"value", point.value},
            {"recorded", point.recorded},
            {"peak_requested", outcome.peak_requested},
            {"peak_allocated", outcome.peak_allocated},
            {"peak_reserved", outcome.peak_reserved},
            {"peak_reserved_low", point.outcome.peak_reserved_low},
            {"peak_reserved_high", point.outcome.peak_reserved_high},
            {"peak_reserved_under_limit",
             point.limited && point.limited->completed ? Json(point.limited->peak_reserved) : Json(nullptr)},
            {"fits", point.fits ? Json(name_of(*point.fits)) : Json(nullptr)},
            {"instant",
             {{"event", point.instant.event == kNoEvent ? Json(nullptr) : Json(point.instant.event)},
              {"phase", name_of(point.instant.phase)},
              {"requested", point.instant.requested}}}};
  }

  [[nodiscard]] Json model_json() const {
    const ScalingModel& model = report_.model;
    Json rules = Json::object();
    for (size_t i = 0; i < kSizeRules; ++i) {
      rules[std::string(name_of(static_cast<SizeRule>(i)))] = {{"requests", model.requests_by_rule[i]},
                                                               {"bytes", model.bytes_by_rule[i]}};
    }
    Json recordings = Json::array();
    for (size_t i = 0; i < model.values.size(); ++i) {
      recordings.push_back({{"path", report_.paths[model.recordings[i]]}, {"value", model.values[i]}});
    }
    return {
        {"recordings", recordings}, {"values_from", name_of(model.source)},
        {"power", model.power},     {"requests", static_cast<int64_t>(model.base.order.size())},
        {"rules", rules},           {"covers", {{"evaluation", model.has_evaluation}, {"saving", model.has_saving}}}};
  }

  static Json columns_json(const StepSeries& series) {
    Json columns = Json::array();
    for (const CategoryBytes& column : series.columns) columns.push_back(column);
    return columns;
  }

  // Memory over one step before and after the cheapest set: what a picture is drawn from.
  [[nodiscard]] Json picture_json() const {
    Json categories = Json::array();
    for (size_t i = 0; i < kCategories; ++i) categories.push_back(oomscope::name_of(static_cast<Category>(i)));
    const bool has_set = !report_.search.fitting.empty();
    return {{"step", report_.step.step},
            {"capacity_bytes", or_null(report_.cap_bytes)},
            {"categories", categories},
            {"before", columns_json(report_.step)},
            {"after", has_set ? columns_json(report_.search.fitting.front().step) : Json(nullptr)}};
  }

  [[nodiscard]] Json payload() const {
    const Fit& fit = report_.fit;
    Json json = {{"schema", "oomscope.fit/1"},
                 {"conf", report_.conf},
                 {"cap_bytes", or_null(report_.cap_bytes)},
                 {"largest", or_null(fit.largest)},
                 {"surely_not_from", or_null(fit.largest_maybe)},
                 {"by_setting", Json::array()},
                 {"points", Json::array()},
                 {"measures_at", report_.measures_at},
                 {"measures", measures_json(report_.measures, report_.cap_bytes.has_value(), report_.batch)},
                 {"search", sets_json(report_.search, report_.batch)},
                 {"picture", picture_json()},
                 {"model", model_json()},
                 {"unsure", unsure_json()},
                 {"convolutions", table_json()},
                 {"caveats", caveats_json(report_.caveats)}};
    for (const FitSetting& setting : fit.by_setting) {
      json["by_setting"].push_back({{"conf", setting.conf}, {"largest", or_null(setting.largest)}});
    }
    for (const FitPoint& point : fit.points) json["points"].push_back(point_json(point));
    return json;
  }

  const FitReport& report_;
  Language language_;
};

}  // namespace

Document fit_document(const FitReport& report, Language language) { return FitWriter(report, language).document(); }

}  // namespace oomscope
