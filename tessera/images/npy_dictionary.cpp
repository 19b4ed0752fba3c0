#include "tessera/images/npy_dictionary.h"

#include <charconv>
#include <set>

#include "tessera/base/error.h"

namespace tessera {
namespace {

class Parser {
 public:
  Parser(std::string_view text, const std::string& file) : text_(text), file_(file) {}

  NpyDictionary parse() {
    NpyDictionary result;
    std::set<std::string> seen;
    expect('{');
    while (!accept('}')) {
      const std::string key = string();
      if (!seen.insert(key).second) fail(fmt::format("key '{}' is there twice", key));
      expect(':');
      value(key, &result);
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    skip_space();
    if (at_ != text_.size()) fail("there is text after the closing brace");
    for (const char* key : {"descr", "fortran_order", "shape"})
      if (!seen.count(key)) fail(fmt::format("key '{}' is missing", key));
    return result;
  }

 private:
  void value(const std::string& key, NpyDictionary* result) {
    if (key == "descr") {
      skip_space();
      if (at_ < text_.size() && (text_[at_] == '[' || text_[at_] == '('))
        fail("the type is structured (records); store a plain array of numbers");
      result->descr = string();
    } else if (key == "fortran_order") {
      result->fortran_order = boolean();
    } else if (key == "shape") {
      result->shape = tuple();
    } else {
      fail(fmt::format("key '{}' is unknown; known: descr, fortran_order, shape", key));
    }
  }

  std::string string() {
    skip_space();
    const char quote = at_ < text_.size() ? text_[at_] : '\0';
    if (quote != '\'' && quote != '"') fail("a quoted text should be here");
    const size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) fail("a quoted text does not end");
    const std::string result(text_.substr(at_ + 1, end - at_ - 1));
    at_ = end + 1;
    return result;
  }

  bool boolean() {
    skip_space();
    for (const bool result : {false, true}) {
      const std::string_view word = result ? "True" : "False";
      if (text_.substr(at_, word.size()) != word) continue;
      at_ += word.size();
      return result;
    }
    fail("True or False should be here");
  }

  Shape tuple() {
    Shape shape;
    expect('(');
    while (!accept(')')) {
      shape.push_back(integer());
      if (!accept(',')) {
        expect(')');
        break;
      }
    }
    return shape;
  }

  int64_t integer() {
    skip_space();
    int64_t number = 0;
    const char* begin = text_.data() + at_;
    const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), number);
    if (error == std::errc::result_out_of_range) fail("a size is beyond 64 bits");
    if (error != std::errc()) fail("a size should be here");
    at_ += end - begin;
    return number;
  }

  void skip_space() {
    while (at_ < text_.size() && std::string_view(" \t\r\n").find(text_[at_]) != text_.npos) ++at_;
  }

  bool accept(char c) {
    skip_space();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  void expect(char c) {
    if (!accept(c)) fail(fmt::format("'{}' should be here", c));
  }

  [[noreturn]] void fail(const std::string& what) const {
    throw_error<InvalidInput>("[npy] {}: the header is malformed at its byte {}: {}", file_, at_,
                              what);
  }

  const std::string_view text_;
  const std::string& file_;
  size_t at_ = 0;
};

}  // namespace

NpyDictionary parse_npy_dictionary(std::string_view text, const std::string& file) {
  return Parser(text, file).parse();
}

}  // namespace tessera
