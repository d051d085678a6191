#include "report/redact.h"

#include <algorithm>
#include <array>

namespace oomscope {
namespace {

constexpr std::string_view kHidden = "[hidden]";
// Names that say nothing of a person or machine.
constexpr std::array<std::string_view, 8> kCommon = {"root",      "user",  "home",  "runner",
                                                     "localhost", "users", "admin", "ubuntu"};

bool is_alnum(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_name(char c) { return is_alnum(c) || c == '_' || c == '-' || c == '.'; }
bool is_slash(char c) { return c == '/' || c == '\\'; }
bool is_path(char c) {
  return is_name(c) || is_slash(c) || c == '+' || c == '~' || c == '=' || c == '*' ||
         static_cast<unsigned char>(c) >= 0x80;
}

// A path begins at its root, a home or a drive; or it is relative and goes down at least two folders.
bool looks_like_path(std::string_view token) {
  const auto slashes = std::count_if(token.begin(), token.end(), is_slash);
  if (slashes == 0 || token.size() < 3) return false;
  return is_slash(token.front()) || token.starts_with("~/") || slashes >= 2;
}

bool is_address(std::string_view token) {
  const auto dots = std::count(token.begin(), token.end(), '.');
  return dots == 3 && token.find_first_not_of("0123456789.") == std::string_view::npos && token.size() >= 7;
}

// "gpu12.cluster.example.com"; a module's name ends otherwise.
bool is_host(std::string_view token) {
  constexpr std::array<std::string_view, 14> kEnds = {".com", ".org",  ".net", ".edu", ".gov", ".internal", ".local",
                                                      ".lan", ".corp", ".cn",  ".de",  ".uk",  ".fr",       ".jp"};
  if (std::count(token.begin(), token.end(), '.') < 2) return false;
  return std::any_of(kEnds.begin(), kEnds.end(), [&](std::string_view end) { return token.ends_with(end); });
}

}  // namespace

std::string short_path(std::string_view path) {
  for (std::string_view folder : {"site-packages", "dist-packages"}) {
    const size_t at = path.rfind(folder);
    if (at != std::string_view::npos && at + folder.size() + 1 < path.size()) {
      return std::string(path.substr(at + folder.size() + 1));
    }
  }
  const size_t python = path.rfind("/lib/python3");
  if (python != std::string_view::npos) return std::string(path.substr(python + 5));
  while (path.size() > 1 && is_slash(path.back())) path.remove_suffix(1);
  const size_t slash = path.find_last_of("/\\");
  return std::string(slash == std::string_view::npos ? path : path.substr(slash + 1));
}

Redactor::Redactor(std::vector<std::string> paths, const std::vector<std::string>& names) : paths_(std::move(paths)) {
  std::sort(paths_.begin(), paths_.end(), [](const auto& a, const auto& b) { return a.size() > b.size(); });
  std::erase_if(paths_, [](const std::string& path) { return path.find('/') == std::string::npos; });
  for (const std::string& path : paths_) learn(path);
  for (const std::string& name : names) {
    if (name.size() >= 3 && std::find(kCommon.begin(), kCommon.end(), name) == kCommon.end()) names_.insert(name);
  }
}

void Redactor::learn(std::string_view text) {
  for (std::string_view home : {"/home/", "/Users/", "\\Users\\", "/scratch/", "/data/home/"}) {
    for (size_t at = text.find(home); at != std::string_view::npos; at = text.find(home, at + 1)) {
      const size_t begin = at + home.size();
      size_t end = begin;
      while (end < text.size() && is_name(text[end])) ++end;
      const std::string name(text.substr(begin, end - begin));
      const bool is_folder = end < text.size() && is_slash(text[end]);
      if (is_folder && name.size() >= 2 && std::find(kCommon.begin(), kCommon.end(), name) == kCommon.end()) {
        names_.insert(name);
      }
    }
  }
}

void Redactor::learn(const Page& page) {
  for (const PageRecording& recording : page.recordings) {
    for (const ViewFrame& frame : recording.view.frames) learn(frame.file);
  }
  if (page.ranks) {
    for (const Rank& rank : page.ranks->ranks) learn(rank.path);
  }
}

std::string Redactor::text(std::string_view from) const {
  std::string given(from);
  for (const std::string& path : paths_) {
    for (size_t at = 0; (at = given.find(path, at)) != std::string::npos;) {
      const std::string kept = short_path(path);
      given.replace(at, path.size(), kept);
      at += kept.size();
    }
  }
  std::string out;
  for (size_t i = 0; i < given.size();) {
    if (!is_path(given[i])) {
      out += given[i++];
      continue;
    }
    size_t end = i;
    while (end < given.size() && is_path(given[end])) ++end;
    const std::string token = given.substr(i, end - i);
    const bool is_url = i >= 2 && (given.compare(i - 1, 1, ":") == 0) && token.starts_with("//");
    const bool is_mail = end < given.size() && given[end] == '@' && end + 1 < given.size() && is_alnum(given[end + 1]);
    if (is_mail) {
      size_t host = end + 1;
      while (host < given.size() && is_name(given[host])) ++host;
      out += kHidden;
      i = host;
      continue;
    }
    if (is_address(token) || is_host(token)) {
      out += kHidden;
    } else {
      out += !is_url && looks_like_path(token) ? short_path(token) : token;
    }
    i = end;
  }
  for (const std::string& name : names_) {
    for (size_t at = 0; (at = out.find(name, at)) != std::string::npos;) {
      const bool begins = at == 0 || !is_alnum(out[at - 1]);
      const bool ends = at + name.size() >= out.size() || !is_alnum(out[at + name.size()]);
      if (!begins || !ends) {
        at += name.size();
        continue;
      }
      out.replace(at, name.size(), kHidden);
      at += kHidden.size();
    }
  }
  return out;
}

void Redactor::apply(std::vector<Section>& sections) const {
  for (Section& section : sections) {
    if (Sentence* sentence = std::get_if<Sentence>(&section.body)) apply(sentence->text);
    if (Lines* lines = std::get_if<Lines>(&section.body)) {
      for (std::string& line : lines->lines) apply(line);
    }
    if (List* list = std::get_if<List>(&section.body)) {
      for (std::string& entry : list->entries) apply(entry);
    }
    if (Table* table = std::get_if<Table>(&section.body)) {
      apply(table->title);
      apply(table->note);
      for (Row& row : table->rows) {
        for (std::string& cell : row.cells) apply(cell);
      }
      if (!table->total) continue;
      for (std::string& cell : table->total->cells) apply(cell);
    }
  }
}

void Redactor::apply(Answer& answer) const {
  for (std::string* text : {&answer.verdict, &answer.outlook, &answer.proof, &answer.trust}) apply(*text);
  for (Answer::Change& change : answer.changes) {
    apply(change.text);
    for (std::string& command : change.commands) apply(command);
  }
  for (std::string& caveat : answer.caveats) apply(caveat);
  apply(answer.details);
}

void Redactor::apply(RecordingView& view) const {
  for (ViewFrame& frame : view.frames) {
    frame.file = text(short_path(frame.file));
    frame.name = text(frame.name);
  }
  for (ViewSite& site : view.sites) site.text = text(site.text);
}

void Redactor::apply(RanksReport& ranks) const {
  for (Rank& rank : ranks.ranks) {
    apply(rank.label);
    apply(rank.path);
  }
}

void Redactor::apply(Page& page) const {
  apply(page.title);
  apply(page.before);
  apply(page.after);
  if (page.answer) apply(*page.answer);
  if (page.ranks) apply(*page.ranks);
  for (SignedPart& part : page.differences) apply(part.name);
  for (PageRecording& recording : page.recordings) {
    apply(recording.name);
    apply(recording.view);
  }
}

void Redactor::apply(nlohmann::ordered_json& payload) const {
  if (payload.is_string()) {
    payload = text(payload.get<std::string>());
    return;
  }
  if (!payload.is_structured()) return;
  for (auto& entry : payload) apply(entry);
}

}  // namespace oomscope
