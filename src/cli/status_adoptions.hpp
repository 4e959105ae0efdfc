// The part of `outbox status` about adopted tables.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "cli/output.hpp"
#include "store/adoption.hpp"

namespace outbox::cli {

using Adoptions = std::vector<store::AdoptionRow>;

/// What needs a person.
[[nodiscard]] std::vector<std::string> problems_of_adoptions(const Adoptions& adoptions);
void print_adoptions(const Adoptions& adoptions);
[[nodiscard]] Json adoptions_to_json(const Adoptions& adoptions);

}  // namespace outbox::cli
