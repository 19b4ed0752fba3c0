#include "tests/unit/inspect/markup.h"

#include <cctype>
#include <stdexcept>

#include "tessera/inspect/text.h"

namespace tessera {
namespace {

[[noreturn]] void fail(const std::string& what, const std::string& text, size_t at) {
  throw std::runtime_error(what + " at: " + text.substr(at, 60));
}

std::string unescaped(const std::string& text) {
  static const std::map<std::string, char> entities{
      {"&amp;", '&'}, {"&lt;", '<'}, {"&gt;", '>'}, {"&quot;", '"'}, {"&#39;", '\''}};
  std::string result;
  for (size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '<') fail("stray <", text, at);
    if (text[at] != '&') {
      result += text[at];
      continue;
    }
    const size_t end = text.find(';', at);
    const auto entity = entities.find(text.substr(at, end - at + 1));
    if (end == std::string::npos || entity == entities.end()) fail("unknown entity", text, at);
    result += entity->second;
    at = end;
  }
  return result;
}

/// A tag without its brackets: its name and attributes.
XmlElement read_tag(const std::string& tag) {
  XmlElement element;
  size_t at = tag.find_first_of(" /");
  element.name = tag.substr(0, at);
  while (at != std::string::npos && (at = tag.find_first_not_of(" /", at)) != std::string::npos) {
    const size_t equals = tag.find("=\"", at);
    const size_t end = equals == std::string::npos ? equals : tag.find('"', equals + 2);
    if (end == std::string::npos) fail("attribute without quotes", tag, at);
    const std::string name = tag.substr(at, equals - at);
    const std::string value = unescaped(tag.substr(equals + 2, end - equals - 2));
    if (!element.attributes.emplace(name, value).second) fail("attribute twice", tag, at);
    at = end + 1;
  }
  return element;
}

/// The end of a tag: the first > outside of quotes.
size_t tag_end(const std::string& text, size_t at) {
  for (bool quoted = false; at < text.size(); ++at) {
    if (text[at] == '"') quoted = !quoted;
    if (text[at] == '>' && !quoted) return at;
  }
  throw std::runtime_error("a tag does not end");
}

}  // namespace

std::vector<XmlElement> read_xml(const std::string& text) {
  for (size_t at = 0, next; at < text.size(); at = next + 1) {
    next = std::min(text.find('\n', at), text.size());
    const std::string line = text.substr(at, next - at);
    if (printable(line) != line) fail("characters that XML forbids", line, 0);
  }
  std::vector<XmlElement> elements;
  std::vector<size_t> open;
  for (size_t at = 0; at < text.size();) {
    if (text[at] != '<') {
      const size_t end = std::min(text.find('<', at), text.size());
      const std::string content = unescaped(text.substr(at, end - at));
      if (!open.empty()) elements[open.back()].text += content;
      at = end;
      continue;
    }
    const size_t end = tag_end(text, at);
    const std::string tag = text.substr(at + 1, end - at - 1);
    if (tag.starts_with('/')) {
      if (open.empty() || elements[open.back()].name != tag.substr(1)) fail("wrong end", text, at);
      open.pop_back();
    } else {
      elements.push_back(read_tag(tag));
      elements.back().depth = static_cast<int>(open.size());
      if (!tag.ends_with('/')) open.push_back(elements.size() - 1);
    }
    at = end + 1;
  }
  if (!open.empty()) throw std::runtime_error(elements[open.back()].name + " does not end");
  return elements;
}

std::vector<DotStatement> read_dot(const std::string& text) {
  const std::string begin = "digraph tessera {";
  if (!text.starts_with(begin) || !text.ends_with("}\n")) fail("no digraph", text, 0);
  std::vector<DotStatement> statements(1);
  for (size_t at = begin.size(); at + 2 < text.size(); ++at) {
    std::vector<std::string>& words = statements.back().words;
    if (text[at] == ';') {
      statements.emplace_back();
    } else if (text[at] == '"') {
      std::string word;
      for (++at; text.at(at) != '"'; ++at) {
        if (text[at] == '\\' && text.at(at + 1) != 'n') ++at;  // the line break stays as \n
        word += text[at];
      }
      words.push_back(word);
    } else if (std::isalnum(static_cast<unsigned char>(text[at])) != 0) {
      const size_t end = text.find_first_not_of(
          "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_", at);
      words.push_back(text.substr(at, end - at));
      at = end - 1;
    } else if (std::isspace(static_cast<unsigned char>(text[at])) == 0) {
      if (std::string("[]=,->").find(text[at]) == std::string::npos) fail("stray", text, at);
      words.emplace_back(1, text[at]);
    }
  }
  if (!statements.back().words.empty()) throw std::runtime_error("a statement does not end");
  statements.pop_back();
  return statements;
}

}  // namespace tessera
