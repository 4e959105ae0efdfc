// Moving values between text, TOML nodes and the places where they live. Pure.
#pragma once

#include <outbox/error.hpp>
#include <string>
#include <string_view>

#include "config/document.hpp"
#include "config/setting.hpp"

namespace outbox::config {

/// From an environment variable or a flag; lists are separated by commas. `writing`: what stands before the value there, such
/// as "OUTBOX_RELAY_PAGE=", for the hints; empty: it came from a file, where it is `key = value`.
[[nodiscard]] Status assign_text(const Setting& setting, Slot slot, const std::string& text,
                                 const std::string& writing = {});

/// From a file. Says what was expected and what was found. String values must have been resolved (reference.hpp).
[[nodiscard]] Status assign_node(const Setting& setting, Slot slot, const Node& node);

/// The two differ in tables only: { "a" = "b" } and { "a": "b" }.
enum class Notation { toml, json };

/// As it would stand in a file: quoted strings, [arrays], {tables}.
[[nodiscard]] std::string show(const Setting& setting, Slot slot,
                               Notation notation = Notation::toml);

/// "a duration such as \"15s\" from 1s to 10min": what a value should have been.
[[nodiscard]] std::string expectation(const Setting& setting);

/// The text as a string of TOML, and of JSON.
[[nodiscard]] std::string quote(std::string_view text);

}  // namespace outbox::config
