#pragma once
// Small strict readers of what the drawings are written in, so that tests notice a stray quote.

#include <map>
#include <string>
#include <vector>

namespace tessera {

struct XmlElement {
  std::string name;
  std::map<std::string, std::string> attributes;  // with entities resolved
  std::string text;                               // its own, with entities resolved
  int depth = 0;
};

/// All elements in the order in which they begin. Throws std::runtime_error unless the text is
/// well-formed: nested tags, quoted attributes, known entities, UTF-8 without control characters.
std::vector<XmlElement> read_xml(const std::string& text);

struct DotStatement {
  std::vector<std::string> words;  // identifiers, operators and quoted strings (unescaped)
};

/// The statements of a digraph. Throws std::runtime_error where strings or brackets do not close.
std::vector<DotStatement> read_dot(const std::string& text);

}  // namespace tessera
