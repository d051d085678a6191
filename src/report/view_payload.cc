#include "report/view_payload.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <nlohmann/json.hpp>

namespace oomscope {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kMagic = "OOMVIEW1";
constexpr int kDeflateLevel = 4;  // the columns are varints of small numbers: more effort brings a few per cent

// Paul Tol's qualitative schemes, in the order of Category.
constexpr std::array<std::string_view, 12> kColours = {"#4477aa", "#66ccee", "#aa3377", "#ee7733",
                                                       "#228833", "#ccbb44", "#ee99aa", "#997700",
                                                       "#44bb99", "#7766cc", "#aaaaaa", "#777777"};

class Columns {
 public:
  // Each value as a varint: seven bits a byte, the lowest first.
  template <class Get>
  void add(const char* name, size_t count, Get get) {
    begin(name, count, "varint");
    for (size_t i = 0; i < count; ++i) put(static_cast<uint64_t>(get(i)));
    end();
  }
  // Differences to the value before, as varints of a zigzag: the sign is the lowest bit.
  template <class Get>
  void add_deltas(const char* name, size_t count, Get get) {
    begin(name, count, "delta");
    int64_t before = 0;
    for (size_t i = 0; i < count; ++i) {
      const int64_t value = static_cast<int64_t>(get(i));
      const int64_t delta = value - before;
      put(static_cast<uint64_t>(delta) << 1 ^ static_cast<uint64_t>(delta >> 63));
      before = value;
    }
    end();
  }
  [[nodiscard]] const Json& list() const { return list_; }
  [[nodiscard]] const std::string& bytes() const { return bytes_; }

 private:
  void begin(const char* name, size_t count, const char* coding) {
    begin_ = bytes_.size();
    list_.push_back({{"name", name}, {"count", count}, {"coding", coding}});
    bytes_.reserve(bytes_.size() + count * 2);
  }
  void end() { list_.back()["bytes"] = bytes_.size() - begin_; }
  void put(uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>(value | 0x80);
    bytes_ += static_cast<char>(value);
  }

  Json list_ = Json::array();
  std::string bytes_;
  size_t begin_ = 0;
};

// An event, or 0 for what is before the first one or never.
uint64_t plus_one(uint32_t event) { return event == kNever ? 0 : uint64_t{event} + 1; }

void add_lives(const RecordingView& view, Columns& columns) {
  const std::vector<Life>& lives = view.lives;
  const auto after = [](uint32_t event, uint32_t before) {
    return event == kNever ? 0 : uint64_t{event} - (before == kNever ? 0 : before) + 1;
  };
  columns.add_deltas("life.begin", lives.size(), [&](size_t i) { return plus_one(lives[i].begin); });
  columns.add("life.free_requested", lives.size(),
              [&](size_t i) { return after(lives[i].free_requested, lives[i].begin); });
  columns.add("life.free_completed", lives.size(), [&](size_t i) {
    const uint32_t before = lives[i].free_requested != kNever ? lives[i].free_requested : lives[i].begin;
    return after(lives[i].free_completed, before);
  });
  columns.add_deltas("life.address", lives.size(), [&](size_t i) { return lives[i].address / 512; });
  columns.add("life.kind", lives.size(), [&](size_t i) { return lives[i].kind; });
  const std::vector<LifeKind>& kinds = view.kinds;
  columns.add("kind.stack", kinds.size(), [&](size_t i) { return kinds[i].stack; });
  columns.add("kind.site", kinds.size(), [&](size_t i) { return kinds[i].site; });
  columns.add("kind.requested", kinds.size(), [&](size_t i) { return kinds[i].requested; });
  columns.add("kind.size", kinds.size(), [&](size_t i) { return kinds[i].size; });
  columns.add("kind.stream", kinds.size(), [&](size_t i) { return kinds[i].stream; });
  columns.add("kind.pool", kinds.size(), [&](size_t i) { return kinds[i].pool; });
  columns.add("kind.category", kinds.size(), [&](size_t i) { return kinds[i].category; });
  columns.add("kind.reason", kinds.size(), [&](size_t i) { return kinds[i].reason; });
}

void add_driver(const RecordingView& view, Columns& columns) {
  const std::vector<DriverChange>& driver = view.driver;
  columns.add("driver.event", driver.size(), [&](size_t i) { return plus_one(driver[i].event); });
  columns.add("driver.gain", driver.size(), [&](size_t i) { return driver[i].is_gain ? 1 : 0; });
  columns.add("driver.pages", driver.size(), [&](size_t i) { return driver[i].is_pages ? 1 : 0; });
  columns.add("driver.small", driver.size(), [&](size_t i) { return driver[i].is_small ? 1 : 0; });
  columns.add_deltas("driver.address", driver.size(), [&](size_t i) { return driver[i].address / 512; });
  columns.add("driver.size", driver.size(), [&](size_t i) { return driver[i].size; });
  columns.add("driver.stream", driver.size(), [&](size_t i) { return driver[i].stream; });
  columns.add("driver.pool", driver.size(), [&](size_t i) { return driver[i].pool; });
  columns.add("driver.stack", driver.size(), [&](size_t i) { return driver[i].stack; });
}

void add_rest(const RecordingView& view, Columns& columns, const std::vector<std::string_view>& phases) {
  columns.add_deltas("time_us", view.time_us.size(), [&](size_t i) { return view.time_us[i]; });
  columns.add("node.parent", view.nodes.size(), [&](size_t i) { return view.nodes[i].parent; });
  columns.add("node.frame", view.nodes.size(), [&](size_t i) { return view.nodes[i].frame; });
  columns.add("stack.node", view.stack_nodes.size(), [&](size_t i) { return view.stack_nodes[i]; });
  columns.add_deltas("span.begin", view.spans.size(), [&](size_t i) { return view.spans[i].begin; });
  columns.add("span.step", view.spans.size(), [&](size_t i) { return view.spans[i].step; });
  columns.add("span.phase", view.spans.size(),
              [&](size_t i) { return std::find(phases.begin(), phases.end(), view.spans[i].phase) - phases.begin(); });
  const std::vector<StepUse>& steps = view.steps.steps;
  columns.add_deltas("step.end", steps.size(), [&](size_t i) { return steps[i].end; });
  columns.add("step.peak", steps.size(), [&](size_t i) { return steps[i].peak_allocated; });
  columns.add("step.peak_event", steps.size(), [&](size_t i) { return steps[i].peak_event; });
  columns.add("step.left", steps.size(), [&](size_t i) { return steps[i].left_bytes; });
}

Json peak_json(const Peak& peak) {
  return {{"bytes", peak.bytes}, {"event", peak.event == kNever ? Json(nullptr) : Json(peak.event)}};
}

Json curves_json(const RecordingView& view) {
  Json curves = Json::array();
  for (const SettingCurve& curve : view.curves) {
    curves.push_back({{"conf", curve.conf},
                      {"completed", curve.completed},
                      {"peak_reserved", curve.peak_reserved},
                      {"reserved", curve.reserved}});
  }
  return curves;
}

Json tables_json(const RecordingView& view, Language language, const std::vector<std::string_view>& phases) {
  Json tables;
  tables["categories"] = Json::array();
  for (size_t i = 0; i <= view.categories.size(); ++i) {
    tables["categories"].push_back({{"id", i < view.categories.size() ? std::string(view.categories[i]) : "[rounding]"},
                                    {"name", category_name(view, i, language)},
                                    {"colour", std::string(category_colour(i))}});
  }
  tables["reasons"] = Json::array();
  for (std::string_view reason : view.reasons)
    tables["reasons"].push_back(say("reason." + std::string(reason), language));
  tables["phases"] = Json::array();
  for (std::string_view phase : phases) tables["phases"].push_back(say("instant." + std::string(phase), language));
  tables["sites"] = Json::array();
  for (const ViewSite& site : view.sites) {
    tables["sites"].push_back(Json::array({site.text, site.user_code ? 1 : 0}));
  }
  tables["frames"] = Json::array();
  for (const ViewFrame& frame : view.frames) {
    const uint64_t line = frame.line > 0xffffffffU ? 0 : frame.line;
    tables["frames"].push_back(Json::array({frame.name, frame.file, line, frame.is_library ? 1 : 0}));
  }
  tables["streams"] = view.streams;
  tables["pools"] = Json::array();
  for (const PoolId& pool : view.pools) tables["pools"].push_back(Json::array({pool.first, pool.second}));
  const SiteLayers layers = largest_sites(view);
  tables["site_layers"] = layers.layer_of;
  tables["site_colours"] = Json::array();
  for (size_t i = 0; i <= layers.names.size(); ++i) {
    tables["site_colours"].push_back(std::string(site_colour(i, layers.names.size())));
  }
  return tables;
}

Json header_of(const RecordingView& view, const ViewLabel& label, const Columns& columns,
               const std::vector<std::string_view>& phases) {
  Json header = {
      {"schema", "oomscope.view/1"},
      {"name", label.name},
      {"device", view.device},
      {"events", view.events},
      {"peak_allocated", peak_json(view.peak_allocated)},
      {"peak_reserved", peak_json(view.peak_reserved)},
      {"peak_requested", peak_json(view.peak_requested)},
      {"instant",
       {{"event", view.instant.event == kNever ? Json(nullptr) : Json(view.instant.event)},
        {"failed", view.instant.failed},
        {"request", view.instant.request_bytes}}},
      {"capacity",
       {{"low", view.capacity.low_bytes}, {"high", view.capacity.high_bytes}, {"is_limit", view.capacity.is_limit}}},
      {"floor", view.floor_bytes},
      {"page_floor", view.page_floor_bytes},
      {"packing", view.packing_bytes}};
  header["failures"] = Json::array();
  for (const FailedAttempt& failure : view.failures) {
    header["failures"].push_back({{"event", failure.event},
                                  {"size", failure.size},
                                  {"device_free", failure.device_free},
                                  {"stack", failure.stack},
                                  {"stream", failure.stream},
                                  {"pool", failure.pool}});
  }
  header["steps_are_passes"] = view.steps.are_passes;
  header["curve_events"] = Json::array();
  for (uint32_t event : view.curve_events) header["curve_events"].push_back(event == kNever ? view.events : event);
  header["curves"] = curves_json(view);
  header.update(tables_json(view, label.language, phases));
  header["columns"] = columns.list();
  return header;
}

std::string gzip(const std::string& bytes) {
  constexpr int kGzipWindow = 15 + 16;
  z_stream stream{};
  std::string packed;
  if (deflateInit2(&stream, kDeflateLevel, Z_DEFLATED, kGzipWindow, 9, Z_DEFAULT_STRATEGY) != Z_OK) return packed;
  packed.resize(deflateBound(&stream, bytes.size()));
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

}  // namespace

std::string_view category_colour(size_t category) { return kColours[std::min(category, kColours.size() - 1)]; }

std::string_view site_colour(size_t rank, size_t sites) {
  constexpr size_t kOwn = 10;  // the colours of unknown and rounding are left to the rest
  return rank >= sites ? kColours[kOwn] : kColours[rank % kOwn];
}

std::string category_name(const RecordingView& view, size_t category, Language language) {
  if (category >= view.categories.size()) return say("page.rounding", language);
  return say("category." + std::string(view.categories[category]), language);
}

std::string view_payload(const RecordingView& view, const ViewLabel& label) {
  std::vector<std::string_view> phases;
  for (const PhaseSpan& span : view.spans) {
    if (std::find(phases.begin(), phases.end(), span.phase) == phases.end()) phases.push_back(span.phase);
  }
  Columns columns;
  add_lives(view, columns);
  add_driver(view, columns);
  add_rest(view, columns, phases);
  const std::string header =
      header_of(view, label, columns, phases).dump(-1, ' ', false, Json::error_handler_t::replace);
  std::string bytes(kMagic);
  const uint32_t length = static_cast<uint32_t>(header.size());
  for (int shift = 0; shift < 32; shift += 8) bytes += static_cast<char>(length >> shift);
  bytes += header;
  bytes += columns.bytes();
  return gzip(bytes);
}

std::string base64(const std::string& bytes) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t triple = 0;
    const size_t left = std::min<size_t>(3, bytes.size() - i);
    for (size_t k = 0; k < 3; ++k) triple = triple << 8 | (k < left ? static_cast<uint8_t>(bytes[i + k]) : 0U);
    for (size_t k = 0; k < 4; ++k) text += k <= left ? kDigits[triple >> (18 - 6 * k) & 63] : '=';
  }
  return text;
}

}  // namespace oomscope
