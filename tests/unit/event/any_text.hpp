// Random UTF-8 for property tests: mostly ASCII, special characters included.
#pragma once

#include <rapidcheck.h>

#include <string>
#include <vector>

namespace outbox::event {

inline rc::Gen<std::string> any_text() {
  const auto piece = rc::gen::weightedOneOf<std::string>(
      {{6, rc::gen::map(rc::gen::inRange<int>(0, 128),
                        [](int c) { return std::string(1, static_cast<char>(c)); })},
       {2, rc::gen::element<std::string>("\"", "\\", "\n", "\r", "\xc2\x85", "\xc3\xa9",
                                         "\xe2\x82\xac", "\xef\xbf\xbd", "\xf0\x9f\x98\x80",
                                         "\xf4\x8f\xbf\xbf", "longer than one word ")}});
  return rc::gen::map(rc::gen::container<std::vector<std::string>>(piece),
                      [](const std::vector<std::string>& pieces) {
                        std::string text;
                        for (const auto& one : pieces) text += one;
                        return text;
                      });
}

}  // namespace outbox::event
